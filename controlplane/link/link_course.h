// The course of a link: where it is on the way to the primary, and when it tries next.
//
//   resting ─▶ asking ─▶ connecting ─▶ greeting ─▶ ready
//      ▲  └── no sentinels ──▲              │         │
//      └──── failed, or lost ──┴────────────┴─────────┘
//
// A try has LINK_COURSE_TRY_MS for its sentinel and as much for the primary, so that a new one
// begins at least that often. After a loss the first is made at once, those that follow a little
// later each, and never in step with other appliances. A primary that can be greeted, and answers
// nothing that can be gone by, is one that fails.
//
// Pure: no clock, no chance but its seed. Times are us.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define LINK_COURSE_TRY_MS 500u

enum link_course_state {
	LINK_COURSE_RESTING,
	LINK_COURSE_ASKING, // a sentinel
	LINK_COURSE_CONNECTING, // to the primary, its name too
	LINK_COURSE_GREETING,
	LINK_COURSE_READY,
};

struct link_course {
	enum link_course_state state;
	uint32_t sentinel_count; // 0: the primary is known
	uint32_t sentinel; // to be asked next
	uint32_t failures; // in a row, until a batch has been answered
	uint64_t began_us; // when the last try began
	uint64_t random; // state of the jitter
};

// Begin at rest, to try at once.
void link_course_init(struct link_course *course, uint32_t sentinel_count, uint64_t seed);

// What happened. Each asserts that it can, and moves on.
void link_course_begin(struct link_course *course, uint64_t now_us); // its time had come
void link_course_told(struct link_course *course); // the sentinel named the primary
void link_course_connected(struct link_course *course);
void link_course_greeted(struct link_course *course);
void link_course_served(struct link_course *course); // a batch was answered: what failed is over
void link_course_doubted(struct link_course *course); // the owner could not go by an answer

// It failed, or the connection was lost: rest. The next try asks another sentinel, unless this one
// led to a primary that was ready.
void link_course_failed(struct link_course *course);

// When the next try begins, at the earliest now.
uint64_t link_course_next_us(struct link_course *course, uint64_t now_us);
