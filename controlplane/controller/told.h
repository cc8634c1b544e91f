// Told: the longest poll_after that a waiting visitor may have been told.
//
// Workers compute poll_after from the rank of the threshold and the wait per person that they see.
// Control keeps what it published, second by second, and so knows the upper bound for any rank.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define TOLD_SECONDS 64u // more than the longest poll_after

struct told_second {
	uint64_t second; // that this is of
	uint64_t rank; // smallest rank of the threshold that was seen in it
	uint64_t wait; // largest known wait per person, 2^-32 s
	bool unknown; // the wait was unknown for a part of it
};

struct told {
	struct told_second seconds[TOLD_SECONDS];
	struct told_second now; // in force: seen from the last told_publish() on
	uint64_t silent_until_ms; // what was told before is not known; it is over by then
};

// Nothing is known of what was told before `now_ms`.
void told_forget(struct told *t, uint64_t now_ms);

// These words are seen from now on.
void told_publish(struct told *t, uint64_t rank, uint64_t wait_high, uint64_t now_ms);

// Within how many ms from `now_ms` everybody of a rank below `rank` will have polled, if all poll
// as told.
uint32_t told_longest_ms(struct told *t, uint64_t rank, uint64_t now_ms);
