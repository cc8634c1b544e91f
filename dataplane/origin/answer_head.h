// An answer's head as the client gets it.
#pragma once

#include <stddef.h>

#include "dataplane/origin/exchange.h"

// What the client's connection is for after this answer.
enum answer_head_then {
	ANSWER_HEAD_GOES_ON, // said by silence, as in HTTP/1.1
	ANSWER_HEAD_KEEP_ALIVE, // said aloud, to HTTP/1.0
	ANSWER_HEAD_CLOSE,
	ANSWER_HEAD_UPGRADE, // 101
};

// What an answer's head may grow by, with the longest extra fields.
#define ANSWER_HEAD_ADDED_MAX (HTTP_FIELDS_MAX + 256 + EXCHANGE_EXTRA_BYTES_MAX)

// Write it.
//   head   from the origin
//   body   how the body leaves
//   extra  what the gate adds
// Out: the origin's status and fields in order, Date, Server and Set-Cookie included, without what
// concerns its connection and without Sluice-...; with extra->is_private also without
// Cache-Control, Expires and validators; then the added ones, a Date only if the origin sent none.
// Returns its length, never more than the head's own and ANSWER_HEAD_ADDED_MAX. Pure.
size_t answer_head_write(char *out, size_t out_bytes, const struct http_head *head,
	enum http_body body, enum answer_head_then then, const struct exchange_extra *extra);
