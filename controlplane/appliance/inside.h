// The inside of appliance.h, for its files.
#pragma once

#include "controlplane/appliance/appliance.h"
#include "controlplane/appliance/appliance_count.h"
#include "controlplane/appliance/note.h"
#include "controlplane/appliance/shared.h"
#include "controlplane/cluster/ledger_wire.h"
#include "controlplane/cluster/member.h"
#include "controlplane/link/link.h"
#include "dataplane/gate/code.h"

#define APPLIANCE_PREFIX_BYTES 64u
#define APPLIANCE_CODES_MS 10000u // for a lane that the ledger has yet to hear of
#define APPLIANCE_LOOK_MS 1000u // between looks at how many codes of a lane were used
#define APPLIANCE_HURRY_MS 100u // between looks at who has a secret that is on its way
#define APPLIANCE_UNUSED_MAX 256u // places drawn for codes that were not good
#define APPLIANCE_FAILURE_BYTES 384u // with a key, and what to do
#define APPLIANCE_RANKS \
	(1u << 20) // slots with tickets that a line can tell apart, of all appliances

struct appliance {
	struct seal *seal;
	struct link *link;
	struct member *member;
	struct shared *shared;
	struct member_status status; // after the last turn, reply or news
	char prefix[APPLIANCE_PREFIX_BYTES], channel[APPLIANCE_PREFIX_BYTES + 8];
	struct ledger_wire_args args; // in memory of its own
	uint64_t sent_us, sent_ms; // when a batch last went out
	uint64_t received_us; // and its reply came in
	struct note note; // of this process: its number, when it was last heard
	bool has_no_note; // the last one could not be written
	bool has_begun; // the clock has joined, or goes on without
	bool is_joining; // no rooms and workers yet
	bool is_snapshot_due; // records have changed what workers go by
	bool was_resyncing, was_away, is_leaving;
	uint8_t conductor_seen; // when it was last said
	uint64_t skew_max_ms; // of replies, either way
	uint64_t left_us; // when goodbye began
	struct claim unused[APPLIANCE_UNUSED_MAX]; // CLAIM_LEAVE of such places
	uint32_t unused_count;
	uint64_t codes_epoch; // when uses of codes were last written back, or begun to be
	uint32_t codes_next, codes_of_next; // how far that is; and of the last one, how many times
	bool has_codes_epoch;
	uint64_t codes_until_ms; // a lane that the ledger does not know is waited for until then
	bool is_code_due, is_code_asked, is_code_unknown; // not all have been; some are on their
							  // way; some could not be
	char failure[APPLIANCE_FAILURE_BYTES]; // why nothing that the store says can be gone by
	bool is_code_late; // a lane is not known to the ledger, and waited for by nobody
	uint32_t code_unknown; // that lane
	uint64_t code_unknown_ms; // when the ledger last said so
	struct code_digest look; // a code that somebody asks about
	uint32_t look_lane;
	bool is_look_due; // to be asked
	uint64_t look_us, looked_us, look_used; // since when; when answered; what
	uint64_t shared_us; // when the conductor's part of what is shared was last done
	uint64_t full_us; // when the ledger last had no room for a record
	uint64_t failures, failed_us; // tries that ended so, and when the last did
};

// How the member stands, after each turn, reply or news: appliance.c
void appliance_look(struct control *c);

// Answer links into lanes: appliance_code.c
//   others  at most `room`, no less than `count`: what is left for the member, and places that are
//           to be given back
// Returns how many those are.
uint32_t appliance_take_links(struct control *c, const struct claim *claims, uint32_t count,
	struct claim *others, uint32_t room, uint64_t now_ms);

// Seams of the member for codes, as member.h has them; `ctx` is the control: appliance_code.c
bool appliance_code(void *ctx, const struct claim *claim, struct claim_answer *answer,
	struct ledger_entry *entry);
void appliance_code_answered(void *ctx, const struct claim *claim, const struct ledger_entry *entry,
	const struct ledger_answer *said, struct claim_answer *answer);
uint32_t appliance_code_offer(void *ctx, struct ledger_entry *entries, uint32_t max);
void appliance_code_offered(
	void *ctx, const struct ledger_entry *entry, const struct ledger_answer *answer);

// Seams of the member for draws, and what a record of one says: appliance_draws.c
uint32_t appliance_draws_offer(struct control *c, struct ledger_entry *entries, uint32_t max);
void appliance_draws_offered(
	struct control *c, const struct ledger_entry *entry, const struct ledger_answer *answer);
void appliance_draws_gathered(void *ctx, const struct ledger_news *item);
uint64_t appliance_draws_before(void *ctx, uint32_t line_id);
void appliance_draws_told(
	void *ctx, uint32_t id, uint32_t version, const uint8_t *bytes, uint32_t len);
bool appliance_draws_are_restored(struct control *c);

// Before each turn of the member: a ledger that has lost writes is told of all uses known here.
void appliance_code_look(struct control *c, uint64_t now_ms);

// What the configuration makes of rooms and pools: appliance_lines.c
struct appliance_nodes {
	struct member_line lines[MEMBER_LINES_MAX];
	struct member_node nodes[MEMBER_NODES_MAX];
	uint32_t line_count, node_count;
};
void appliance_nodes_fill(const struct control *c, struct appliance_nodes *nodes);

// As of engine.h: appliance_lines.c
int appliance_begin_line(struct control *c, struct control_room *room);
void appliance_end_line(struct control_room *room);
