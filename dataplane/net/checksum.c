// One's complement sums: the sum of 32-bit halves of 64-bit words, kept apart in wide lanes, so
// that no carry is lost and none is waited for. 2^32 halves fit a lane, more than any packet has.
//
// Loads and stores go through memcpy: packet bytes have no type of their own, and reading them
// through another one is how wrong sums come about.

#include "dataplane/net/checksum.h"

#include <arpa/inet.h>
#include <assert.h>
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

static inline __attribute__((always_inline)) void take(
	uint8_t *to, const char *from, lanes *low, lanes *high)
{
	lanes piece;
	memcpy(&piece, from, sizeof(piece));
	if (to)
		memcpy(to, &piece, sizeof(piece));
	*low += piece & 0xffffffff;
	*high += piece >> 32;
}

// Fewer than eight bytes, and no more before them.
static inline __attribute__((always_inline)) uint64_t walk_few(
	uint8_t *to, const char *from, size_t len)
{
	uint64_t word = 0;
	for (size_t i = 0; i < len; i++) {
		memcpy((char *)&word + i, from + i, 1);
		if (to)
			memcpy(to + i, from + i, 1);
	}
	return halves(word);
}

// The last bytes of many, fewer than eight: those that end there, less what was taken before.
static inline __attribute__((always_inline)) uint64_t walk_rest(
	uint8_t *to, const char *from, size_t len)
{
	static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first byte is the lowest");
	uint64_t word;
	const size_t before = sizeof(word) - len;
	memcpy(&word, from - before, sizeof(word));
	if (to)
		memcpy(to - before, &word, sizeof(word));
	return halves(word >> 8 * before);
}

// `to` is a constant NULL or not, so that each caller gets its own loop.
static inline __attribute__((always_inline)) uint64_t walk(
	uint8_t *to, const char *from, size_t len)
{
	const bool is_few = len < sizeof(uint64_t);
	lanes low = {0}, high = {0};
	for (; len >= 2 * sizeof(low); len -= 2 * sizeof(low), from += 2 * sizeof(low)) {
		take(to, from, &low, &high);
		take(to ? to + sizeof(low) : NULL, from + sizeof(low), &low, &high);
		to = to ? to + 2 * sizeof(low) : NULL;
	}
	if (len >= sizeof(low)) {
		take(to, from, &low, &high);
		len -= sizeof(low);
		from += sizeof(low);
		to = to ? to + sizeof(low) : NULL;
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
	return sum + (is_few ? walk_few(to, from, len) : walk_rest(to, from, len));
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
