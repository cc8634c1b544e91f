// Codes: what visitors type to enter a lane, as it comes in a request.
//
// A code is letters and digits; capitals, spaces and hyphens make no difference, so that it can be
// read from paper in groups. Nobody keeps it as text: what is looked up, sent to control and stored
// is a digest, the first 16 bytes of SHA-256 of its letters in small ones. So nothing that was
// typed reaches a page, a log line or a statement of the store.
//
//   POST /.sluice/ROOM/code    application/x-www-form-urlencoded: code=TEXT (others are ignored)
//                              application/json: {"code": "TEXT"}
//   GET, HEAD                  the page that asks for it; spends nothing, whatever the query says,
//                              since mail scanners open links
//
// Limits: CODE_BODY_BYTES_MAX of a body (beyond: 413), with Content-Length (without: 411),
// CODE_TYPED_BYTES_MAX of a code as typed, CODE_LETTERS_MAX of its letters and digits (beyond, or
// none, or any other byte: 400).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/span.h"

struct gate_request;
struct http_head;

#define CODE_BODY_BYTES_MAX 1024u
#define CODE_TYPED_BYTES_MAX 64u
#define CODE_LETTERS_MAX 48u // one block of SHA-256 holds them

// What became of a code, for the visitor. The word is the `reason` of JSON answers, and the section
// of the page.
#define CODE_OUTCOMES(X) \
	X(asked, "none was sent: the page asks for one") \
	X(invalid, "400: no text that could be a code") \
	X(long, "413: the body is longer than any with a code") \
	X(unsized, "411: a body without Content-Length") \
	X(unknown, "403: in no list of the room") \
	X(spent, "403: used as often as it may be") \
	X(guarded, "429: too many wrong ones from that source in this minute")

enum code_outcome {
#define X(name, text) CODE_##name,
	CODE_OUTCOMES(X)
#undef X
		CODE_OUTCOME_COUNT,
};

// "code_unknown" and so on.
struct span code_outcome_word(enum code_outcome outcome);

// What stands for a code. Two codes that people would find are the same have the same digest.
struct code_digest {
	uint64_t words[2]; // never both 0
};

// In constant time.
static inline bool code_is_equal(const struct code_digest *a, const struct code_digest *b)
{
	return ((a->words[0] ^ b->words[0]) | (a->words[1] ^ b->words[1])) == 0;
}

// The digest of a code as typed.
//   letters  how many letters and digits it has; may be NULL
// Returns false, and nothing is filled, if it is none: empty, too long, or with another byte. Pure;
// any thread.
bool code_digest(struct span typed, struct code_digest *digest, uint32_t *letters);

// The digest that stands in a list as 64 hex digits of SHA-256. Returns false if it is none. Pure.
bool code_digest_hex(struct span hex, struct code_digest *digest);

// Read the body of a request to the endpoint: request->code, code_outcome and body_bytes. One that
// is too long, or of unknown length, stays to be discarded.
//   rest  what has come behind the head
// Returns false if more must come first. Pure; any thread.
bool code_read(const struct http_head *head, struct span rest, struct gate_request *request);

// Find the code in the body of a request, and its digest.
//   body     whole, at most CODE_BODY_BYTES_MAX
//   is_json  what Content-Type says; else it is taken for a form's
//   once     the number of the page that it was typed on; 0: there is none
// Returns false if there is none, or none that could be. Pure; any thread.
bool code_in_body(struct span body, bool is_json, struct code_digest *digest, uint64_t *once);
