// Message heads: the request line or status line and the fields, as spans into the bytes received.
//
// One strict grammar for both directions (RFC 9110, RFC 9112): CRLF only, no space before a colon,
// no folded lines, no control characters, tokens are tokens. What a sender may not write is not
// repaired but refused, because two readers that repair differently are how requests are smuggled
// (RFC 9112 11.2).
//
// Parsing is incremental without state in the parser: http_head_end() looks for the blank line and
// is told how far it had looked, so a head that comes byte by byte is scanned once; the head is
// parsed when it is whole. The order of calls for a request:
//
//     http_head_skip(in)                            once for each request; step over it
//     http_request_read(in, limits, &scanned, &head)   while HTTP_MORE: again with more
//
// and for an answer:
//
//     http_head_end(in, limits, &scanned, &bytes)   while HTTP_MORE: again with more
//     http_answer_parse({in.at, bytes}, limits, method, &head)
//
// Everything here is pure: no state between calls, no allocation, any thread.
#pragma once

#include <stdint.h>

#include "drivers/span.h"

// Hard limits; the configured ones are lower.
#define HTTP_HEAD_BYTES_MAX 65535 // offsets are 16 bits
#define HTTP_FIELDS_MAX 128
#define HTTP_OPTIONS_MAX 16 // options in the Connection fields of a head

// Fields that somebody in here looks at. Everything else is HTTP_FIELD_OTHER. Add a line and the
// parser knows it; names are lower case.
#define HTTP_FIELD_NAMES(X) \
	X(accept, "accept") \
	X(accept_encoding, "accept-encoding") \
	X(accept_language, "accept-language") \
	X(access_control_request_method, "access-control-request-method") \
	X(cache_control, "cache-control") \
	X(connection, "connection") \
	X(content_length, "content-length") \
	X(content_type, "content-type") \
	X(cookie, "cookie") \
	X(date, "date") \
	X(etag, "etag") \
	X(expect, "expect") \
	X(expires, "expires") \
	X(forwarded, "forwarded") \
	X(host, "host") \
	X(keep_alive, "keep-alive") \
	X(last_modified, "last-modified") \
	X(origin, "origin") \
	X(proxy_connection, "proxy-connection") \
	X(purpose, "purpose") \
	X(referer, "referer") \
	X(sec_fetch_dest, "sec-fetch-dest") \
	X(sec_fetch_mode, "sec-fetch-mode") \
	X(sec_fetch_site, "sec-fetch-site") \
	X(sec_purpose, "sec-purpose") \
	X(set_cookie, "set-cookie") \
	X(sluice_command, "sluice-command") \
	X(sluice_pass, "sluice-pass") \
	X(sluice_room, "sluice-room") \
	X(sluice_session, "sluice-session") \
	X(sluice_ticket, "sluice-ticket") \
	X(te, "te") \
	X(trailer, "trailer") \
	X(transfer_encoding, "transfer-encoding") \
	X(upgrade, "upgrade") \
	X(x_forwarded_for, "x-forwarded-for") \
	X(x_forwarded_host, "x-forwarded-host") \
	X(x_forwarded_proto, "x-forwarded-proto")

enum http_field_id {
	HTTP_FIELD_OTHER,
#define X(id, name) HTTP_FIELD_##id,
	HTTP_FIELD_NAMES(X)
#undef X
		HTTP_FIELD_IDS,
};

// Methods that somebody in here treats differently. Others are valid tokens and HTTP_METHOD_OTHER.
enum http_method {
	HTTP_METHOD_OTHER,
	HTTP_GET,
	HTTP_HEAD,
	HTTP_POST,
	HTTP_PUT,
	HTTP_DELETE,
	HTTP_OPTIONS,
	HTTP_CONNECT,
	HTTP_TRACE,
};

enum http_result {
	HTTP_OK,
	HTTP_MORE, // incomplete; nothing consumed; call again with more
	HTTP_BAD, // against the grammar: 400 and close
	HTTP_TOO_LARGE, // a limit is passed: 431 and close
	HTTP_LINE_TOO_LARGE, // the first line's limit is passed: 414 and close
	HTTP_VERSION, // a version, but neither HTTP/1.1 nor HTTP/1.0: 505 and close
};

// The limits of a head, from the configuration. At the limit is accepted, one beyond refused.
struct http_limits {
	uint32_t line_bytes; // request or status line, without CRLF
	uint32_t head_bytes; // all of it, with the blank line; at most HTTP_HEAD_BYTES_MAX
	uint32_t fields; // at most HTTP_FIELDS_MAX
};

// A field: offsets into the head's bytes. The value has no white space around it.
struct http_field {
	uint16_t name_at, name_len;
	uint16_t value_at, value_len;
	uint16_t id; // enum http_field_id
	uint16_t next; // index + 1 of the next field with the same id (not kept for OTHER); 0: last
};

// An option of Connection, a token.
struct http_option {
	uint16_t at, len;
};

// How the body after a head is delimited (RFC 9112 6.3).
enum http_body {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH, // content_length bytes
	HTTP_BODY_CHUNKED,
	HTTP_BODY_CLOSE, // answers only: until the connection ends
};

// A parsed head. Spans point into the bytes it was parsed from and die with them (but for the
// target "/" or "*" of an absolute-form without a path, which is a constant). Answers have no
// method_name, target, authority or host.
struct http_head {
	const char *bytes; // what all offsets count from
	uint32_t head_bytes; // length with the blank line: the body begins there
	uint8_t minor; // 0 or 1
	uint8_t method; // enum http_method, requests only
	uint16_t status; // answers only
	uint8_t body; // enum http_body
	bool keep_alive; // what version and Connection say; false for HTTP_BODY_CLOSE
	bool expect_continue; // the sender of a body waits for 100 (RFC 9110 10.1.1)
	bool has_upgrade; // Upgrade is there and Connection lists it, in HTTP/1.1
	bool absolute_form; // the target came with scheme and authority (RFC 9112 3.2.2)
	uint64_t content_length; // HTTP_BODY_LENGTH only, else 0
	struct span method_name;
	struct span target; // as sent, origin-form part: begins with '/'; "*" of OPTIONS, about
			    // the server as a whole; host:port of CONNECT
	struct span authority; // of an absolute-form target or CONNECT, host[:port]; else empty
	struct span host; // the Host field's value as sent; at == NULL if there was none
	uint8_t option_count;
	struct http_option options[HTTP_OPTIONS_MAX];
	uint16_t field_count;
	uint16_t first[HTTP_FIELD_IDS]; // index + 1 of the first field with that id; 0: none
	struct http_field fields[HTTP_FIELDS_MAX];
};

// Look for the end of a head in `in`.
//   in       bytes received so far, at least as many as in the last call
//   scanned  how many bytes earlier calls have looked at and found no end in: 0 at first, updated
//            on HTTP_MORE
// Leading CRLF before a request line are not skipped here (http_head_skip).
// Returns HTTP_OK with the head's length in *head_bytes; HTTP_MORE; HTTP_LINE_TOO_LARGE or
// HTTP_TOO_LARGE as soon as the limit on line or head is passed, complete or not (the limit on
// fields is the parser's); HTTP_BAD as soon as a byte is seen that no head may hold there: a lone
// LF or CR, another control, an empty line at the start. The answer does not depend on how the
// bytes were cut.
enum http_result http_head_end(
	struct span in, const struct http_limits *limits, uint32_t *scanned, uint32_t *head_bytes);

// How many bytes of empty lines (CRLF) stand before a request line: 0 or 2. One is tolerated (RFC
// 9112 2.2), a second one is left for http_head_end() to refuse.
size_t http_head_skip(struct span in);

// Find the end of the request head at the start of `in`, and parse it: http_head_end(), then
// http_request_parse(), with their arguments and results; but a head that is whole when its first
// bytes come, as most are, is gone through once.
enum http_result http_request_read(struct span in, const struct http_limits *limits,
	uint32_t *scanned, struct http_head *head);

// Parse one whole request head.
//   in    what http_head_end() found, all of it and nothing after; anything else is HTTP_BAD
//   head  means something only on HTTP_OK
// Refuses beyond the grammar: no Host with HTTP/1.1, two at all or a malformed one; Content-Length
// with Transfer-Encoding; either one repeated or malformed; a transfer coding other than `chunked`,
// or any in HTTP/1.0. README.md lists it all.
enum http_result http_request_parse(
	struct span in, const struct http_limits *limits, struct http_head *head);

// Parse one whole answer head from an origin, likewise.
//   request_method  what was asked: answers to HEAD have no body
enum http_result http_answer_parse(struct span in, const struct http_limits *limits,
	enum http_method request_method, struct http_head *head);

// Whether Connection lists `name` (in any case): such a field is not passed on (RFC 9110 7.6.1).
bool http_connection_lists(const struct http_head *head, struct span name);

// Name and value of a field, in the head's bytes.
static inline struct span http_field_name(
	const struct http_head *head, const struct http_field *field)
{
	return (struct span){head->bytes + field->name_at, field->name_len};
}

static inline struct span http_field_value(
	const struct http_head *head, const struct http_field *field)
{
	return (struct span){head->bytes + field->value_at, field->value_len};
}

// The first field with that id, or NULL. Go on with http_field_next().
static inline const struct http_field *http_field_first(
	const struct http_head *head, enum http_field_id id)
{
	return head->first[id] ? &head->fields[head->first[id] - 1] : NULL;
}

static inline const struct http_field *http_field_next(
	const struct http_head *head, const struct http_field *field)
{
	return field->next ? &head->fields[field->next - 1] : NULL;
}
