// Pages, ready to be sent: compiled by control (controlplane/pages/), rendered by workers.
//
// A page is static text with slots between, in which the visitor's values stand: the state, the
// place, how many are ahead. Every slot has a fixed width and is filled up with spaces, and a
// section that is not shown is as many spaces (uncompressed: none), so every text stands at the
// same offset of every answer and can be compressed once, around the slots:
//
//   identity   text │ slot │ text │ slot │ text
//   gzip       deflate │ stored block │ deflate │ stored block │ deflate │ CRC-32, length
//   brotli     meta-blocks │ uncompressed meta-block │ meta-blocks │ ...
//
// A piece is the encoded text up to and with the header of the block that holds the slot, so all
// three are rendered by one loop that copies pieces and fills slots (RFC 1951 3.2.4, RFC 1952 2.3,
// RFC 7932 9.2). Before the pieces of a section stands the piece of spaces that is sent instead.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/status.h"
#include "dataplane/http/accept.h"
#include "drivers/span.h"

struct gate_room;
struct gate_site;

#define PAGE_ENCODINGS (ACCEPT_BR + 1)
#define PAGE_LANGUAGES_MAX 8u // of a set

// Name of the variable in a template, `{{name}}`; the width of its slot in bytes; what it says.
// Values are HTML text, safe between the quotes of an attribute too.
#define PAGE_SLOTS(X) \
	X(title, 96, "of the document: the place, if there is one, and the state") \
	X(state, 10, "a word of PAGE_KINDS") \
	X(room, 63, "the name of the room") \
	X(site, 63, "the name of the site") \
	X(position, 32, "the place in line, in groups of three digits") \
	X(ahead, 32, "people ahead, likewise") \
	X(wait, 40, "expected wait in words") \
	X(eta_low, 20, "expected wait in seconds, at least") \
	X(eta_high, 20, "expected wait in seconds, at most") \
	X(progress, 4, "of the way to the turn, in 1/1000") \
	X(poll_after, 3, "seconds until the page should ask again, or be loaded again") \
	X(message, 512, "of the operator") \
	X(time, 12, "of the answer, UTC") \
	X(opens, 10, "when the doors open, unix s; 0: they are open") \
	X(expires, 10, "when the pass ends, unix s; 0: there is none") \
	X(now, 10, "the server's clock, unix s") \
	X(countdown, 13, "to the opening, as in 1:02:03") \
	X(code, 3, "the HTTP status, of an error page") \
	X(once, 16, "a random number, of an invitation: sent with the code, so that twice is once")

enum page_slot {
	PAGE_SLOT_NONE,
#define X(name, width, text) PAGE_SLOT_##name,
	PAGE_SLOTS(X)
#undef X
		PAGE_SLOT_COUNT,
};

// Bytes that a slot takes; 0 for PAGE_SLOT_NONE.
uint32_t page_slot_width(enum page_slot slot);

// What a page is for: a state of the visitor's, or one of these. A name is that of the template and
// of the section that is shown for it.
#define PAGE_MORE_KINDS(X) \
	X(error) \
	X(invitation)
enum page_kind {
	PAGE_FIRST_STATE = 0, // an enum status_state is a kind
	PAGE_LAST_STATE = STATUS_STATE_COUNT - 1,
#define X(name) PAGE_##name,
	PAGE_MORE_KINDS(X)
#undef X
		PAGE_KIND_COUNT,
};

// The word of a kind: that of the state, "error", "invitation".
struct span page_kind_word(enum page_kind kind);

// Further sections, shown if there is such a value; `unsalted` while a draw is to come that has no
// public salt; `codes` if the room takes codes; the others if that is what is wrong with the one
// that came (code.h).
#define PAGE_VALUES(X) \
	X(position) \
	X(ahead) \
	X(wait) \
	X(exact) \
	X(message) \
	X(opens) \
	X(expires) \
	X(unsalted) \
	X(codes) \
	X(code_invalid) \
	X(code_unknown) \
	X(code_spent) \
	X(code_guarded)

// Conditions of sections: kinds, then values. A page is rendered with one bit for each that holds.
enum page_condition {
	PAGE_KIND_CONDITIONS = PAGE_KIND_COUNT - 1,
#define X(name) PAGE_HAS_##name,
	PAGE_VALUES(X)
#undef X
		PAGE_CONDITION_COUNT,
};
static_assert(PAGE_CONDITION_COUNT <= 32, "conditions are bits of a word");

#define PAGE_BODY_BYTES_MAX 24000u // of an answer's body, in any encoding
#define PAGE_CSP_BYTES_MAX 1024u

// What is put into slots, in the page's language; HTML text. `#` in a pattern is a number.
struct page_phrases {
	struct span titles[PAGE_KIND_COUNT];
	struct span group, point; // between groups of digits, before decimals; at most 2 bytes
	struct span wait_unknown;
	struct span wait_soon; // less than a minute
	struct span wait_minutes, wait_hours, wait_days; // patterns: low, high
};

struct page_piece {
	const char *bytes;
	uint32_t bytes_len;
	uint32_t crc; // CRC-32 of the text before encoding; gzip only
	uint32_t crc_op; // what appends that text, for crc32_combine_op()
	uint8_t slot; // enum page_slot after it; PAGE_SLOT_NONE: none
	bool is_text; // the slot is filled up with a comment, so that what follows touches the
		      // value
	// Of the spaces that stand before a section and are sent instead of it:
	bool is_inverse; // the section is shown if the condition does not hold
	uint16_t next; // the piece behind the section
	uint32_t condition; // a bit; 0: any other piece, sent in any case
};

// A template in one language, compiled.
struct page {
	struct span language; // value of Content-Language
	struct span csp; // value of Content-Security-Policy; at most PAGE_CSP_BYTES_MAX
	const struct page_phrases *phrases;
	uint32_t piece_count;
	uint32_t identity_bytes; // of every answer, decoded
	const struct page_piece *pieces[PAGE_ENCODINGS];
};

// The pages of a folder: one for each kind and language, some of them the same.
struct page_set {
	uint32_t language_count;
	struct span languages[PAGE_LANGUAGES_MAX]; // the first is for those who want none of them
	const struct page *pages[PAGE_LANGUAGES_MAX][PAGE_KIND_COUNT];
};

// What a page shows.
struct page_view {
	const struct status *status;
	const struct gate_site *site; // NULL: none is named
	const struct gate_room *room; // likewise
	uint8_t kind; // enum page_kind
	uint16_t code; // of an error
	uint8_t outcome; // of an invitation: enum code_outcome
	uint64_t once; // likewise: its number
};

// Length of the body that page_render() will write. Pure; any thread.
uint32_t page_body_bytes(
	const struct page *page, enum accept_encoding encoding, const struct page_view *view);

// Render the page for a visitor.
//   out  at least page_body_bytes()
// Returns that length. Pure; any thread.
size_t page_render(const struct page *page, enum accept_encoding encoding,
	const struct page_view *view, char *out);
