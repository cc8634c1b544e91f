// The letters of a token: base64url (RFC 4648 5) of exactly 48 bytes, read by two engines with one
// meaning; the wider that the processor has is the one to use.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOKEN_TEXT_BYTES 64u
#define TOKEN_TEXT_WIRE_BYTES 48u

// Each reads the bytes that 64 letters stand for, and returns whether all of them were letters;
// what is written means something only then. They read and write no byte beyond. Pure; any thread.
bool token_text_read(const char text[TOKEN_TEXT_BYTES], uint8_t bytes[TOKEN_TEXT_WIRE_BYTES]);
bool token_text_read_scalar(
	const char text[TOKEN_TEXT_BYTES], uint8_t bytes[TOKEN_TEXT_WIRE_BYTES]);
bool token_text_read_avx2(const char text[TOKEN_TEXT_BYTES], uint8_t bytes[TOKEN_TEXT_WIRE_BYTES]);

// Write 48 bytes as letters.
void token_text_write(const uint8_t bytes[TOKEN_TEXT_WIRE_BYTES], char text[TOKEN_TEXT_BYTES]);
