// Making and checking what syncookie.h describes.
//
// One SipHash over the tuple and the four told bits gives 64 bits that nobody else knows: 20 of
// them stand in the cookie, the rest key a multiply-shift hash of the peer's number (Dietzfelbinger
// et al. 1997) of 8 bits. A guess succeeds once in 2^27, since two keys are good at a time.
//
// The two parts tell a stranger (20 bits wrong: RST) from a segment of a connection that we are
// about to have, whose first one is still on its way (8 bits wrong: silence, it will be sent
// again). Were the number left out, any later segment of an upload that we have reset would open a
// new connection in the midst of it.

#include "dataplane/net/tcp/syncookie.h"

#include "dataplane/net/tcp/tcp.h"

#include <assert.h>
#include <string.h>

#define TOLD_BITS 4u
#define HAS_TIMESTAMP 0x8u
#define MSS_INDEX 0x7u
#define OPTION_SACK 0x10u
#define OPTION_SCALE 0x0fu
#define TS_LOW ((1u << SYNCOOKIE_TS_BITS) - 1)

// The floor first; then what tunnels, IPv6 and PPPoE leave of Ethernet's 1460; then jumbo frames.
static const uint16_t syncookie_mss[] = {TCP_MSS_MIN, 1220, 1300, 1360, 1400, 1440, 1460, 8940};
static_assert(sizeof(syncookie_mss) / sizeof(syncookie_mss[0]) == MSS_INDEX + 1, "three bits");

static struct siphash_key derive(struct siphash_key from, uint64_t label)
{
	uint64_t first[] = {label, 0}, second[] = {label, 1};
	return (struct siphash_key){siphash_words(from, first, 2), siphash_words(from, second, 2)};
}

static void fill_slots(struct syncookie *s, uint64_t slot)
{
	for (unsigned age = 0; age < 3; age++)
		s->slots[age] = derive(s->root, slot - age);
	s->slot_ends_us = (slot + 1) * SYNCOOKIE_SLOT_US;
}

void syncookie_init(struct syncookie *syncookie, const uint8_t secret[32], uint64_t now_us)
{
	memcpy(&syncookie->root, secret, sizeof(syncookie->root));
	memcpy(&syncookie->offsets, secret + sizeof(syncookie->root), sizeof(syncookie->offsets));
	fill_slots(syncookie, now_us / SYNCOOKIE_SLOT_US);
}

void syncookie_turn(struct syncookie *syncookie, uint64_t now_us)
{
	if (now_us >= syncookie->slot_ends_us)
		fill_slots(syncookie, now_us / SYNCOOKIE_SLOT_US);
}

static uint64_t hash_tuple(struct siphash_key key, const struct stream_address *local,
	const struct stream_address *peer, unsigned told)
{
	uint64_t words[5];
	memcpy(words, peer->ip, 16);
	memcpy(words + 2, local->ip, 16);
	words[4] = (uint64_t)told << 32 | (uint32_t)peer->port << 16 | local->port;
	return siphash_words(key, words, 5);
}

static uint32_t seal_number(uint64_t hash, uint32_t number)
{
	uint32_t factor = (uint32_t)hash | 1, pad = (uint32_t)(hash >> 32);
	return (uint8_t)((number * factor >> 24) + pad);
}

uint32_t syncookie_make(const struct syncookie *syncookie, const struct tcp_segment *syn)
{
	unsigned index = MSS_INDEX, mss = syn->has_mss ? syn->mss : TCP_MSS_MIN;
	while (index > 0 && syncookie_mss[index] > mss)
		index--;
	unsigned told = index | (syn->has_timestamp ? HAS_TIMESTAMP : 0);
	uint64_t hash = hash_tuple(syncookie->slots[0], &syn->local, &syn->peer, told);
	return (uint32_t)(hash >> 44) << 12 | seal_number(hash, syn->seq) << TOLD_BITS | told;
}

enum syncookie_result syncookie_check(const struct syncookie *syncookie,
	const struct tcp_segment *segment, struct syncookie_told *told)
{
	uint32_t cookie = segment->ack - 1, bits = cookie & (HAS_TIMESTAMP | MSS_INDEX);
	for (unsigned age = 0; age < 3; age++) {
		uint64_t hash =
			hash_tuple(syncookie->slots[age], &segment->local, &segment->peer, bits);
		if (hash >> 44 != cookie >> 12)
			continue;
		if (age == 2)
			return SYNCOOKIE_LATE;
		if (seal_number(hash, segment->seq - 1) != (uint8_t)(cookie >> TOLD_BITS))
			return SYNCOOKIE_OTHER;
		told->mss = syncookie_mss[bits & MSS_INDEX];
		told->has_timestamp = bits & HAS_TIMESTAMP;
		return SYNCOOKIE_GOOD;
	}
	return SYNCOOKIE_BAD;
}

uint32_t syncookie_ts_offset(const struct syncookie *syncookie, const struct stream_address *local,
	const struct stream_address *peer)
{
	return (uint32_t)hash_tuple(syncookie->offsets, local, peer, 0);
}

uint32_t syncookie_ts_write(uint32_t ts_now, struct syncookie_options options)
{
	uint32_t low = options.scale | (options.has_sack ? OPTION_SACK : 0);
	uint32_t value = (ts_now & ~TS_LOW) | low;
	return tcp_after(value, ts_now) ? value - TS_LOW - 1 : value;
}

struct syncookie_options syncookie_ts_read(uint32_t ts_echo)
{
	return (struct syncookie_options){ts_echo & OPTION_SCALE, ts_echo & OPTION_SACK};
}
