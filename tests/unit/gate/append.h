// Texts for tests, piece by piece.
#pragma once

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Append to a NUL-terminated text in `size` bytes, as printf does. It has to fit.
__attribute__((format(printf, 3, 4))) static inline void append(
	char *text, size_t size, const char *format, ...)
{
	size_t len = strlen(text);
	va_list args;
	va_start(args, format);
	int added = vsnprintf(text + len, size - len, format, args);
	va_end(args);
	assert(added >= 0 && (size_t)added < size - len);
}
