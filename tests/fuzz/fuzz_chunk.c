// Chunked bodies: decoded in one go and in pieces they are the same. The first byte says how the
// pieces are cut.

#include "dataplane/http/chunk.h"

#include <assert.h>
#include <stdlib.h>

#define INPUT_BYTES_MAX 8192

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

struct decoded {
	enum chunk_result result;
	size_t consumed;
	size_t bytes;
	char data[INPUT_BYTES_MAX];
};

// Decode `in` in pieces of up to `step` bytes.
static void decode(struct span in, size_t step, struct decoded *out)
{
	struct chunk_decoder decoder = {0};
	out->result = CHUNK_MORE;
	out->consumed = out->bytes = 0;
	while (out->consumed < in.len && out->result <= CHUNK_DATA) {
		struct span piece = span_from(in, out->consumed), body;
		if (piece.len > step)
			piece.len = step;
		size_t consumed;
		out->result = chunk_decode(&decoder, piece, &consumed, &body);
		assert(consumed > 0 && consumed <= piece.len);
		assert((out->result == CHUNK_DATA) == (body.len > 0));
		if (body.len > 0) {
			assert(body.at >= piece.at && body.at + body.len == piece.at + consumed);
			memcpy(out->data + out->bytes, body.at, body.len);
		}
		out->bytes += body.len;
		out->consumed += consumed;
	}
	if (out->result == CHUNK_DATA)
		out->result = CHUNK_MORE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct decoded once, pieces;
	if (len == 0 || len > INPUT_BYTES_MAX)
		return 0;
	struct span in = {(const char *)data + 1, len - 1};
	decode(in, INPUT_BYTES_MAX, &once);
	decode(in, 1 + data[0] % 16, &pieces);
	assert(once.result == pieces.result);
	assert(once.consumed == pieces.consumed);
	assert(once.bytes == pieces.bytes);
	assert(memcmp(once.data, pieces.data, once.bytes) == 0);
	return 0;
}
