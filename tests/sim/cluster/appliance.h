// An appliance of a simulated cluster: its process with the member in it, what outlives that (the
// line's file, number, clock), and its connection to the store.
//
//   people ─▶ claims ─▶ member ─▶ the batch ─▶ store.h ─▶ model
//          ◀─ answers ◀─       ◀─ replies, news ◀─────────┘
//
// Time is given in ms of the world; what the appliance takes for cluster time is its own affair.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/member.h"
#include "dataplane/gate/ranks.h"

#define APPLIANCE_ENTRIES 2048u // of a line's index
#define APPLIANCE_ANSWERS 4096u
#define APPLIANCE_LINES 2u
#define APPLIANCE_KNOWN 1024u
#define APPLIANCE_NOTED_MS 10000u // between notes of when it last heard of the store
#define APPLIANCE_POOL 77u // id of the node above the lines

enum appliance_state {
	APPLIANCE_DOWN,
	APPLIANCE_UP,
	APPLIANCE_STOPPED, // SIGSTOP
};

// A line as all appliances have it configured.
struct appliance_line {
	uint32_t id;
	struct ledger_node node;
	uint32_t claim_s;
	uint8_t on_loss;
};

struct appliance_room {
	struct place_line *line; // survives the process, as the file does
	struct ranks *ranks;
	void *ranks_memory;
	uint64_t threshold, floor; // as seen last: they never move back
};

struct appliance {
	const struct appliance_line *lines;
	uint32_t line_count;
	const struct ledger_node *pool; // NULL: lines share nothing
	char name[LEDGER_NAME_MAX + 1];
	uint8_t number; // as kept in its state directory
	uint64_t noted_ms, noted_peers; // likewise, when it last heard of the store, and of whom
	enum appliance_state state;
	uint64_t born_ms; // of the process
	struct member *member;
	struct ended *ended, *left;
	struct appliance_room rooms[APPLIANCE_LINES];
	struct claim_answer answers[APPLIANCE_ANSWERS];
	uint32_t answer_count;
	uint64_t refused_key[APPLIANCE_LINES]; // smallest that its worker refused; UINT64_MAX
	uint32_t refused_poll_after;

	// Clock: of the world, run at its own speed, and what is added.
	int64_t clock_ms, ppm;
	bool is_clock_set;
	uint32_t known_max; // 0: APPLIANCE_KNOWN
	bool is_leaving; // serves nobody any more, and says goodbye
	uint64_t slewed_ms;

	// Barriers pass a turn later.
	uint64_t barrier;

	// Connection: what is to go out.
	const struct ledger_batch *out; // the batch that was sent; NULL: none
	uint64_t *random; // the world's
	uint64_t heard_ms; // when the store last heard of it with all news in its hands, in the
			   // world
	const struct member_seams *more; // of whoever has records and offers, with this for `ctx`;
					 // NULL: nobody
	uint32_t resyncs, recordings;
	uint8_t records[16]; // last byte of record (1, id)
};

void appliance_init(struct appliance *a, const char *name, const struct appliance_line *lines,
	uint32_t line_count, const struct ledger_node *pool, uint64_t *random);
void appliance_fini(struct appliance *a);

// Begin and end a process. It knows its number, and the clock that it had.
void appliance_start(struct appliance *a, uint64_t world_ms);
void appliance_kill(struct appliance *a);

// What it takes for cluster time.
uint64_t appliance_now(const struct appliance *a, uint64_t world_ms);

// Whether it serves people: it has a number, and has read what there is.
bool appliance_serves(const struct appliance *a);

void appliance_turn(struct appliance *a, uint64_t world_ms);
