// Caller: a line's threshold and floor: how many are called, whose turn is over, and what those who
// wait are told. The same for a line of one appliance, which its controller steers, and for one of
// a cluster, which the conductor does.
//
// Who owns it says how many are present and which slots become free (pool_line), and who came. It
// knows two clocks: cluster time, by which buckets fill and what was told counts; and the available
// clock, which stands still while the line cannot be polled and granted, by which turns and holds
// end.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/calls.h"
#include "controlplane/controller/flow.h"
#include "controlplane/controller/holds.h"
#include "controlplane/controller/keyset.h"
#include "controlplane/controller/pool.h"
#include "controlplane/controller/told.h"

struct place_line;

struct caller {
	const struct place_line *line; // whose ranks count
	uint32_t claim_s; // how long a turn waits to be taken
	uint32_t session_s;
	uint32_t lag_ms; // words are told for so long after others have taken their place
	uint64_t now_ms; // latest cluster time heard
	uint64_t off_ms; // of it, how long the line was not available
	bool available;

	uint64_t threshold, threshold_rank;
	uint64_t floor, floor_rank;
	uint64_t passed; // turns below this key are over; floor follows as far as it may
	uint64_t release; // to be called besides
	uint32_t ahead_ms, room_ahead; // how far it looks ahead, and how many can be admitted in
				       // that time, as of the last caller_look_ahead()

	struct pool own; // its limits and slots; what they are shared with is above it
	struct keyset left; // tickets given back, not below floor
	struct calls calls;
	struct holds holds; // of floor
	struct holds crowded_out; // present who found no place: nobody behind them is granted
	struct told told;
	struct flow flow;
	uint64_t gaps_total; // outages noticed by the clock
};

// Begin with nobody called, `own` as a pool of nobody. `left` is its owner's to make,
// keyset_init().
void caller_init(struct caller *c, const struct place_line *line, const struct pool_limits *limits,
	const struct pool_words *words, uint64_t now_ms);

// Leave the pools above, and end `left` (made, or zeroed by caller_init()).
void caller_fini(struct caller *c);

// Threshold and floor are where another has left them; all turns begin anew.
//   tickets  so many of the called are expected anew, or all of them
//   state    who is expected, as the other had it; NULL: as `tickets` says
#define CALLER_EVERYBODY UINT64_MAX
void caller_take_over(struct caller *c, uint64_t threshold, uint64_t floor, uint64_t tickets,
	const struct calls_state *state);

// The available clock.
static inline uint64_t caller_available_ms(const struct caller *c)
{
	return c->now_ms - c->off_ms;
}

// Bring the clocks, bucket and quotas up to `now_ms`. Time never goes back.
void caller_advance(struct caller *c, uint64_t now_ms);

// Whether the line can be polled and granted from now on. All turns begin anew when it can again.
void caller_set_available(struct caller *c, bool available);

// It could not be polled and granted: all turns begin anew.
void caller_begin_anew(struct caller *c);

// It could not be polled everywhere: turns begin anew, and nobody is expected for that.
void caller_prolong(struct caller *c);

// `release N`: call so many more.
void caller_release(struct caller *c, uint64_t count);

// The holder of `key` will not come, and has not: the ticket was used or given back.
void caller_settle(struct caller *c, uint64_t key);

// How many can be admitted soon.
//   total  tickets of the line
void caller_look_ahead(struct caller *c, uint64_t total);

// Call as many as find room then.
void caller_move_threshold(struct caller *c);

// How far floor may follow: turns are over, and nothing is held.
uint64_t caller_floor(struct caller *c);

// Everybody below `key` has come, given back, or lapsed. Returns how many tickets it passed.
uint64_t caller_raise_floor(struct caller *c, uint64_t key);

// An event is over: everybody below `key` waits no more; threshold is not below it.
void caller_lapse(struct caller *c, uint64_t key);

// These words are told from now on.
void caller_publish(struct caller *c, uint64_t wait_high);

// Tickets at or beyond the threshold that were not given back.
uint64_t caller_waiting(const struct caller *c, uint64_t total);

// Expected wait until the line moves by one, 2^-32 s; FLOW_UNKNOWN.
void caller_wait(const struct caller *c, uint64_t *low, uint64_t *high);

// What `next` is told with `before` present of smaller keys, s.
uint32_t caller_next_poll_after(const struct caller *c, uint32_t before);

// How long those at the door are expected to wait for their slot.
uint32_t caller_door_wait_ms(const struct caller *c);

// How many newcomers there is room for, if nobody waits.
uint32_t caller_open_count(const struct caller *c);

// How many of the smallest present keys hold a reservation. A free slot is reserved; under a rate,
// as many more as it serves while they poll once, since the bucket is charged when one comes.
uint32_t caller_reserved(const struct caller *c);
