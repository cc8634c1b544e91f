// A writer: text put together in a buffer of the caller's.
//
// Whoever makes the buffer sizes it for the longest text, so running over its end is a bug of ours
// and asserted, never cut short.
#pragma once

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "drivers/span.h"

// The next byte goes to `at`; nothing goes to `end` or beyond.
struct writer {
	char *at;
	char *end;
};

#define WRITER_NUMBER_BYTES_MAX 20u // digits of UINT64_MAX

// Append; there must be room.
static inline void writer_span(struct writer *w, struct span s)
{
	assert(s.len <= (size_t)(w->end - w->at));
	if (s.len > 0)
		memcpy(w->at, s.at, s.len);
	w->at += s.len;
}

static inline void writer_char(struct writer *w, char c)
{
	assert(w->at < w->end);
	*w->at++ = c;
}

// `n` in decimal, with `between` between groups of three digits.
static inline void writer_grouped(struct writer *w, uint64_t n, struct span between)
{
	char text[WRITER_NUMBER_BYTES_MAX], *end = text + sizeof(text), *at = end;
	for (; n > 0 || at == end; n /= 10)
		*--at = (char)('0' + n % 10);
	for (; at < end; at++) {
		writer_char(w, *at);
		if (at + 1 < end && (end - at) % 3 == 1)
			writer_span(w, between);
	}
}

// How many digits `n` has: as many as its bits come to, 1233 / 4096 being just above log10(2), or
// one more.
static inline unsigned writer_digits(uint64_t n)
{
#define E(zeros) 1##zeros##u
	static const uint64_t least[] = {0, E(0), E(00), E(000), E(0000), E(00000), E(000000),
		E(0000000), E(00000000), E(000000000), E(0000000000), E(00000000000),
		E(000000000000), E(0000000000000), E(00000000000000), E(000000000000000),
		E(0000000000000000), E(00000000000000000), E(000000000000000000),
		E(0000000000000000000)};
#undef E
	const unsigned bits = 64 - (unsigned)__builtin_clzll(n | 1), count = bits * 1233 >> 12;
	return count + (n >= least[count]);
}

// `n` in decimal: two digits a division, from the last on.
static inline void writer_number(struct writer *w, uint64_t n)
{
#define TENS(t) t "0" t "1" t "2" t "3" t "4" t "5" t "6" t "7" t "8" t "9"
	static const char pairs[] = TENS("0") TENS("1") TENS("2") TENS("3") TENS("4") TENS("5")
		TENS("6") TENS("7") TENS("8") TENS("9");
#undef TENS
	unsigned digits = writer_digits(n);
	assert(digits <= (size_t)(w->end - w->at));
	w->at += digits;
	char *at = w->at;
	for (; n >= 100; n /= 100)
		memcpy(at -= 2, pairs + 2 * (n % 100), 2);
	if (n >= 10)
		memcpy(at - 2, pairs + 2 * n, 2);
	else
		at[-1] = (char)('0' + n);
}

// `n` as 16 hex digits.
static inline void writer_hex16(struct writer *w, uint64_t n)
{
	for (unsigned shift = 64; shift > 0; shift -= 4)
		writer_char(w, "0123456789abcdef"[n >> (shift - 4) & 15]);
}

// Spaces up to `end`.
static inline void writer_pad(struct writer *w)
{
	memset(w->at, ' ', (size_t)(w->end - w->at));
	w->at = w->end;
}
