// Member: an appliance's side of a cluster. What claims/ and controller/ are to an appliance alone,
// this is to one of several: the same claims come in, the same answers go out, but the ledger
// decides (ledger.h). A called visitor whom it tells to poll again in a second is asked about again
// meanwhile, as controller/later.h does, so that no slot waits for a poll.
//
//   claims of all workers ─▶ member ─▶ batch ─▶ wire · link ─▶ ledger
//                              │ ▲                               │
//   answers, lines' words, ◀───┘ └── reply · news ◀──────────────┘
//   sets ended · left, ranks
//
// Nobody enters before the ledger knows it: an answer leaves when the reply to its batch is here.
// There is one batch in flight; it is the same batch until there is a reply, however often it goes
// out. Each has a conductor (conductor.h), which stands for election and speaks in its batches
// while it is in office.
//
// A turn, every 10 to 20 ms and at once when there are claims:
//   1. member_claims() with what the workers' rings hold, up to member_room()
//   2. member_turn(): slots are closed, a batch is made and sent, words of the lines are published
// Between turns, as it comes: member_connected(), member_lost(), member_reply(), member_news(). All
// of them may call seams; seams call nothing of this header.
//
// # The store away
//
// It is away while there is no connection, for MEMBER_AWAY_MS without a reply, while our name is
// another's, and while it recovers. Each line then goes by its `on_loss`:
//   hold    nobody is granted anything: the called are told `next`, newcomers take tickets, passes
//           go on as they are; nothing is parked (PLACE_OPEN_HOLD)
//   share   the line's rate, divided by the members that were live, from a bucket that is empty
//           when the store goes: who is called is granted at home and written back. The threshold
//           goes on by the rate; beyond whom all have counted each calls its own by its share.
//           Without a rate as hold
//   open    everybody is granted, and written back
//   reject  as hold; its owner takes no newcomers while member_line_is_away()
// What was granted, ended or given back meanwhile is in the ledger before it grants us anything
// again: it stands before all claims.
//
// # A store that has lost writes
//
// While it recovers we write back what we know (each line's threshold and floor, our grants and
// renewals, what ended, what was given back, our slots, the fence), and say that it is all there.
// So whatever was granted here is remembered until it is over and floor has passed its key, up to
// `known_max`; as many grants as there is room for are asked for, no more.
//
// No I/O, no clock, no threads: a simulation drives it (tests/sim/cluster). Control thread only.
// Times are unix milliseconds of cluster time as this appliance knows it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/conductor.h"
#include "controlplane/cluster/ledger.h"
#include "dataplane/gate/claim.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/rooms.h"

struct ranks;

#define MEMBER_CLAIMS_MAX 4096u // claims that wait for a batch; more stay in the workers' rings
#define MEMBER_LATE_MS 1000u // an older claim has been given up by its worker
#define MEMBER_LATER_MAX 128u // called whose answer is put off, since their turn is near
#define MEMBER_LATER_MS 700u // after it was sent, a claim is put off no longer
#define MEMBER_LATER_STEP_MS \
	20u // the ledger is asked again after this, and a ms for each who is
	    // put off: fewer than a thousand times a second
#define MEMBER_SYNC_MS 200u // default: between batches when there is nothing to say
#define MEMBER_AWAY_MS 1000u // without a reply for longer the store is away
#define MEMBER_HOLD_MS 200u // a reply that takes longer: nothing is parked
#define MEMBER_AGAIN_MS 500u // a batch that was refused as a whole is sent again after this
#define MEMBER_RESYNC_AGAIN_MS 5000u // ranks that found no room are read again after this
#define MEMBER_RECORDS_MAX 256u // records that wait for the ledger
#define MEMBER_VIEW_MS 1000u // between views of a line, where no conductor asks more often
#define MEMBER_LINES_MAX 1024u
#define MEMBER_AGES 1024u // ms that the age of a decision is told by; older ones are of the last
#define MEMBER_NODES_MAX 2048u // lines, and pools and rooms that they share

// One list: field, text of the metric.
#define MEMBER_COUNTERS(X) \
	X(turns, "turns taken") \
	X(batches, "batches made") \
	X(repeats, "batches sent again, for want of a reply") \
	X(replies, "replies taken") \
	X(replies_bad, "replies and news that could not be read") \
	X(skewed, "batches that the clocks disagreed about: nothing was granted") \
	X(refused, "batches refused as a whole: the name is another's, or there is no number") \
	X(news, "news taken") \
	X(resyncs, "times the state was read anew") \
	X(recoveries, "times everything was written back") \
	X(called, "claims by the called") \
	X(direct, "claims by newcomers") \
	X(renew, "renewals asked for") \
	X(end, "sessions that were to end early") \
	X(leave, "tickets given back") \
	X(gone, "answers that found nobody") \
	X(passed, "visitors forwarded uncounted, mode off") \
	X(codes, "codes asked about") \
	X(granted, "answers that admitted") \
	X(granted_away, "of these, while the store was away") \
	X(late, "claims that came too late to be answered") \
	X(unknown_room, "claims for a room that is no more") \
	X(undelivered, "answers that their worker did not take") \
	X(ended_full, "sessions not ended early, or not known everywhere: a set is full") \
	X(left_untold, "tickets given back that workers take for waiting: the set is full") \
	X(left_refused, "tickets not given back: there is no room to remember") \
	X(later, "of the called, those asked about again before they were answered") \
	X(known_full, "claims not passed on: what is granted could not be remembered") \
	X(unsaid, "reports that found no room") \
	X(written_back, "sessions that the ledger was told of afterwards") \
	X(conflicts, "of these, those it knew otherwise: ended here") \
	X(records_refused, "records that the ledger did not take")

struct member_counters {
#define X(name, text) uint64_t name;
	MEMBER_COUNTERS(X)
#undef X
};

enum member_on_loss { // as config_on_store_loss
	MEMBER_HOLD,
	MEMBER_SHARE,
	MEMBER_OPEN,
	MEMBER_REJECT,
};

// A line: a room or a lane. What it points to stays the caller's.
struct member_line {
	uint32_t line_id;
	struct place_line *line; // place_begin() comes with the first reply, or when tickets are
				 // drawn without: before that our clock may be wrong
	struct ranks *ranks; // of all appliances (ranks.h), that `line` shares (place_share)
	struct ledger_node node; // limits, and what the line is below; node.config: hash of what is
				 // configured here
	uint32_t claim_s; // how long a turn waits to be taken
	uint8_t state; // enum gate_room_state
	uint8_t on_loss; // enum member_on_loss
	bool is_still; // by its mode: nobody is called or admitted, and no turn ends
};

// A pool, or a room with lanes: what lines share. Parents come before what is below them.
struct member_node {
	uint32_t id; // of a node, not that of a line
	struct ledger_node node;
};

struct member_plan {
	char name[LEDGER_NAME_MAX + 1]; // of the appliance in the cluster
	uint64_t incarnation; // random at start, not 0
	uint8_t appliance; // the number it had before; LEDGER_MEMBERS_MAX: none yet
	uint64_t heard_ms; // until when its process before may have been granted something; 0:
			   // there was none
	uint64_t peers; // bit N: that one knew of a member N
	uint32_t lines_max, nodes_max; // up to MEMBER_LINES_MAX, MEMBER_NODES_MAX
	uint32_t workers_max; // up to CLAIMS_ANSWERS_WORKERS
	uint32_t known_max; // sessions, used tickets and tickets given back that are remembered
	uint32_t sync_ms; // 0: MEMBER_SYNC_MS
	uint64_t seed; // random, for hash tables and trees
};

// A reply's word on time, for the clock that is given to this module. No good as a measure unless
// is_sound: the batch had to be sent again, and the ledger may have answered the first one.
struct member_time {
	uint64_t sent_ms, received_ms; // cluster time here
	uint64_t time_ms, raw_ms; // cluster time and TIME when the ledger took the batch
	int64_t correction_ms;
	bool is_skewed, is_sound;
};

// What a member touches outside itself. Those that may be NULL say so.
struct member_seams {
	void *ctx;
	// As of claims_seams. What `record` was told is published to the workers before
	// barrier_begin() returns, or barrier_passed() is false until it is.
	uint32_t (*answer)(
		void *ctx, uint32_t worker, const struct claim_answer *answers, uint32_t count);
	uint64_t (*barrier_begin)(void *ctx);
	bool (*barrier_passed)(void *ctx, uint64_t token);
	uint64_t (*session_id)(void *ctx);
	// Send a batch (ledger_wire_batch); what it points to lives until its reply. Returns false
	// if that cannot be now: the same is offered again with the next turn.
	bool (*send)(void *ctx, const struct ledger_batch *batch);
	// A reply came. May be NULL.
	void (*time)(void *ctx, const struct member_time *time);
	// The number of this appliance in keys is known now: before any ticket is drawn, and at
	// once if it is another one than the plan's.
	void (*numbered)(void *ctx, uint8_t appliance);
	// A shared record is this now; len 0: it is deleted. `bytes` die with the call.
	void (*record)(void *ctx, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len);
	// The ledger has answered a member_put_record(): LEDGER_DONE, or LEDGER_STALE or
	// LEDGER_FULL, and it is dropped. May be NULL.
	void (*recorded)(void *ctx, uint8_t type, uint32_t id, enum ledger_verdict verdict);
	// All that is shared has been read: after the first reply, and whenever news had been
	// missed. May be NULL.
	void (*resynced)(void *ctx);
	// The store has lost writes: put all shared records that are known again
	// (member_put_record() is not called from within; codes and gatherings come by `offer`).
	// Returns true when all have been put; asked again each turn until then, and while false
	// the ledger grants nothing. May be NULL.
	bool (*restore)(void *ctx);
	// CLAIM_CODE, CLAIM_MOVE or CLAIM_CODE_GONE. Returns whether the ledger is to be asked by
	// `entry`, a LEDGER_CODE; else `answer` is final. `answer` is NULL for CLAIM_CODE_GONE.
	bool (*code)(void *ctx, const struct claim *claim, struct claim_answer *answer,
		struct ledger_entry *entry);
	// What the ledger said to that, to be put into `answer`.
	void (*code_answered)(void *ctx, const struct claim *claim,
		const struct ledger_entry *entry, const struct ledger_answer *said,
		struct claim_answer *answer);
	// Entries of the owner's own (LEDGER_GATHERED, codes written back) for a batch, up to
	// `max`; what they point to lives until `offered`. May be NULL.
	uint32_t (*offer)(void *ctx, struct ledger_entry *entries, uint32_t max);
	void (*offered)(
		void *ctx, const struct ledger_entry *entry, const struct ledger_answer *answer);
	// An item of a page of LEDGER_READ GATHERED that was offered. May be NULL.
	void (*gathered)(void *ctx, const struct ledger_news *item);
	// People of a line's gatherings of which nothing is kept any more, as ranks_begin() wants
	// them: asked when all records have been told. May be NULL.
	uint64_t (*drawn_before)(void *ctx, uint32_t line_id);
};

struct member;

// The sets that workers look at; they stay the caller's and outlive the member.
struct member_sets {
	struct ended *ended, *left;
};

// Bytes that member_create() takes; each line adds its conductor_node_bytes(). Pure.
uint64_t member_bytes(const struct member_plan *plan);

// Returns NULL when memory is short. Memory is some 110 bytes for each of known_max, and 5 MB
// besides.
struct member *member_create(const struct member_plan *plan, const struct member_sets *sets,
	const struct member_seams *seams, uint64_t now_ms);

// Accepts NULL.
void member_destroy(struct member *m);

// Lines, in the order of the snapshot (claim.room), and what they share: at start, with a reload,
// and when a command changes limits. Lines that stay (by line_id) keep what is known of them. With
// claims in flight too: their answers go to where they came from. Returns false, and nothing has
// changed, if there are more than planned, a parent is not before its child, or memory is short.
struct member_shape {
	const struct member_line *lines;
	const struct member_node *nodes;
	uint32_t line_count, node_count;
};
bool member_set_shape(struct member *m, const struct member_shape *shape, uint64_t now_ms);

// A command changed a line's state or mode. Returns false if there is no such line.
bool member_set_state(
	struct member *m, uint32_t line_id, uint8_t state, bool is_still, uint64_t now_ms);

// `release N`, and the end of an event, as conductor_release() and conductor_lapse(): every member
// is told, the one in office does it.
bool member_release(struct member *m, uint32_t line_id, uint64_t count);
void member_lapse(struct member *m, uint32_t line_id, uint64_t key);

// Tickets given back that have no place yet: the first of gathering `number` of a line or of a
// later one, whose visitor is not below *visitor. Returns false if there is none.
bool member_left_gathered(
	const struct member *m, uint32_t line_id, uint64_t *number, uint64_t *visitor);

// The ledger has taken LEDGER_GATHERED_PLACED, which we offered.
void member_left_placed(struct member *m, uint32_t line_id, const struct ledger_gathered *placed);

// How many claims are taken now.
uint32_t member_room(const struct member *m);

// Claims of workers, up to member_room(). Some are answered at once.
void member_claims(struct member *m, const struct claim *claims, uint32_t count, uint64_t now_ms);

// A worker refused a claim (ring full, answer late) and published `key`, the smallest such, and the
// longest poll_after told: the floor of the cluster waits for it.
void member_refused(
	struct member *m, uint32_t line_id, uint64_t key, uint32_t poll_after, uint64_t now_ms);

// Every 10 to 20 ms.
void member_turn(struct member *m, uint64_t now_ms);

// There is a connection to the Redis of this run id (LEDGER_RUN_BYTES, NUL-terminated): batches can
// be sent. A batch that had no reply is sent again.
void member_connected(struct member *m, const char *run_id, uint64_t now_ms);

// There is none any more; it may be said again.
void member_lost(struct member *m, uint64_t now_ms);

// The reply to the batch in flight: the one string of the script.
//   sent_ms  when this batch was last given to `send`, as it was sent
// Returns false if it cannot be read: the connection is worth nothing (link_drop()), and the batch
// goes out again.
bool member_reply(
	struct member *m, const char *bytes, size_t len, uint64_t sent_ms, uint64_t now_ms);

// News as published: one or more lines. What is not next in order is passed over, and comes with a
// reply. Returns false if it cannot be read.
bool member_news(struct member *m, const char *bytes, size_t len, uint64_t now_ms);

// Put a shared record (ledger_record): copied, and kept until the ledger has it. A later one for
// the same (type, id) takes its place. Returns false if MEMBER_RECORDS_MAX wait.
bool member_put_record(struct member *m, const struct ledger_record *record);
bool member_has_records(const struct member *m); // that the ledger has not taken yet

// Leave the cluster: what is left to say and LEDGER_GOODBYE are sent with the next turns. No
// tickets are drawn and no passes are taken here any more: nobody waits for us from then on. Ask
// member_status() for is_gone.
void member_goodbye(struct member *m);

// Whether a line goes by its on_loss now. False if there is no such line.
bool member_line_is_away(const struct member *m, uint32_t line_id);

// What was last heard of a line (LEDGER_VIEW), and of its grants. Returns false if nothing was.
struct member_line_view {
	struct ledger_view is;
	uint64_t heard_ms; // when
	uint64_t passed; // visitors forwarded uncounted
	uint32_t admitted_over_max; // the most that `taken` was ever seen above the capacity in
				    // force; 0 unless something is wrong. Not looked at while
				    // lost writes are made good: then `taken` is no count
};
bool member_look_line(const struct member *m, uint32_t line_id, struct member_line_view *view);

// For `show cluster`.
struct member_status {
	bool is_connected, is_away, is_recovering, is_skewed, is_resyncing;
	bool is_name_taken; // a live appliance has our name: since refused_since_ms
	bool is_full; // there is no number for us: likewise
	bool is_ready; // a reply was taken, and all that is shared has been read
	bool is_gone; // goodbye has been said
	uint8_t appliance; // our number; LEDGER_MEMBERS_MAX: none yet
	uint8_t conductor; // likewise
	uint64_t away_since_ms, refused_since_ms; // 0: it is not
	uint64_t fence, epoch, writes, cursor, newest, applied, closed, final;
	int64_t skew_ms; // our clock less the ledger's, at the last reply
	uint32_t round_trip_ms; // of the last batch
	uint32_t known_count, unsaid_count; // remembered; of these, not yet in the ledger
	uint32_t member_count;
	struct ledger_member members[LEDGER_MEMBERS_MAX]; // as of the last reply
	struct conductor_status office; // of our conductor
	// From a decision of the conductor to our workers' words, by the clocks of both.
	uint32_t propagation_p50_ms, propagation_p99_ms;
	uint64_t propagation_count;
};
void member_status(const struct member *m, struct member_status *status);

// They live as long as the member does.
const struct member_counters *member_counters(const struct member *m);
