// Models: heads that were read, by which others are read that differ from them in the value of
// Cookie alone.
//
// Who polls sends the same head each time, and so does everybody with the same browser, but for the
// cookies. Where all else is the same byte for byte, and the value is one that may stand there, the
// parser would find the same again: so what it found is copied, and what stands behind the value
// moved. The result is http_request_read()'s, bit for bit, or there is none.
//
// Everything here is pure: no state between calls, no allocation, any thread.
#pragma once

#include <stdbool.h>

#include "dataplane/http/head.h"

#define MODEL_BYTES_MAX 1024u // of a head without its cookies; a longer one makes no model

struct model {
	uint16_t before, after; // bytes of `text`: before the value of Cookie, and behind it
	uint16_t cookie; // index + 1 of that field; 0: there is none, and all is `before`
	uint16_t target_at;
	char text[MODEL_BYTES_MAX];
	struct http_head head; // its spans mean nothing
};

// Where the value of a line that is called Cookie begins, spelled as browsers do: of the one whose
// value begins `guess` before the end, as in a head that was read before, if there is one; else of
// the last one. Returns in.len if there is none.
size_t model_cookie(struct span in, size_t guess);

// Make a model of a head that http_request_read() has read.
//   cookie_at  model_cookie() of the head's bytes
// Returns false if it cannot be one: it is too long, it has more than one Cookie field or one that
// is spelled in another way or is empty, or its target names a host.
bool model_make(const struct http_head *head, size_t cookie_at, struct model *model);

// Read `in`, which is to be a whole head and nothing after, by a model.
//   cookie_at  model_cookie() of `in`
//   limits     those that the model's head was read under
//   head       means something only if true is returned
// Returns whether `in` is of the model and within the limits.
bool model_read(const struct model *model, struct span in, size_t cookie_at,
	const struct http_limits *limits, struct http_head *head);
