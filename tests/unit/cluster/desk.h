// A desk: a conductor, and the one who sends its batches. The ledger's answers are what a test
// says.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/conductor.h"
#include "dataplane/gate/place.h"

#define START_MS 1764500000000ull
#define TICKETS 500u
#define LINE 7u
#define POOL 9u
#define FENCE 3u

// Answers are DONE unless a test says otherwise.
struct desk {
	struct conductor *conductor;
	struct place_line *place;
	struct ledger_entry entries[CONDUCTOR_ENTRIES_MAX];
	uint32_t count;
	struct ledger_view view; // of the line
	struct ledger_member members[2];
	uint32_t member_count;
	uint64_t now_ms, fence, epoch;
	int64_t correction_ms, raw_ahead_ms;
	uint8_t conductor_is, node_verdict, view_verdict, threshold_verdict;
	bool is_skewed, is_recovering;
};

// A conductor of one line, of a hundred slots, in which TICKETS wait, one each 10 ms.
void desk_open(struct desk *d);
void desk_close(struct desk *d);

// Nodes: that line, as it is first, and a pool.
struct conductor_node desk_line(const struct desk *d);
struct conductor_node desk_pool(uint32_t id, uint32_t parent);

// A batch and its reply, 10 ms later; batches for `ms`, returning how many thresholds were said.
void desk_batch(struct desk *d);
uint32_t desk_run(struct desk *d, uint64_t ms);

// The first entry of a kind in the last batch, or NULL; how many there are.
const struct ledger_entry *desk_said(const struct desk *d, uint8_t kind);
uint32_t desk_count(const struct desk *d, uint8_t kind);

// The key below which `rank` tickets stand.
uint64_t desk_key(const struct desk *d, uint64_t rank);
