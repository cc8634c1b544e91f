// Any bytes as a PROXY header. What is taken is taken whole: the same with nothing behind it, and
// incomplete one byte sooner.

#include <assert.h>

#include "drivers/proxy/header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct header found, again;
	struct span in = {(const char *)data, len};
	if (header_parse(in, &found) != HEADER_OK)
		return 0;
	assert(found.bytes > 0);
	assert(found.bytes <= len);
	assert(found.bytes <= HEADER_BYTES_MAX);
	in.len = found.bytes;
	assert(header_parse(in, &again) == HEADER_OK);
	assert(again.bytes == found.bytes);
	assert(again.has_addresses == found.has_addresses);
	in.len--;
	assert(header_parse(in, &again) == HEADER_MORE);
	return 0;
}
