// A span: some bytes that belong to somebody else.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

// `at` is not NUL-terminated and may be NULL only when `len` is 0. Passed by value; whoever hands
// one out says how long its bytes live.
struct span {
	const char *at;
	size_t len;
};

// The span of a string literal, without its NUL.
#define SPAN(literal) ((struct span){"" literal, sizeof(literal) - 1})

// Whether both spans hold the same bytes. Not constant in time: never for secrets.
static inline bool span_is_equal(struct span a, struct span b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

// Whether `a` equals `lower` when the ASCII letters of `a` are lowered; `lower` holds no capital.
static inline bool span_is_equal_caseless(struct span a, struct span lower)
{
	if (a.len != lower.len)
		return false;
	for (size_t i = 0; i < a.len; i++) {
		char c = a.at[i];
		if (c >= 'A' && c <= 'Z')
			c += 'a' - 'A';
		if (c != lower.at[i])
			return false;
	}
	return true;
}

// The part of `s` from `start` on; `start` is at most its length. An empty span may be nowhere, and
// to nothing not even 0 may be added (C17 6.5.6); compilers make one addition of it all the same.
static inline struct span span_from(struct span s, size_t start)
{
	return (struct span){start > 0 ? s.at + start : s.at, s.len - start};
}
