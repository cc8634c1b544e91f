// The queue page, ready to be sent: compiled by control (controlplane/pages/), rendered by workers.
//
// A page is static text with slots between, in which the visitor's values stand: the state, the
// place, how many are ahead. Every slot has a fixed width and is filled up with spaces, so every
// answer of one language and encoding has the same length, and the static text can be compressed
// once, around the slots:
//
//   identity   text │ slot │ text │ slot │ text
//   gzip       deflate │ stored block │ deflate │ stored block │ deflate │ CRC-32, length
//   brotli     meta-blocks │ uncompressed meta-block │ meta-blocks │ ...
//
// A piece is the encoded text up to and with the header of the block that holds the slot, so all
// three are rendered by one loop that copies pieces and fills slots (RFC 1951 3.2.4, RFC 1952 2.3,
// RFC 7932 9.2).
#pragma once

#include <stdint.h>

#include "dataplane/gate/status.h"
#include "dataplane/http/accept.h"
#include "drivers/span.h"

struct gate_room;

#define PAGE_LANGUAGES (ACCEPT_JA + 1)
#define PAGE_ENCODINGS (ACCEPT_BR + 1)

// Name of the slot in a template, `{{name}}`; its width in bytes; what it says. Values are HTML
// text, safe between the quotes of an attribute too.
#define PAGE_SLOTS(X) \
	X(title, 96, "of the document: the place, if there is one, and the state") \
	X(refresh, 3, "seconds until a browser without script loads the page again") \
	X(state, 8, "status_word()") \
	X(room, 63, "its name") \
	X(poll, 3, "seconds until the script asks again") \
	X(place, 26, "position with commas") \
	X(progress, 4, "of the way to the turn, in 1/1000") \
	X(ahead, 26, "people ahead, with commas") \
	X(wait, 40, "expected wait in words") \
	X(note, 6, "the attribute `hidden` if the operator has nothing to say") \
	X(message, 512, "of the operator") \
	X(time, 12, "of the answer, UTC") \
	X(opens, 10, "when the doors open, unix s; 0: they are open") \
	X(now, 10, "the server's clock, unix s") \
	X(countdown, 13, "to the opening, as in 1:02:03")

enum page_slot {
	PAGE_SLOT_NONE,
#define X(name, width, text) PAGE_SLOT_##name,
	PAGE_SLOTS(X)
#undef X
		PAGE_SLOT_COUNT,
};

// Bytes that a slot takes; 0 for PAGE_SLOT_NONE.
uint32_t page_slot_width(enum page_slot slot);

#define PAGE_PIECES_MAX 24u // slots in a template, and one
#define PAGE_BODY_BYTES_MAX 12000u // of an answer's body, in any encoding
#define PAGE_CSP_BYTES_MAX 512u

// What is put into slots, in the page's language; HTML text. `#` in a pattern is a number.
struct page_phrases {
	struct span titles[STATUS_STATE_COUNT];
	struct span wait_unknown;
	struct span wait_soon; // less than a minute
	struct span wait_minutes, wait_hours, wait_days; // patterns: low, high
};

struct page_piece {
	const char *bytes;
	uint32_t bytes_len;
	uint32_t crc; // CRC-32 of the text before encoding; gzip only
	uint32_t crc_op; // what appends that text, for crc32_combine_op()
	uint8_t slot; // enum page_slot after it; PAGE_SLOT_NONE: the last
};

struct page_variant {
	uint32_t body_bytes; // of every answer
	uint32_t identity_bytes; // the same, decoded
	uint32_t piece_count;
	struct page_piece pieces[PAGE_PIECES_MAX];
};

struct page_text {
	const struct page_phrases *phrases;
	struct span csp; // value of Content-Security-Policy; at most PAGE_CSP_BYTES_MAX
	struct page_variant variants[PAGE_ENCODINGS];
};

struct page {
	struct page_text texts[PAGE_LANGUAGES];
};

// Length of the body that page_render() will write. Pure; any thread.
uint32_t page_body_bytes(
	const struct page *page, enum accept_language language, enum accept_encoding encoding);

// Render the page for a visitor.
//   out  at least page_body_bytes()
// Returns that length. Pure; any thread.
size_t page_render(const struct page *page, enum accept_language language,
	enum accept_encoding encoding, const struct status *status, const struct gate_room *room,
	char *out);
