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

// `n` in decimal, with a comma between groups of `group` digits.
static inline void writer_grouped(struct writer *w, uint64_t n, unsigned group)
{
	char text[2 * WRITER_NUMBER_BYTES_MAX], *end = text + sizeof(text), *at = end;
	unsigned digits = 0;
	do {
		if (digits > 0 && digits % group == 0)
			*--at = ',';
		*--at = (char)('0' + n % 10);
		digits++;
		n /= 10;
	} while (n > 0);
	writer_span(w, (struct span){at, (size_t)(end - at)});
}

static inline unsigned writer_digits(uint64_t n)
{
	unsigned count = 1;
	for (; n >= 10000; n /= 10000)
		count += 4;
	return count + (n >= 10) + (n >= 100) + (n >= 1000);
}

// `n` in decimal: two digits a division, from the last on.
static inline void writer_number(struct writer *w, uint64_t n)
{
	unsigned digits = writer_digits(n);
	assert(digits <= (size_t)(w->end - w->at));
	w->at += digits;
	char *at = w->at;
	for (; n >= 100; n /= 100) {
		unsigned two = n % 100;
		*--at = (char)('0' + two % 10);
		*--at = (char)('0' + two / 10);
	}
	*--at = (char)('0' + n % 10);
	if (n >= 10)
		*--at = (char)('0' + n / 10);
}

// Spaces up to `end`.
static inline void writer_pad(struct writer *w)
{
	memset(w->at, ' ', (size_t)(w->end - w->at));
	w->at = w->end;
}
