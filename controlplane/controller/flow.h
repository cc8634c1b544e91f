// Flow: how fast the line moves, and what that makes of the wait.
//
// Measured in ranks of the threshold per second, over seconds in which somebody waited all through:
// while nobody waits the threshold moves only as people come, which says nothing of the wait. Times
// are of the available clock (state.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define FLOW_SECONDS 600u // longest measurement
#define FLOW_STEADY_MS 60000u // shortest that the wait relies on alone
#define FLOW_UNKNOWN UINT64_MAX

struct flow_sample {
	uint32_t moved; // ranks
	uint32_t ms;
};

struct flow {
	struct flow_sample samples[FLOW_SECONDS]; // ring; the last is samples[(end - 1) % ..]
	uint64_t end; // ever taken
	uint32_t count; // of those, how many are good
	uint64_t began_ms, rank; // of the second under way
	bool waited; // all through it
	uint64_t last_ms; // when the last sample was taken
};

// Begin to measure, from a threshold of rank `rank`.
void flow_init(struct flow *f, uint64_t rank, uint64_t now_ms);

// Every turn.
//   rank     of the threshold
//   waiting  whether somebody waits beyond it
void flow_tick(struct flow *f, uint64_t rank, bool waiting, uint64_t now_ms);

// Ranks per second.
//   expected  what limits and sessions suggest, used until enough is measured; 0: unknown
double flow_rate(const struct flow *f, double expected);

// Expected wait per person ahead in 2^-32 s, as a range; FLOW_UNKNOWN when the line stands.
void flow_wait(const struct flow *f, double expected, uint64_t *low, uint64_t *high);
