// A body on its way through: taken out of the framing it came in and put into the one it leaves in
// (RFC 9112 6). No byte is copied or held; what is to be sent are spans of what came, with chunk
// heads and tails between.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/http/chunk.h"
#include "dataplane/http/head.h"

struct body {
	uint8_t in; // enum http_body
	uint8_t out; // likewise; HTTP_BODY_LENGTH and HTTP_BODY_CLOSE send the bytes as they are
	bool has_ended;
	uint64_t left; // HTTP_BODY_LENGTH: bytes to come
	struct chunk_decoder chunks; // HTTP_BODY_CHUNKED
};

#define BODY_DATA_MAX 12 // spans of data in one step; all go out as one chunk
#define BODY_PARTS_MAX (1 + 1 + BODY_DATA_MAX + 2)

// What to send now, in order.
struct body_step {
	size_t consumed; // bytes of the input
	unsigned count;
	struct span parts[BODY_PARTS_MAX];
	char chunk_head[CHUNK_HEAD_BYTES_MAX]; // parts may point here: do not copy the struct
};

// Begin a body. One without bytes (HTTP_BODY_NONE, length 0) has ended at once.
void body_begin(struct body *body, enum http_body in, uint64_t length, enum http_body out);

// Take the next bytes, as many as one step holds. Call again with the rest until all is consumed or
// the body has ended; what is then left belongs to what follows.
//   before  goes out first, as parts[0], where the caller may still replace it; may be empty
// Returns false if they are against the grammar; nothing of this step is to be sent. Pure.
bool body_step(struct body *body, struct span in, struct span before, struct body_step *step);

// The sender has closed. Returns false if bytes are missing; else the step holds what ends the
// body. Pure.
bool body_close(struct body *body, struct body_step *step);
