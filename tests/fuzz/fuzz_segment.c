// Any bytes as a TCP segment. What is read lies within it, and is within its bounds.

#include <assert.h>

#include "dataplane/net/tcp/segment.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct tcp_segment segment;
	struct span bytes = {(const char *)data, len};
	if (!tcp_segment_read(bytes, &segment)) {
		assert(len < TCP_HEADER_BYTES || (data[12] >> 4) < 5 || (data[12] >> 4) * 4u > len);
		return 0;
	}
	assert(segment.payload.at + segment.payload.len == bytes.at + len);
	assert(segment.payload.len == len - (data[12] >> 4) * 4u);
	assert(segment.scale <= 14);
	assert(segment.sack_count <= TCP_SACK_MAX);
	assert(segment.flags & TCP_SYN || (!segment.has_mss && !segment.has_scale));
	return 0;
}
