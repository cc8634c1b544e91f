// Token: what a ticket or a pass says, as anybody can read it who holds one (contract: 48 bytes as
// 64 base64url characters, big-endian). Read independently of the product; MACs are its secret.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/span.h"

#define TOKEN_TEXT_BYTES 64u

struct token {
	uint8_t kind; // 1 ticket, 2 pass
	uint64_t key; // ticket: the place; pass: the session id
	uint64_t visitor;
	uint32_t expires; // unix s; 0 for tickets
};

// Returns false, filling nothing, if it is not a token. Pure.
bool token_read(struct span text, struct token *token);
