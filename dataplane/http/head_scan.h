// Scanning heads: how far a run of one class of octets goes. Three engines with one meaning; the
// widest that the processor has is the one to use.
#pragma once

#include "drivers/span.h"

// Each function returns the index of the first octet of `in` at or after `at` that is not of its
// class (octet.h), in.len if all are; `at` is at most in.len. They read no byte outside `in`. Pure;
// any thread.
struct head_scan {
	const char *name;
	size_t (*text)(struct span in, size_t at); // OCTET_TEXT: stops at CR, LF, other controls
	size_t (*token)(struct span in, size_t at); // OCTET_TOKEN: stops at ':', ' ' and others
	size_t (*target)(struct span in, size_t at); // OCTET_TARGET: stops at ' ', '#' and others
};

extern const struct head_scan head_scan_scalar; // everywhere; the measure for the others
extern const struct head_scan head_scan_sse42; // 16 octets at a time
extern const struct head_scan head_scan_avx2; // 32 octets at a time

// The widest engine of this processor. Cheap: two loads and tests; the same at every call.
const struct head_scan *head_scan_best(void);
