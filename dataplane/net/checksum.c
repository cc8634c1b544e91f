// One's complement sums: the sum of 32-bit halves of 64-bit words, kept apart in wide lanes, so
// that no carry is lost and none is waited for. 2^32 halves fit a lane, more than any packet has.
//
// Loads and stores go through memcpy: packet bytes have no type of their own, and reading them
// through another one is how wrong sums come about.

#include "dataplane/net/checksum.h"

#include <arpa/inet.h>
#include <string.h>

// One copy for each width of registers that the processor may have; the loader picks.
#if defined(__x86_64__) && !defined(__clang__) // clang 14 names them so that nobody else finds them
#define FOR_EACH_WIDTH __attribute__((target_clones("avx2", "default")))
#else
#define FOR_EACH_WIDTH
#endif

typedef uint64_t lanes __attribute__((vector_size(32)));

static inline __attribute__((always_inline)) uint64_t halves(uint64_t word)
{
	return (word & 0xffffffff) + (word >> 32);
}

// `to` is a constant NULL or not, so that each caller gets its own loop.
static inline __attribute__((always_inline)) uint64_t walk(
	uint8_t *to, const char *from, size_t len)
{
	lanes low = {0}, high = {0}, piece;
	for (; len >= sizeof(piece); len -= sizeof(piece), from += sizeof(piece)) {
		memcpy(&piece, from, sizeof(piece));
		if (to) {
			memcpy(to, &piece, sizeof(piece));
			to += sizeof(piece);
		}
		low += piece & 0xffffffff;
		high += piece >> 32;
	}
	low += high;
	uint64_t sum = (low[0] + low[1]) + (low[2] + low[3]), word;
	for (; len >= sizeof(word); len -= sizeof(word), from += sizeof(word)) {
		memcpy(&word, from, sizeof(word));
		if (to) {
			memcpy(to, &word, sizeof(word));
			to += sizeof(word);
		}
		sum += halves(word);
	}
	if (len == 0) // then `from` may be NULL
		return sum;
	word = 0;
	memcpy(&word, from, len);
	if (to)
		memcpy(to, from, len);
	return sum + halves(word);
}

FOR_EACH_WIDTH uint64_t checksum_sum(struct span bytes)
{
	return walk(NULL, bytes.at, bytes.len);
}

FOR_EACH_WIDTH uint64_t checksum_copy(void *to, struct span from)
{
	return walk(to, from.at, from.len);
}

uint64_t checksum_pseudo(
	const uint8_t from[16], const uint8_t to[16], uint8_t protocol, uint32_t len)
{
	uint64_t words[4], sum = htons(protocol) + (uint64_t)htonl(len);
	memcpy(words, from, 16);
	memcpy(words + 2, to, 16);
	for (unsigned i = 0; i < 4; i++)
		sum += halves(words[i]);
	return sum;
}
