// Making and checking what syncookie.h describes.
//
// Both parts are right: the segment opens the connection. A guess succeeds once in 2^26, since two
// keys are good at a time. Only the tuple's is: it belongs to a connection that we are about to
// have, whose first segment was lost or overtaken and will come; it is dropped in silence. (A
// stranger's is mistaken for that once in 250, and then has no RST, unless its timestamp says that
// it is one.) Were the peer's number left
// out, any later segment of an upload that we have reset would open a new connection in the midst
// of it; so it has the larger part.

#include "dataplane/net/tcp/syncookie.h"

#include "dataplane/net/tcp/tcp.h"
#include "dataplane/net/tcp/tuple.h"
#include "drivers/ip.h"

#include <assert.h>
#include <string.h>

#define TUPLE_BITS 9u
#define NUMBER_BITS 18u
#define TUPLE_LOWEST (1u << (NUMBER_BITS + TOLD_BITS))
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)
#define TOLD_BITS 4u
#define HAS_TIMESTAMP 0x8u
#define MSS_INDEX 0x7u
#define OPTION_SACK 0x10u
#define OPTION_SCALE 0x0fu
#define MSS_V6_UNSAID 1220u
#define TS_LOW ((1u << SYNCOOKIE_TS_BITS) - 1)

// The floor first; then what tunnels, IPv6 and PPPoE leave of Ethernet's 1460; then jumbo frames.
static const uint16_t syncookie_mss[] = {TCP_MSS_MIN, 1220, 1300, 1360, 1400, 1440, 1460, 8940};
static_assert(1 + TUPLE_BITS + NUMBER_BITS + TOLD_BITS == 32, "all of a number");
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

// The two sealed parts for a key, in their places, and the free bit, by chance.
static uint32_t seal(struct siphash_key key, const struct stream_address *local,
	const struct stream_address *peer, unsigned told, uint32_t number)
{
	uint64_t words[TUPLE_WORDS_MAX];
	unsigned count = tuple_words(local, peer, told, words);
	struct siphash_state s = siphash_begin(key);
	for (unsigned i = 0; i < count; i++)
		siphash_word(&s, words[i]);
	uint64_t tuple = siphash_end(s, siphash_last(count));
	siphash_word(&s, number);
	uint64_t sealed = siphash_end(s, siphash_last(count + 1));
	return ((uint32_t)(tuple >> 32) & ~(UINT32_MAX >> (1 + TUPLE_BITS))) |
	       ((uint32_t)sealed & NUMBER_MASK) << TOLD_BITS;
}

uint32_t syncookie_make(const struct syncookie *syncookie, const struct tcp_segment *syn)
{
	unsigned index = MSS_INDEX, unsaid = ip_is_v4(syn->local.ip) ? TCP_MSS_MIN : MSS_V6_UNSAID;
	unsigned mss = syn->has_mss ? syn->mss : unsaid; // RFC 9293 3.7.1
	while (index > 0 && syncookie_mss[index] > mss)
		index--;
	unsigned told = index | (syn->has_timestamp ? HAS_TIMESTAMP : 0);
	return seal(syncookie->slots[0], &syn->local, &syn->peer, told, syn->seq) | told;
}

enum syncookie_result syncookie_check(const struct syncookie *syncookie,
	const struct tcp_segment *segment, struct syncookie_told *told)
{
	uint32_t cookie = segment->ack - 1, bits = cookie & (HAS_TIMESTAMP | MSS_INDEX);
	enum syncookie_result result = SYNCOOKIE_BAD;
	for (unsigned age = 0; age < 3; age++) {
		uint32_t differs = cookie ^ bits ^
				   seal(syncookie->slots[age], &segment->local, &segment->peer,
					   bits, segment->seq - 1);
		differs &= ~SYNCOOKIE_FREE_BIT;
		if (differs == 0) {
			told->mss = syncookie_mss[bits & MSS_INDEX];
			told->has_timestamp = bits & HAS_TIMESTAMP;
			return age == 2 ? SYNCOOKIE_LATE : SYNCOOKIE_GOOD;
		}
		if (age < 2 && differs < TUPLE_LOWEST)
			result = SYNCOOKIE_OTHER;
	}
	return result;
}

uint32_t syncookie_ts_offset(const struct syncookie *syncookie, const struct stream_address *local,
	const struct stream_address *peer)
{
	uint64_t words[TUPLE_WORDS_MAX];
	unsigned count = tuple_words(local, peer, 0, words);
	return (uint32_t)siphash_words(syncookie->offsets, words, count);
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
