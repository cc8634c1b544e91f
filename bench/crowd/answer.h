// Answer: one HTTP/1.1 response as it arrives, in pieces of any size.
//
// The head is kept whole, of the body the beginning; the rest is counted and passed over. A crowd
// reads its own server's answers, so this reader is lenient; it is bounded all the same.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/span.h"

#define ANSWER_HEAD_MAX 8192u
#define ANSWER_BODY_KEPT 1024u

enum answer_result {
	ANSWER_MORE, // not complete
	ANSWER_DONE,
	ANSWER_BAD, // not HTTP, a head too large, or bytes beyond the end: close
};

enum answer_part {
	ANSWER_HEAD,
	ANSWER_LENGTH, // a body of `left` bytes
	ANSWER_UNTIL_CLOSE,
	ANSWER_CHUNK_SIZE, // on the line of a chunk's size
	ANSWER_CHUNK, // `left` bytes of a chunk and its line end
	ANSWER_TRAILER, // after the last chunk, up to an empty line
	ANSWER_COMPLETE,
};

struct answer {
	uint8_t part; // enum answer_part
	bool closes; // the connection is not kept
	uint16_t status;
	uint32_t head_bytes, body_bytes, line_bytes;
	uint64_t left;
	char head[ANSWER_HEAD_MAX];
	char body[ANSWER_BODY_KEPT];
};

// Before the first byte of an answer.
void answer_begin(struct answer *answer);

// Take the next bytes off the connection.
enum answer_result answer_feed(struct answer *answer, struct span in);

// The connection is over. Returns whether that ends the answer as it should.
bool answer_is_whole_at_end(const struct answer *answer);

// The value of the first field of that name (in lower case), or at == NULL. Valid once the head is
// there.
struct span answer_field(const struct answer *answer, const char *name);

// The value of the cookie that the answer sets by that name, or at == NULL. One that it expires has
// an empty value.
struct span answer_cookie(const struct answer *answer, const char *name);

// What stands after `"name":` in the kept body: a string's bytes without quotes, or a number; or
// at == NULL. For flat JSON without escapes.
struct span answer_json(const struct answer *answer, const char *name);
