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

// `n` in decimal, with a comma between groups of `group` digits; 0: no commas.
static inline void writer_grouped(struct writer *w, uint64_t n, unsigned group)
{
	char text[2 * WRITER_NUMBER_BYTES_MAX], *end = text + sizeof(text), *at = end;
	unsigned digits = 0;
	do {
		if (group > 0 && digits > 0 && digits % group == 0)
			*--at = ',';
		*--at = (char)('0' + n % 10);
		digits++;
		n /= 10;
	} while (n > 0);
	writer_span(w, (struct span){at, (size_t)(end - at)});
}

static inline void writer_number(struct writer *w, uint64_t n)
{
	writer_grouped(w, n, 0);
}

// Spaces up to `end`.
static inline void writer_pad(struct writer *w)
{
	memset(w->at, ' ', (size_t)(w->end - w->at));
	w->at = w->end;
}
