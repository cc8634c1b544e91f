// Names are recognised by length first: for each length there is a constant mask of the few names
// that have it, and those are compared eight letters at a time. All of it is made by the compiler
// from HTTP_FIELD_NAMES; a new line there needs nothing here.

#include "dataplane/http/field.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define NAME_BYTES_MAX 31 // of the names in the list
#define WORD_BYTES 8u

static const char names[HTTP_FIELD_IDS][NAME_BYTES_MAX + 1] = {
#define X(id, name) [HTTP_FIELD_##id] = name,
	HTTP_FIELD_NAMES(X)
#undef X
};

static_assert(HTTP_FIELD_IDS <= 64, "a mask has a bit for each name");
#define X(id, name) static_assert(sizeof(name) <= NAME_BYTES_MAX + 1, name);
HTTP_FIELD_NAMES(X)
#undef X

static uint64_t names_of_length(size_t bytes);
static bool is_equal(const char *token, const char *lower, size_t bytes);

enum http_field_id field_id(struct span name)
{
	for (uint64_t left = names_of_length(name.len); left; left &= left - 1) {
		unsigned id = __builtin_ctzll(left);
		if (is_equal(name.at, names[id], name.len))
			return id;
	}
	return HTTP_FIELD_OTHER;
}

static uint64_t names_of_length(size_t bytes)
{
#define X(id, name) | (uint64_t)(length == sizeof(name) - 1) << HTTP_FIELD_##id
#define CASE(n) \
	case n: { \
		enum { length = n }; \
		return 0 HTTP_FIELD_NAMES(X); \
	}
#define CASES(n) \
	CASE(n) CASE(n + 1) CASE(n + 2) CASE(n + 3) CASE(n + 4) CASE(n + 5) CASE(n + 6) CASE(n + 7)
	switch (bytes) { // which the compiler turns into a table of constants
		CASES(0) CASES(8) CASES(16) CASES(24)
	}
#undef X
	return 0;
}

// Setting bit 5 lowers letters. Of the octets that tokens have, it maps only letters onto letters
// and only '-' onto '-', so nothing else becomes equal.
static bool is_word_equal(const char *token, const char *lower)
{
	uint64_t a, b;
	memcpy(&a, token, WORD_BYTES);
	memcpy(&b, lower, WORD_BYTES);
	return (a | 0x2020202020202020) == b;
}

static bool is_equal(const char *token, const char *lower, size_t bytes)
{
	size_t at = 0;
	for (; at + WORD_BYTES <= bytes; at += WORD_BYTES)
		if (!is_word_equal(token + at, lower + at))
			return false;
	if (bytes > WORD_BYTES) { // the rest, with some of what was compared already
		at = bytes - WORD_BYTES;
		return is_word_equal(token + at, lower + at);
	}
	for (; at < bytes; at++)
		if ((token[at] | 0x20) != lower[at])
			return false;
	return true;
}
