// The Internet checksum (RFC 1071). Pure; any thread.
//
// Sums are kept unfolded, in the order in which the bytes lie in memory: what is folded last is
// stored as it is. Sums of pieces may be added as long as each piece begins at an even offset; one
// that begins at an odd one is turned first. Nothing is updated in place (RFC 1624): every packet
// is written anew.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "drivers/span.h"

// The sum of bytes, fewer than 4 GB; an odd last one counts as if a zero followed.
uint64_t checksum_sum(struct span bytes);

// The same, copying them in the same pass to where none of them lies.
uint64_t checksum_copy(void *to, struct span from);

// The sum of a few 32-bit words, such as a header has.
static inline uint64_t checksum_words(const void *at, unsigned count)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < count; i++) {
		uint32_t word;
		memcpy(&word, (const char *)at + i * sizeof(word), sizeof(word));
		sum += word;
	}
	return sum;
}

// The sum of a pseudo-header (RFC 9293 3.1, RFC 8200 8.1).
//   from, to  IPv6, or IPv4 mapped: the mapping adds 0xffff, which is nothing (RFC 1071 2)
//   len       of what the checksum covers, bytes
uint64_t checksum_pseudo(
	const uint8_t from[16], const uint8_t to[16], uint8_t protocol, uint32_t len);

// Fold to 16 bits.
static inline uint16_t checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16); // below 2^17 + 2^16
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

// What a sum is when its bytes begin at an odd offset.
static inline uint64_t checksum_turn(uint64_t sum)
{
	return __builtin_bswap16(checksum_fold(sum));
}

// The checksum to store, as it lies in memory.
static inline uint16_t checksum_finish(uint64_t sum)
{
	return (uint16_t)~checksum_fold(sum);
}

// Whether what was summed, its checksum with it, is unharmed.
static inline bool checksum_is_good(uint64_t sum)
{
	return checksum_fold(sum) == 0xffff;
}
