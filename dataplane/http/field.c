// Names are recognised by their length and last letter but one first: for each of these there is a
// constant mask of the few names that have it, and who is in both is compared, eight letters at a
// time. All of it is made by the compiler from HTTP_FIELD_NAMES; a new line there needs nothing
// here.

#include "dataplane/http/field.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#define NAME_BYTES_MAX 31 // of the names in the list
#define WORD_BYTES 8u
#define HALF_BYTES 4u

static const char names[HTTP_FIELD_IDS][NAME_BYTES_MAX + 1] = {
#define X(id, name) [HTTP_FIELD_##id] = name,
	HTTP_FIELD_NAMES(X)
#undef X
};

static_assert(HTTP_FIELD_IDS <= 64, "a mask has a bit for each name");
#define X(id, name) static_assert(sizeof(name) > 2 && sizeof(name) <= NAME_BYTES_MAX + 1, name);
HTTP_FIELD_NAMES(X)
#undef X

static uint64_t names_of_length(size_t bytes);
static uint64_t names_of_letter(char letter);
static bool is_equal(const char *token, const char *lower, size_t bytes);

enum http_field_id field_id(struct span name)
{
	uint64_t left = names_of_length(name.len);
	if (left)
		left &= names_of_letter(name.at[name.len - 2]);
	for (; left; left &= left - 1) {
		unsigned id = __builtin_ctzll(left);
		if (is_equal(name.at, names[id], name.len))
			return id;
	}
	return HTTP_FIELD_OTHER;
}

static uint64_t names_of_length(size_t bytes)
{
#define X(id, name) | (uint64_t)(value == sizeof(name) - 1) << HTTP_FIELD_##id
#define CASE(n) \
	case n: { \
		enum { value = n }; \
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

// Those whose last letter but one it may be: its last five bits tell letters, in any case.
static uint64_t names_of_letter(char letter)
{
#define X(id, name) | (uint64_t)(value == (name[sizeof(name) - 3] & 31)) << HTTP_FIELD_##id
	switch (letter & 31) {
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
	memcpy(&a, token, sizeof(a));
	memcpy(&b, lower, sizeof(b));
	return (a | 0x2020202020202020) == b;
}

static bool is_half_equal(const char *token, const char *lower)
{
	uint32_t a, b;
	memcpy(&a, token, sizeof(a));
	memcpy(&b, lower, sizeof(b));
	return (a | 0x20202020) == b;
}

// The rest after whole words is compared with some of what was compared already.
static bool is_equal(const char *token, const char *lower, size_t bytes)
{
	size_t at = 0;
	for (; at + WORD_BYTES < bytes; at += WORD_BYTES)
		if (!is_word_equal(token + at, lower + at))
			return false;
	if (bytes >= WORD_BYTES)
		return is_word_equal(token + bytes - WORD_BYTES, lower + bytes - WORD_BYTES);
	if (bytes >= HALF_BYTES)
		return is_half_equal(token, lower) &&
		       is_half_equal(token + bytes - HALF_BYTES, lower + bytes - HALF_BYTES);
	for (; at < bytes; at++)
		if ((token[at] | 0x20) != lower[at])
			return false;
	return true;
}
