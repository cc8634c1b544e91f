// Scanning heads: how far a run of one class of octets goes. Three engines with one meaning; the
// widest that the processor has is the one to use.
#pragma once

#include <stdint.h>

#include "drivers/span.h"

#define HEAD_SCAN_WORDS 16u // marked at a time: most heads are shorter
#define HEAD_SCAN_WORD_OCTETS 64u
#define HEAD_SCAN_OCTETS (HEAD_SCAN_WORDS * HEAD_SCAN_WORD_OCTETS)

// Each of the first three functions returns the index of the first octet of `in` at or after `at`
// that is not of its class (octet.h), in.len if all are; `at` is at most in.len. They read no byte
// outside `in`. Pure; any thread.
struct head_scan {
	const char *name;
	size_t (*text)(struct span in, size_t at); // OCTET_TEXT: stops at CR, LF, other controls
	size_t (*token)(struct span in, size_t at); // OCTET_TOKEN: stops at ':', ' ' and others
	size_t (*target)(struct span in, size_t at); // OCTET_TARGET: stops at ' ', '#' and others
	// Mark where text stops from `at` on, as far as HEAD_SCAN_OCTETS: octet i at bit i % 64 of
	// word i / 64; past the end of `in` everything stops. Returns the words written.
	unsigned (*mark)(struct span in, size_t at, uint64_t words[HEAD_SCAN_WORDS]);
	// token() from each of `count` places on, into the same array.
	void (*tokens)(struct span in, uint16_t *at, unsigned count);
};

extern const struct head_scan head_scan_scalar; // everywhere; the measure for the others
extern const struct head_scan head_scan_sse42; // 16 octets at a time
extern const struct head_scan head_scan_avx2; // 32 octets at a time

// The widest engine of this processor. Cheap: two loads and tests; the same at every call.
const struct head_scan *head_scan_best(void);
