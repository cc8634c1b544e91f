// Calls: who was called when, how many of them came, and how long their turn still waits.
//
// One call for all that the threshold passed within a second. Times are of the available clock
// (state.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CALLS_MAX 1024u
#define CALLS_SPAN_MS 1000u // what is called within this is one call
#define CALLS_EXPECT_MS 10000u // who has not come after this is not expected any more

struct call {
	uint64_t key_end; // threshold after it
	uint64_t tickets; // called
	uint64_t came; // of those
	uint64_t began_ms, expected_ms,
		due_ms; // until when they are expected; when the turn is over
	bool is_sample; // counts for the yield
};

struct calls {
	struct call list[CALLS_MAX];
	uint32_t first, end; // list[first] to list[end - 1] wait
	uint32_t ripe; // those before this one are not expected any more
	double called, came; // recently: the yield is came / called
	uint64_t ripened_ms; // when that was last brought up to date
};

// Nobody has been called. In the caller's memory; nothing to end.
void calls_init(struct calls *c, uint64_t now_ms);

// What another needs to know to go on from here: of those expected still, how many were called, how
// many have come, and for how long, on average, they will be expected.
struct calls_state {
	uint64_t tickets, came;
	uint32_t expect_ms;
	double yield; // calls_yield()
};

// What to hand over now.
struct calls_state calls_state(const struct calls *c, uint64_t now_ms);

// Go on from that, as one call up to `key_end`, whose turn is over at once.
void calls_resume(
	struct calls *c, uint64_t key_end, const struct calls_state *state, uint64_t now_ms);

// The threshold has passed `tickets`, up to `key_end`.
//   heard_ms   from now: by then everybody has heard of it, if all poll as told
//   claim_ms   how long the turn waits after that
void calls_add(struct calls *c, uint64_t key_end, uint64_t tickets, uint32_t heard_ms,
	uint32_t claim_ms, uint64_t now_ms);

// The holder of `key` came for the first time.
void calls_came(struct calls *c, uint64_t key);

// The holder of `key`, who has not come, will not: the ticket was used or given back. Not for a key
// below the first call's.
void calls_settled(struct calls *c, uint64_t key);

// Bring yield and expectations up to date.
void calls_ripen(struct calls *c, uint64_t now_ms);

// How many of the called are still expected, at the observed yield.
double calls_expected(const struct calls *c);

// Share of the called that come: CALLS_YIELD_MIN to 1.
#define CALLS_YIELD_MIN (1.0 / 64)
double calls_yield(const struct calls *c);

// The key up to which all turns are over, or 0 if that has not changed since the last call.
uint64_t calls_pass(struct calls *c, uint64_t now_ms);

// All turns begin anew; who was expected is, and nobody else.
void calls_prolong(struct calls *c, uint32_t heard_ms, uint32_t claim_ms, uint64_t now_ms);

// All turns begin anew, and all who did not come are expected anew.
void calls_renew(struct calls *c, uint32_t heard_ms, uint32_t claim_ms, uint64_t now_ms);
