// Encoding the texts of a page around its slots, each by itself, so that workers can put them
// together with any values between.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "dataplane/gate/page.h"
#include "drivers/span.h"

#define ENCODE_EXTRA_BYTES 64u // what headers and flushes may add to a text

// A text of a page, and what its encoding depends on.
struct encode_text {
	struct span text;
	// All of the page before it, of the same length in every answer; what may differ there
	// is full of a byte that occurs in no text.
	struct span before;
	uint32_t slot_width; // of the slot behind it, whose block begins with the piece; 0: none
	bool is_last;
};

// Bytes that the encoding of a text of `len` bytes may have.
size_t encode_bytes_max(size_t len);

// Encode it.
//   out  encode_bytes_max() bytes
// Returns the length, or -ENOMEM. Control only.
ssize_t encode(const struct encode_text *text, enum accept_encoding encoding, char *out);
