// base64url without padding (RFC 4648 5).

#include "bench/crowd/token.h"

#define WIRE_BYTES 48u

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

static uint64_t number(const uint8_t *at, unsigned bytes)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < bytes; i++)
		n = n << 8 | at[i];
	return n;
}

bool token_read(struct span text, struct token *token)
{
	uint8_t wire[WIRE_BYTES];
	if (text.len != TOKEN_TEXT_BYTES)
		return false;
	for (unsigned i = 0, out = 0; i < TOKEN_TEXT_BYTES; i += 4) {
		uint32_t bits = 0;
		for (unsigned k = 0; k < 4; k++) {
			const int value = digit(text.at[i + k]);
			if (value < 0)
				return false;
			bits = bits << 6 | (uint32_t)value;
		}
		wire[out++] = (uint8_t)(bits >> 16);
		wire[out++] = (uint8_t)(bits >> 8);
		wire[out++] = (uint8_t)bits;
	}
	*token = (struct token){
		.kind = wire[2],
		.key = number(wire + 8, 8),
		.visitor = number(wire + 16, 8),
		.expires = (uint32_t)number(wire + 28, 4),
	};
	return wire[0] == 1;
}
