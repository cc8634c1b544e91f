// Any bytes as a PROXY header. What is taken is taken whole: the same with nothing behind it, and
// incomplete one byte sooner.

#include <assert.h>

#include "drivers/sockets/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct proxy proxy, again;
	struct span in = {(const char *)data, len};
	if (proxy_parse(in, &proxy) != PROXY_OK)
		return 0;
	assert(proxy.header_bytes > 0);
	assert(proxy.header_bytes <= len);
	assert(proxy.header_bytes <= PROXY_BYTES_MAX);
	in.len = proxy.header_bytes;
	assert(proxy_parse(in, &again) == PROXY_OK);
	assert(again.header_bytes == proxy.header_bytes);
	assert(again.has_addresses == proxy.has_addresses);
	in.len--;
	assert(proxy_parse(in, &again) == PROXY_MORE);
	return 0;
}
