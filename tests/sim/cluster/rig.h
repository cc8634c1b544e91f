// Rig: a cluster for the conductor alone: members that do no more than it takes to have one, the
// ledger's model, and a crowd, in virtual time. A member knows what replies told it; it mints,
// polls go through its words, claims go into its next batch, and its conductor's entries behind
// them.
//
// One thread, steps of 10 ms, one random number generator: the seed replays everything.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/conductor.h"
#include "dataplane/gate/ranks.h"
#include "tests/sim/cluster/model.h"

#define RIG_MEMBERS 4u
#define RIG_LINES 2u
#define RIG_STEP_MS 10u
#define RIG_STEPS_MAX 60000u
#define RIG_CLAIMS_MAX 512u // of a batch
#define RIG_ENTRIES_MAX (RIG_LINES + RIG_CLAIMS_MAX + CONDUCTOR_ENTRIES_MAX)
#define RIG_LATER_MAX 128u // claims that a member puts off
#define RIG_POOL 0xf0u // node that the lines share, if there are two

struct rig_plan {
	uint64_t seed;
	uint32_t members, lines;
	struct ledger_node node; // of each line
	struct pool_limits pool; // what they share
	uint32_t weights[RIG_LINES], priorities[RIG_LINES];
	uint32_t people[RIG_LINES];
	uint32_t arrive_ms; // all within
	uint32_t claim_s, duration_ms;
	uint32_t no_show_percent, no_show_after; // of the first nobody stays away
	uint32_t return_ms; // when they come, all at once; 0: never
	uint32_t kill_every_ms, down_ms; // the conductor
	uint32_t shop_min_ms, shop_ms; // then the session is ended early; 0: kept to its end
	uint32_t direct_percent; // of those who come when nobody waits and are admitted at once
	uint32_t lose_percent; // of replies: the batch is sent again
	uint32_t jump_at_ms; // of the store's clock
	int32_t jump_ms;
};

enum rig_state { RIG_OUTSIDE, RIG_WAITING, RIG_ASKING, RIG_INSIDE, RIG_GONE };

struct rig_visitor {
	uint64_t key, id, session;
	uint64_t asked_ms, due_ms; // due: acts no sooner
	uint32_t line, expires, next; // next: in the list of a step
	uint8_t state; // enum rig_state
	bool is_away; // does not poll
	bool has_strayed; // has not polled as told
};

struct rig_line {
	struct place_line *place;
	struct ranks *ranks;
	uint64_t told; // slots below this one are in a batch
	uint64_t threshold, floor, threshold_rank; // as published
	struct ledger_words words;
	bool is_open;
};

struct rig_member {
	struct ledger_batch batch;
	struct ledger_entry entries[RIG_ENTRIES_MAX];
	uint32_t who[RIG_ENTRIES_MAX]; // visitor + 1 of a claim
	uint32_t queue[RIG_CLAIMS_MAX]; // visitors whose claims wait
	uint8_t kinds[RIG_CLAIMS_MAX];
	struct rig_later {
		uint64_t again_ms;
		uint32_t who;
	} later[RIG_LATER_MAX]; // the called who are nearly there: asked again, then answered
	uint32_t later_count;
	uint32_t queue_count, first_conductors; // first entry of the conductor
	struct rig_line lines[RIG_LINES];
	struct conductor *conductor;
	uint64_t cursor, writes, final, elected;
	uint64_t sent_ms, arrives_ms, replies_ms; // of the batch in flight; 0: none
	uint64_t down_until_ms; // 0: it is up
	char *reply;
	uint8_t number;
	bool is_lost; // this reply never comes
};

struct rig {
	struct rig_plan plan;
	struct model ledger;
	struct rig_member members[RIG_MEMBERS];
	struct rig_visitor *visitors;
	uint32_t visitor_count;
	uint32_t steps[RIG_STEPS_MAX]; // visitor + 1 whose turn it is in it
	uint64_t random, start_ms, now_ms, next_kill_ms;
	int64_t raw_ahead_ms; // of the store's clock
	// What happened.
	uint32_t granted[RIG_LINES], direct, lapsed, lapsed_obeying, kills, take_overs;
	uint32_t *grants_at; // of each step, of all lines, by the ledger
	uint64_t admitted;
	uint64_t longest_leaderless_ms, leader_seen_ms, fence;
	double used; // of the capacity, summed up over steps from used_from_ms on
	uint64_t used_from_ms;
	uint32_t used_steps, most_inside;
	uint64_t thresholds[RIG_LINES], floors[RIG_LINES];
};

// A plan of everyday: one line, four members.
struct rig_plan rig_everyday(uint64_t seed);

// Run it to its end. Aborts with the seed when something is broken that always holds: threshold,
// floor and fence do not fall, no more are inside than there are slots, and who polls as told does
// not lapse.
void rig_run(struct rig *rig, const struct rig_plan *plan);
void rig_fini(struct rig *rig);

// Abort unless admissions in every window of so many ms are within a rate and its burst.
void rig_check_rate(const struct rig *rig, const struct pool_limits *limits, uint64_t window_ms);

// Grants of all lines from `from_ms` to before `to_ms` after the beginning.
uint32_t rig_granted(const struct rig *rig, uint64_t from_ms, uint64_t to_ms);
