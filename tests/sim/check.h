// Checkers of the simulation: naive, independent of the code under test, and unforgiving.
//
// They know what was granted, when, to whom, and who stood at the door, in plain arrays that are
// searched from end to end. What they find wrong they print with the seed, and abort.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/controller/controller.h"
#include "controlplane/controller/pool.h"

// A session as the world outside sees it.
struct check_session {
	uint64_t visitor, session, key;
	uint64_t granted_ms; // cluster time
	uint32_t expires, expires_known; // as answered, and as the store knows it
	bool committed; // the store knows it
	bool is_ending, may_free; // ended early; refused everywhere
	bool is_undone;
};

// Somebody who was told `next`.
struct check_present {
	uint64_t key, visitor;
	uint64_t until_ms; // on the available clock
};

struct check_admission {
	uint64_t at_ms, session;
	uint32_t priority;
};

// What several lines share, as the world outside sees it.
struct check_pool {
	struct pool_limits limits;
	struct check_admission *admitted; // every admission, ascending
	uint32_t admitted_count, admitted_max;
	uint32_t limits_since; // index of the first admission under these limits
	struct check *lines; // of the others
	uint32_t taken_most;
	bool is_used;
};

struct check {
	uint64_t seed;
	struct check_pool *pool; // with others; NULL: alone
	struct check *next; // of the pool
	uint32_t priority; // class there
	struct controller_limits limits;
	uint64_t limits_since; // index of the first admission under these limits
	uint64_t now_ms, off_ms; // cluster time; of it, not available
	bool available;

	struct check_session *active; // those that hold a slot
	uint32_t active_count, active_max, active_most;
	uint64_t *admitted_ms; // every admission, ascending
	uint64_t *admitted_session;
	uint32_t admitted_count, admitted_max;
	struct check_present *present;
	uint32_t present_count, present_max;
	uint64_t threshold, floor, threshold_rank;
	uint64_t forgotten; // largest key of a ticket that need not be known any more
	uint64_t overtakes,
		overtaken; // grants before present of smaller keys; and how many those were
};

// Fail with the seed that replays.
void check_fail(const struct check *k, const char *what);

#define CHECK(k, condition) \
	do { \
		if (!(condition)) \
			check_fail(k, #condition); \
	} while (0)

void check_init(struct check *k, uint64_t seed, const struct controller_limits *limits,
	uint32_t people_max);
void check_fini(struct check *k);

// A pool; `limits` NULL: there is none, and check_join() does nothing.
void check_pool_init(struct check_pool *p, const struct pool_limits *limits, uint32_t people_max);
void check_pool_fini(struct check_pool *p);
void check_pool_limits(struct check_pool *p, const struct pool_limits *limits);

// The line shares the pool, in a class.
void check_join(struct check *k, struct check_pool *p, uint32_t priority);

// An event of the controller at cluster time `now_ms`.
void check_time(struct check *k, uint64_t now_ms);
void check_available(struct check *k, bool available, uint64_t now_ms);
void check_limits(struct check *k, const struct controller_limits *limits);

// The controller answered a claim.
void check_answer(struct check *k, const struct claim *claim, const struct claim_answer *answer);

// The visitor left or the session ended early: no longer present, about to be freed, undone.
void check_left(struct check *k, uint64_t visitor);
void check_ended(struct check *k, uint64_t session);
void check_freed(struct check *k, uint64_t session);
void check_undone(struct check *k, uint64_t session);

// The store has this change.
void check_change(struct check *k, const struct controller_change *change);

// The process died; the last batch is lost or not.
void check_crash(struct check *k);

// The words of the line, after publication.
void check_words(struct check *k, const struct place_line *line);

// The session of a visitor that holds a slot, or NULL.
struct check_session *check_session_of(struct check *k, uint64_t visitor);
