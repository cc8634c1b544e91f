// Inputs that end where memory ends: reading one byte too far crashes the test.
#pragma once

#include "drivers/span.h"

#define GUARD_BYTES_MAX (1u << 17)

// A copy of `s` whose last byte lies before an unmapped page. It lives until the next call.
struct span guard_copy(struct span s);

// The same of a NUL-terminated string, without its NUL.
static inline struct span guard_string(const char *s)
{
	return guard_copy((struct span){s, strlen(s)});
}
