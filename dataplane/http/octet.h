// Classes of octets in the grammar of HTTP/1.1: which may stand where.
#pragma once

#include <stdint.h>

#include "drivers/span.h"

enum octet_class {
	OCTET_TOKEN = 1, // tchar (RFC 9110 5.6.2)
	OCTET_TEXT = 2, // in field values: VCHAR, obs-text, SP, HTAB (RFC 9110 5.5)
	OCTET_TARGET = 4, // in targets: VCHAR but '#'; browsers send more than RFC 3986 allows
	OCTET_REG_NAME = 8, // in host names: unreserved and sub-delims (RFC 3986 3.2.2)
	OCTET_HEX = 16, // HEXDIG, both cases
};

extern const uint8_t octet_classes[256]; // bits of enum octet_class

// Whether `c` is in that class.
static inline bool octet_is(char c, enum octet_class class)
{
	return octet_classes[(uint8_t)c] & class;
}

static inline bool octet_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

// SP or HTAB: optional white space (RFC 9110 5.6.3).
static inline bool octet_is_space(char c)
{
	return c == ' ' || c == '\t';
}

// 0 to 15 for an OCTET_HEX.
static inline unsigned octet_hex_value(char c)
{
	return octet_is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10;
}

static inline char octet_lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

// The index of the first octet of `in` at or after `at` that is not of the class; in.len if all
// are.
static inline size_t octet_scan(struct span in, size_t at, enum octet_class class)
{
	while (at < in.len && octet_is(in.at[at], class))
		at++;
	return at;
}

// Whether `s` is a token: not empty, and OCTET_TOKEN throughout.
static inline bool octet_is_token(struct span s)
{
	return s.len > 0 && octet_scan(s, 0, OCTET_TOKEN) == s.len;
}

// `s` without the white space around it.
static inline struct span octet_trim(struct span s)
{
	while (s.len > 0 && octet_is_space(s.at[0]))
		s = span_from(s, 1);
	while (s.len > 0 && octet_is_space(s.at[s.len - 1]))
		s.len--;
	return s;
}
