// Any text: what decodes is a token, and encodes to the same text.

#include "dataplane/gate/token.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct token_wire wire;
	struct token token;
	if (!token_decode((struct span){(const char *)data, len}, &wire, &token))
		return 0;
	char text[TOKEN_TEXT_BYTES];
	uint8_t body[MAC_MESSAGE_BYTES];
	token_encode(&wire, text);
	assert(len == TOKEN_TEXT_BYTES && memcmp(text, data, len) == 0);
	token_pack(&token, body);
	assert(memcmp(body, wire.body, sizeof(body)) == 0);
	return 0;
}
