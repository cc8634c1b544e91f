// Claims: the turn of control over admission.
//
//   claims of all workers ─▶ controllers ─▶ changes of all rooms ─▶ one batch ─▶ store
//                                                                                  │ knows it
//   answers to the workers, threshold · floor · open to the lines ◀────────────────┘
//
// Nobody enters before the store knows it: the answers of a turn leave when its batch is no longer
// pending. While the store says `unsaved` they leave all the same, counted (store.h).
//
// A session that ends early goes into the set of ended sessions; its slot is given on when every
// worker has passed a quiescent state with it (the barrier). No I/O, no clock, no threads: the
// simulation drives it. Control thread only.
//
// Times are unix milliseconds of cluster time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/controller.h"
#include "controlplane/store/store.h"
#include "dataplane/gate/claim.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/rooms.h"

#define CLAIMS_TURN_MAX 4096u // claims in one turn
#define CLAIMS_ANSWERS_MAX 8192u // answers in one turn, with those of claims put off earlier
#define CLAIMS_CODE_RECORDS 2u // that a code or a link has to save, at most
#define CLAIMS_LATE_MS 1000u // an older claim has been given up by its worker
#define CLAIMS_HOLD_MS 200u // a commit that takes longer: nothing is parked
#define CLAIMS_TICK_MS 20u // between ticks of the controllers
#define CLAIMS_SAVE_MS 1000u // between records of clock, thresholds and floors
#define CLAIMS_RESTORE_MAX (1u << 24) // records of a kind read at a start; more are an error
#define CLAIMS_KEEP_S \
	(30u * 24 * 3600) // visitors of rooms that are not configured are known for;
			  // and no ticket given back is told apart for longer

// One list: field, text of the metric.
#define CLAIMS_COUNTERS(X) \
	X(turns, "turns taken") \
	X(called, "claims by the called") \
	X(direct, "claims by newcomers") \
	X(renew, "renewals asked for") \
	X(end, "sessions that were to end early") \
	X(leave, "tickets given back") \
	X(gone, "answers that found nobody") \
	X(passed, "visitors forwarded uncounted, mode off") \
	X(codes, "codes asked about") \
	X(codes_honoured, "of these, codes honoured") \
	X(codes_refused, "of these, codes not looked at: nothing can be saved now") \
	X(codes_undone, "uses of codes that were not made after all") \
	X(moves, "moves to a lane asked for: links followed, and tickets given up") \
	X(moved, "places given up for one in a lane, or that reached nobody") \
	X(granted, "answers that admitted") \
	X(granted_unsaved, "of these, answers that the store does not know") \
	X(late, "claims that came too late to be answered") \
	X(crossed, "claims that crossed a reload") \
	X(unknown_room, "claims for a room that is no more") \
	X(undelivered, "answers that their worker did not take") \
	X(freed, "slots of ended sessions given on") \
	X(ended_full, "sessions not ended early: the set is full") \
	X(left_untold, "tickets given back that workers take for waiting: the set is full") \
	X(left_refused, "tickets not given back: used, lapsed, or too many") \
	X(restored, "sessions and claimed ids taken over from the store") \
	X(restored_expired, "of the sessions in the store, those that were over") \
	X(restored_full, "sessions and claimed ids that found no room") \
	X(restored_unknown, "sessions and claimed ids whose room is not configured")

struct claims_counters {
#define X(name, text) uint64_t name;
	CLAIMS_COUNTERS(X)
#undef X
};

// A room, as the turn needs it. Controller and line stay the caller's.
struct claims_room {
	uint32_t line_id;
	uint32_t session_s;
	uint8_t state; // enum gate_room_state
	struct controller *controller;
	struct place_line *line;
	bool is_still; // by its mode: nobody is called or admitted, and no turn ends
};

struct claims_plan {
	uint32_t rooms_max;
	uint32_t workers_max;
	uint32_t ended_max; // of `ended`
};

// What the turn touches outside itself.
struct claims_seams {
	void *ctx;
	// Give `worker` its answers. Returns how many it took; the rest counts as not delivered.
	uint32_t (*answer)(
		void *ctx, uint32_t worker, const struct claim_answer *answers, uint32_t count);
	// Every worker that passes a quiescent state after this sees what was written before it.
	uint64_t (*barrier_begin)(void *ctx);
	// Whether all workers have passed one since.
	bool (*barrier_passed)(void *ctx, uint64_t token);
	// A place in a lane is asked for (CLAIM_CODE, CLAIM_MOVE), or one that was given for that
	// has come to nothing (CLAIM_CODE_GONE).
	//   answer   of the former; its verdict is CLAIM_REFUSED, and is to be set; else NULL
	//   records  CLAIMS_CODE_RECORDS, filled with what is to be saved
	// Returns how many they are.
	uint32_t (*code)(void *ctx, const struct claim *claim, uint64_t now_ms,
		struct claim_answer *answer, struct store_record *records);
	// A fresh random number that nobody can guess, not 0.
	uint64_t (*session_id)(void *ctx);
};

struct claims;

// How many records a batch of the store must hold, so that it is never full: all that controllers
// with `sessions_total` sessions, claimed ids and tickets given back can have to say before
// anything is saved.
uint32_t claims_records(const struct claims_plan *plan, uint64_t sessions_total);

// The sets that workers look at: sessions that ended early, visitors whose tickets were given back.
struct claims_sets {
	struct ended *ended, *left;
};

// `store` and the sets stay the caller's and outlive the claims. Returns NULL when memory is short.
struct claims *claims_create(const struct claims_plan *plan, struct store *store,
	const struct claims_sets *sets, const struct claims_seams *seams);

// Accepts NULL.
void claims_destroy(struct claims *c);

// The rooms, in the order of the snapshot (claim.room), at most rooms_max. At start, and with a
// reload; those that stay (by line_id) keep what is known of them, those not named any more are not
// touched again. claims_restore() follows. Not while busy.
void claims_set_rooms(struct claims *c, const struct claims_room *rooms, uint32_t count);

// A command changed the room's state or mode. Returns false if no room has this line.
bool claims_set_state(struct claims *c, uint32_t line_id, uint8_t state, bool is_still);

// Passes of the room last so long from now on. Returns false if no room has this line.
bool claims_set_session(struct claims *c, uint32_t line_id, uint32_t session_s);

// Raise threshold and floor of a line to what the store knows. Before its controller is created.
// Returns 0 or -errno.
//   line  the line of an id, or NULL if it is not configured
int claims_restore_lines(
	struct store *store, struct place_line *(*line)(void *ctx, uint32_t line_id), void *ctx);

// Take over sessions and claimed ids of rooms that are new from the store; the first time also the
// sessions that ended early. Rooms of which the store may not know every pass let nobody new in for
// one session: all of them after an unclean end, and those that are added while it is unsaved.
// Returns 0 or -errno.
int claims_restore(struct claims *c, uint64_t now_ms);

// Whether the last turn still waits for the store. Then leave the rings alone and call
// claims_turn() with none.
bool claims_is_busy(const struct claims *c);

// One turn. Every 10 to 20 ms, and at once when there are claims.
//   claims  up to CLAIMS_TURN_MAX; none while busy
// Answers leave through seams.answer within this call or a later one.
void claims_turn(struct claims *c, const struct claim *claims, uint32_t count, uint64_t now_ms);

// A worker refused a claim because its ring was full or the answer late; it published `key`, the
// smallest such, and the longest poll_after told.
void claims_refused(
	struct claims *c, uint32_t line_id, uint64_t key, uint32_t poll_after, uint64_t now_ms);

// Visitors forwarded uncounted in the room so far.
uint64_t claims_passed(const struct claims *c, uint32_t line_id);

// When people will be admitted again after an unclean end, unix ms; 0: they are.
uint64_t claims_quiet_until(const struct claims *c, uint32_t line_id);

// They live as long as the claims do.
const struct claims_counters *claims_counters(const struct claims *c);
