// A burst of small chunks becomes one chunk: their data is gathered behind one chunk head, so that
// it costs one write and the origin's chunking says nothing to the client. Extensions and trailers
// are checked by the decoder and dropped.

#include "dataplane/origin/body.h"

#include <assert.h>

void body_begin(struct body *body, enum http_body in, uint64_t length, enum http_body out)
{
	*body = (struct body){.in = in, .out = out, .left = length};
	body->has_ended = in == HTTP_BODY_NONE || (in == HTTP_BODY_LENGTH && length == 0);
}

static void add(struct body_step *step, struct span part)
{
	assert(step->count < BODY_PARTS_MAX);
	step->parts[step->count++] = part;
}

// Bytes that are the body: by length or until the connection ends.
static uint64_t gather_plain(struct body *body, struct span in, struct body_step *step)
{
	if (body->in == HTTP_BODY_LENGTH) {
		if (in.len > body->left)
			in.len = body->left;
		body->left -= in.len;
		body->has_ended = body->left == 0;
	}
	step->consumed = in.len;
	if (in.len > 0)
		add(step, in);
	return in.len;
}

// The data of some chunks. Returns false if they are bad.
static bool gather_chunks(
	struct body *body, struct span in, struct body_step *step, uint64_t *bytes)
{
	for (unsigned n = 0; n < BODY_DATA_MAX; n++) {
		struct span data;
		size_t consumed;
		enum chunk_result result = chunk_decode(
			&body->chunks, span_from(in, step->consumed), &consumed, &data);
		step->consumed += consumed;
		if (result != CHUNK_DATA) {
			body->has_ended = result == CHUNK_DONE;
			return result == CHUNK_DONE || result == CHUNK_MORE;
		}
		add(step, data);
		*bytes += data.len;
	}
	return true;
}

bool body_step(struct body *body, struct span in, struct span before, struct body_step *step)
{
	assert(!body->has_ended);
	step->consumed = 0;
	step->count = 0;
	if (before.len > 0)
		add(step, before);
	unsigned head = step->count;
	if (body->out == HTTP_BODY_CHUNKED)
		add(step, SPAN("")); // the chunk's head, when its size is known
	uint64_t bytes = 0;
	if (body->in != HTTP_BODY_CHUNKED)
		bytes = gather_plain(body, in, step);
	else if (!gather_chunks(body, in, step, &bytes))
		return false;
	if (body->out != HTTP_BODY_CHUNKED)
		return true;
	if (bytes > 0) {
		size_t len = chunk_head_write(step->chunk_head, bytes);
		step->parts[head] = (struct span){step->chunk_head, len};
		add(step, CHUNK_TAIL);
	} else {
		step->count = head;
	}
	if (body->has_ended)
		add(step, CHUNK_LAST);
	return true;
}

bool body_close(struct body *body, struct body_step *step)
{
	step->consumed = 0;
	step->count = 0;
	if (body->has_ended)
		return true;
	if (body->in != HTTP_BODY_CLOSE)
		return false;
	body->has_ended = true;
	if (body->out == HTTP_BODY_CHUNKED)
		add(step, CHUNK_LAST);
	return true;
}
