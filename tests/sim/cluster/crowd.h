// A crowd of members that send random batches, by a seed: for whatever plays the ledger.
//
// They know what replies told them, and no more: tickets, sessions, fences, cursors. Clocks jump,
// batches come late, runs change, limits change; often enough that every verdict comes up.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/ledger.h"

#define CROWD_MEMBERS 4u
#define CROWD_LINES 4u
#define CROWD_NODES 6u // with two that lines share
#define CROWD_TICKETS 48u // at a time
#define CROWD_ENTRIES 12u // of a batch

struct crowd_ticket {
	uint64_t key, visitor, session;
	uint32_t line, expires;
	bool is_direct;
};

struct crowd_member {
	struct ledger_batch batch; // the last one
	struct ledger_entry entries[CROWD_ENTRIES];
	uint64_t totals[CROWD_LINES];
	uint64_t cursor, applied, fence, writes, gone_ms;
	uint32_t tickets[CROWD_ENTRIES]; // which ticket each entry is about, + 1
	uint8_t number;
	bool is_skewed, is_recovering; // said the last reply
	uint64_t epoch; // likewise
};

struct crowd {
	uint64_t random;
	uint64_t raw_ms; // of the store
	int64_t ahead_ms; // cluster time - raw_ms
	char run[LEDGER_RUN_BYTES + 1];
	struct crowd_member members[CROWD_MEMBERS];
	struct crowd_ticket tickets[CROWD_TICKETS];
	uint64_t thresholds[CROWD_LINES];
	uint64_t batches;
	uint8_t blob[8];
	bool is_calm; // no faults: clocks, losses
	bool is_settled; // nodes are not changed any more
	bool is_shared; // three lines share one capacity by weight, and people come slowly
	bool is_single; // one entry a batch, and nothing is granted elsewhere (LEDGER_TAKEN)
};

// All random things come from here.
uint64_t crowd_random(struct crowd *c, uint64_t limit);

void crowd_init(struct crowd *c, uint64_t seed);

// The next batch; perhaps the last one of its member again. Time has gone on. The crowd's until the
// next call.
const struct ledger_batch *crowd_batch(struct crowd *c, struct crowd_member **member);

// What came back. Aborts if it is not what a reply must be.
void crowd_reply(struct crowd *c, struct crowd_member *member, const char *bytes, size_t len);
