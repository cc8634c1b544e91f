// The schedule: when the doors of a room are open. A pure function of its events, what commands
// said, and cluster time.
//
//   ── before ──┬── gathering ──┬── open ──┬── before ── ... ── closed
//            gathers          opens      closes
//
// Doors open once and close once: an earlier time than was seen before is taken as that one, and an
// event that was opened, by time or by command, stays so over restarts (`opened_ms`). Control
// thread only; times are unix milliseconds of cluster time.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SCHEDULE_LIST_MS 1000u // the list of those who gathered closes so long after the opening
#define SCHEDULE_KNOWN_MS 50u // by then every worker knows that an event has closed
#define SCHEDULE_GAP_MS 100u // nothing of the next event begins earlier after one has closed

// One opening; 0 for gathers_ms and opens_ms: from the beginning, for closes_ms: never.
struct schedule_event {
	uint64_t gathers_ms; // opens_ms: nobody gathers
	uint64_t opens_ms; // also its name
	uint64_t closes_ms;
};

enum schedule_doors {
	SCHEDULE_OPEN,
	SCHEDULE_BEFORE,
	SCHEDULE_GATHERING,
	SCHEDULE_CLOSED, // for good
};

struct schedule {
	const struct schedule_event *events; // one after the other, none overlaps; the caller's
	uint32_t count;
	uint64_t now_ms; // the latest seen
	uint64_t opened_ms; // the latest event whose doors have opened, by its opens_ms
	uint64_t opened_at_ms; // when they did
};

// What holds at a moment.
struct schedule_view {
	uint8_t doors; // enum schedule_doors
	int event; // that is under way, or comes next; -1: none
	uint64_t over_ms; // the latest event that is over, by its opens_ms; 0: none is
	uint64_t list_closes_ms; // when the list of those who gathered for `event` closes, or did;
				 // 0: its doors have not opened
	bool list_is_open; // of those who gather for `event`: they gather, or the doors have just
			   // opened
};

// Look at the time. Doors that are due open now.
struct schedule_view schedule_look(struct schedule *s, uint64_t now_ms);

// Open the doors of the event that is under way or comes next, before their time. Returns false if
// they are open, or there is none.
bool schedule_open(struct schedule *s, uint64_t now_ms);

// Other events from now on, as after a reload. What has opened stays so as far as it is among them.
void schedule_set(struct schedule *s, const struct schedule_event *events, uint32_t count);
