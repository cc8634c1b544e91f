// A table of lines of eight places, each one cache line; the hash picks the line, 32 more of its
// bits are the tag. Two sources that share a tag share their allowance: one pair in 2^32.

#include "dataplane/net/tcp/sources.h"

#include "dataplane/net/tcp/siphash.h"
#include "drivers/ip.h"

#include <stdlib.h>
#include <string.h>

#define LINES 2048u // 128 kB
#define PLACES 8u

struct place {
	uint32_t tag;
	uint16_t second; // modulo 2^16
	uint16_t count;
};

struct sources {
	struct siphash_key key;
	struct place lines[LINES][PLACES] __attribute__((aligned(64)));
};

struct sources *sources_create(uint64_t seed)
{
	struct sources *sources = aligned_alloc(64, sizeof(*sources));
	if (!sources)
		return NULL;
	memset(sources, 0, sizeof(*sources));
	sources->key = (struct siphash_key){seed, ~seed};
	return sources;
}

void sources_destroy(struct sources *sources)
{
	free(sources);
}

uint64_t sources_bytes(void)
{
	return sizeof(struct sources);
}

// The network, in one word: the /24 of a mapped address, else the /56.
static uint64_t network_of(const uint8_t ip[16])
{
	uint64_t network = 0;
	if (ip_is_v4(ip))
		memcpy(&network, ip + IP_MAPPED_BYTES, 3);
	else
		memcpy(&network, ip, 7);
	return network;
}

// The place of a source; else one of another second, else the one with the fewest.
static struct place *find(struct place *line, uint32_t tag, uint16_t second)
{
	struct place *least = line;
	for (struct place *place = line; place < line + PLACES; place++) {
		if (place->tag == tag)
			return place;
		unsigned count = place->second == second ? place->count : 0;
		if (count < (least->second == second ? least->count : 0))
			least = place;
	}
	*least = (struct place){tag, second, 0};
	return least;
}

bool sources_take(struct sources *sources, const uint8_t ip[16], uint32_t limit, uint32_t now_ms)
{
	if (limit == 0)
		return true;
	uint64_t network = network_of(ip), hash = siphash_words(sources->key, &network, 1);
	uint16_t second = (uint16_t)(now_ms / 1000);
	struct place *place = find(sources->lines[hash % LINES], (uint32_t)(hash >> 32), second);
	if (place->second != second)
		*place = (struct place){place->tag, second, 0};
	if (place->count >= limit || place->count == UINT16_MAX)
		return false;
	place->count++;
	return true;
}
