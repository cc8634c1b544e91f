// The engine: known answers, the threshold, and the choice between lanes and states.
//
// Lanes cost nearly the same for one message as for a registerful, states cost the same for each.
// Where the two cross depends on the processor (AVX-512 or AVX2, SHA-NI or not), so it is measured:
// both engines compute bursts of growing sizes, each size several times, and the shortest time
// counts, because whatever disturbs a measurement only makes it longer. The threshold is the
// smallest size from which lanes win at every size above too.
//
// The measurement stops after MEASURE_NS at the latest; sizes not reached by then count as won by
// states, so that a machine that is too busy to measure on gets the engine that is never bad.

#include "dataplane/gate/mac.h"

#include "dataplane/gate/mac_ipsec.h"
#include "dataplane/gate/mac_state.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEASURE_NS 5000000u
#define MEASURE_ROUNDS 12
#define MEASURE_JOBS_MAX 64u

struct mac_engine {
	struct mac_ipsec *lanes; // NULL: none
	uint32_t threshold;
};

// The secret 00 01 .. 1f over the message 80 81 .. 9f.
static const uint8_t known_tag[MAC_TAG_BYTES] = {0xe5, 0x8f, 0xa4, 0x98, 0x40, 0x70, 0xad, 0xbc,
	0xbd, 0xb7, 0xa5, 0xd9, 0x43, 0xa2, 0xa9, 0x78};

void mac_burst(struct mac_engine *engine, const struct mac_job *jobs, uint32_t count)
{
	if (count >= engine->threshold)
		mac_ipsec_burst(engine->lanes, jobs, count);
	else
		mac_state_burst(jobs, count);
}

uint32_t mac_threshold(const struct mac_engine *engine)
{
	return engine->threshold;
}

void mac_set_threshold(struct mac_engine *engine, uint32_t threshold)
{
	assert(threshold > 0);
	engine->threshold = engine->lanes ? threshold : MAC_LANES_NEVER;
}

// Jobs over one key and one message, with room for their tags.
struct trial {
	struct mac_key key;
	uint8_t message[MAC_MESSAGE_BYTES];
	uint8_t tags[MEASURE_JOBS_MAX][MAC_TAG_BYTES];
	struct mac_job jobs[MEASURE_JOBS_MAX];
};

static void trial_init(struct trial *trial)
{
	uint8_t secret[32];
	for (unsigned i = 0; i < sizeof(secret); i++)
		secret[i] = i;
	mac_key_init(&trial->key, secret, sizeof(secret));
	for (unsigned i = 0; i < MAC_MESSAGE_BYTES; i++)
		trial->message[i] = 0x80 + i;
	for (unsigned i = 0; i < MEASURE_JOBS_MAX; i++)
		trial->jobs[i] = (struct mac_job){&trial->key, trial->message, trial->tags[i]};
}

// Whether a full burst of the known message gives the known tag on every lane.
static bool known_answer_holds(
	struct mac_engine *engine, struct trial *trial, const uint8_t known[MAC_TAG_BYTES])
{
	memset(trial->tags, 0, sizeof(trial->tags));
	mac_burst(engine, trial->jobs, MEASURE_JOBS_MAX);
	for (unsigned i = 0; i < MEASURE_JOBS_MAX; i++)
		if (memcmp(trial->tags[i], known, MAC_TAG_BYTES) != 0)
			return false;
	return true;
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static uint64_t burst_ns(
	struct mac_engine *engine, struct trial *trial, uint32_t count, uint32_t threshold)
{
	mac_set_threshold(engine, threshold);
	uint64_t start = now_ns();
	mac_burst(engine, trial->jobs, count);
	return now_ns() - start;
}

// Whether lanes are faster than states for bursts of `count`. They take turns, so that whatever
// slows the machine down for a while slows both.
static bool lanes_win(struct mac_engine *engine, struct trial *trial, uint32_t count)
{
	uint64_t lanes = UINT64_MAX, states = UINT64_MAX;
	for (int round = 0; round < MEASURE_ROUNDS; round++) {
		uint64_t took = burst_ns(engine, trial, count, 1);
		lanes = took < lanes ? took : lanes;
		took = burst_ns(engine, trial, count, MAC_LANES_NEVER);
		states = took < states ? took : states;
	}
	return lanes < states;
}

// From the largest size down: as long as lanes win, the threshold follows.
static void threshold_measure(struct mac_engine *engine, struct trial *trial)
{
	static const uint32_t sizes[] = {64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1};
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);
	uint64_t end = now_ns() + MEASURE_NS;
	uint32_t threshold = MAC_LANES_NEVER;
	for (size_t i = 0; i < count && now_ns() < end; i++) {
		if (!lanes_win(engine, trial, sizes[i]))
			break;
		threshold = sizes[i];
	}
	mac_set_threshold(engine, threshold);
}

int mac_create(struct mac_engine **engine)
{
	struct trial trial;
	struct mac_engine *made = calloc(1, sizeof(*made)); // COLD: at start
	if (!made)
		return -ENOMEM;
	int ret = mac_ipsec_create(&made->lanes);
	if (ret < 0 && ret != -ENOTSUP)
		goto fail;
	trial_init(&trial);
	ret = -EBADMSG;
	made->threshold = MAC_LANES_NEVER;
	if (!known_answer_holds(made, &trial, known_tag))
		goto fail;
	mac_set_threshold(made, 1);
	if (!known_answer_holds(made, &trial, known_tag))
		goto fail;
	if (made->lanes)
		threshold_measure(made, &trial);
	*engine = made;
	return 0;

fail:
	mac_destroy(made);
	return ret;
}

void mac_destroy(struct mac_engine *engine)
{
	if (!engine)
		return;
	mac_ipsec_destroy(engine->lanes);
	free(engine);
}
