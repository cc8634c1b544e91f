// Addresses and ports of a flow as words to be hashed. Pure; any thread.
#pragma once

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "drivers/stream.h"

#define TUPLE_WORDS_MAX 5u

// Fill `words`: two for IPv4, five for IPv6, so that their number tells them apart, as SipHash
// does.
//   told  what else is to be hashed with it
// Returns how many.
static inline unsigned tuple_words(const struct stream_address *local,
	const struct stream_address *peer, uint32_t told, uint64_t words[TUPLE_WORDS_MAX])
{
	uint64_t rest = (uint64_t)told << 32 | (uint32_t)peer->port << 16 | local->port;
	uint32_t prefix, from, to;
	memcpy(words, peer->ip, 16);
	memcpy(&prefix, peer->ip + 8, 4);
	if (words[0] == 0 && prefix == htonl(0xffff)) { // IPv4 mapped, and so is the other
		memcpy(&from, peer->ip + 12, 4);
		memcpy(&to, local->ip + 12, 4);
		words[0] = (uint64_t)from << 32 | to;
		words[1] = rest;
		return 2;
	}
	memcpy(words + 2, local->ip, 16);
	words[4] = rest;
	return TUPLE_WORDS_MAX;
}
