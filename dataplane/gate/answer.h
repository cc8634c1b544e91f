// Answers of ours as bytes: heads, queue pages, status JSON, refusals; and the fields that an
// origin's answer gets when a token goes with it.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/gate/carry.h"
#include "dataplane/gate/decide.h"
#include "dataplane/gate/request.h"
#include "dataplane/gate/token.h"
#include "drivers/span.h"

#define ANSWER_BYTES_MAX 32768u // no answer is longer: a head with all its cookies and a page
#define ANSWER_FIELDS_BYTES_MAX 4096u // of answer_fields()

// The page for an origin that does not answer.
struct answer_error {
	const struct page *page; // NULL: words of our own
	const struct gate_site *site; // NULL: none is known
	const struct gate_room *room; // NULL: none
	uint8_t encoding; // enum accept_encoding
};

// How an answer is to be sent.
struct answer_frame {
	const char *date; // IMF-fixdate, 29 bytes
	const struct token_secrets *secrets; // signs what is set
	uint32_t now_s;
	uint8_t minor; // of the request's version: 0 or 1
	bool close; // Connection: close
	bool is_head; // no body
	bool is_secure; // over TLS: Secure cookies
	const struct gate_site *site; // whose cookies they are; NULL: not known
	const struct answer_error *error; // of a refusal as HTML; may be NULL
	const struct carry_stale *stale; // cookies to expire besides; may be NULL
};

// Strict-Transport-Security as a field line, or nothing if `seconds` is 0.
//   out  ANSWER_HSTS_BYTES_MAX
// Returns the length. Pure; any worker.
#define ANSWER_HSTS_BYTES_MAX 64u
size_t answer_hsts(uint32_t seconds, char *out);

// Render what decide() said. Of an asset only the head: its bytes follow, unless frame->is_head.
//   out  ANSWER_BYTES_MAX
// Returns the length. Pure; any worker.
size_t answer_render(const struct decision *decision, const struct gate_request *request,
	const struct answer_frame *frame, char *out);

// Render a refusal that comes before or after the gate: 400, 408, 413, 414, 431, 502, 503, 504,
// 505; HTML or JSON body. frame->stale cookies are expired in it, a 431 above all (contract section
// 2).
//   out  ANSWER_BYTES_MAX
// Returns the length. Pure; any worker.
size_t answer_refusal(
	unsigned status, bool wants_json, const struct answer_frame *frame, char *out);

// The field lines that go with an origin's answer when a token is set or cleared: Set-Cookie,
// Sluice-Pass, Sluice-Ticket.
//   out  ANSWER_FIELDS_BYTES_MAX
// Returns their length; 0: none, and the origin's answer stays as it is.
size_t answer_fields(const struct decision *decision, const struct gate_request *request,
	const struct answer_frame *frame, char *out);

struct writer;

// Expire cookies of other rooms that are no use, as many as fit; the rest with the next answer. For
// the files of answers alone.
void answer_stale(struct writer *w, const struct answer_frame *frame);
