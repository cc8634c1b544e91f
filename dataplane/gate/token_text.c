// The scalar engine, a table look-up a letter, and the choice between engines, made anew at every
// call as in head_scan.c.

#include "dataplane/gate/token_text.h"

#include <assert.h>

static_assert(TOKEN_TEXT_WIRE_BYTES * 8 == TOKEN_TEXT_BYTES * 6, "letters hold 6 bits each");

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

// The place in `letters` plus one; 0: no letter.
// clang-format off
static const uint8_t places[256] = {
	['-'] = 63,
	['0'] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
	['A'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
	14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26,
	['_'] = 64,
	['a'] = 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39,
	40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52,
};
// clang-format on

bool token_text_read(const char text[TOKEN_TEXT_BYTES], uint8_t bytes[TOKEN_TEXT_WIRE_BYTES])
{
	return __builtin_cpu_supports("avx2") ? token_text_read_avx2(text, bytes)
					      : token_text_read_scalar(text, bytes);
}

// Four letters are three bytes.
bool token_text_read_scalar(const char text[TOKEN_TEXT_BYTES], uint8_t bytes[TOKEN_TEXT_WIRE_BYTES])
{
	uint32_t wrong = 0;
	for (unsigned i = 0; i < TOKEN_TEXT_BYTES; i += 4, bytes += 3) {
		uint32_t group = 0;
		for (unsigned j = 0; j < 4; j++) {
			uint32_t value = (uint32_t)places[(uint8_t)text[i + j]] - 1;
			wrong |= value; // 0 - 1 has bits that no value has
			group = group << 6 | (value & 63);
		}
		bytes[0] = group >> 16;
		bytes[1] = group >> 8;
		bytes[2] = group;
	}
	return wrong < 64;
}

void token_text_write(const uint8_t bytes[TOKEN_TEXT_WIRE_BYTES], char text[TOKEN_TEXT_BYTES])
{
	for (unsigned i = 0; i < TOKEN_TEXT_BYTES; i += 4, bytes += 3) {
		uint32_t group = (uint32_t)bytes[0] << 16 | bytes[1] << 8 | bytes[2];
		for (unsigned j = 0; j < 4; j++)
			text[i + j] = letters[group >> (18 - 6 * j) & 63];
	}
}
