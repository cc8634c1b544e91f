// Text that grows: how tests put their inputs together.
#pragma once

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "drivers/span.h"

#define TEXT_BYTES_MAX 70000u

// `at` is NUL-terminated. All zero is an empty text.
struct text {
	size_t len;
	char at[TEXT_BYTES_MAX];
};

static inline void text_clear(struct text *text)
{
	text->len = 0;
	text->at[0] = '\0';
}

// Append what printf would print; it must fit.
__attribute__((format(printf, 2, 3))) static inline void text_add(
	struct text *text, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	size_t room = TEXT_BYTES_MAX - text->len;
	int len = vsnprintf(text->at + text->len, room, format, arguments);
	va_end(arguments);
	assert(len >= 0);
	assert((size_t)len < room);
	text->len += len;
}

static inline struct span text_span(const struct text *text)
{
	return (struct span){text->at, text->len};
}
