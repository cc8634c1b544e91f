// Tally: what one process of a crowd has seen, to be added up with the others'.
//
// Times are us since the start of the run, on one clock for all processes.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bench/crowd/histogram.h"

// Everything that is counted: member, key in the report, what it is.
#define TALLY_COUNTS(X) \
	X(arrived, "came for the first time, or again") \
	X(queued, "were given a place in line") \
	X(direct, "were let in at once") \
	X(called, "were let in from the line") \
	X(bought, "ended by buying") \
	X(left, "ended by leaving") \
	X(ran_out, "let their pass run out") \
	X(no_shows, "had a place and did not come") \
	X(turned_away, "were told that the room is closed, full or rejects") \
	X(gave_up, "got no page after several tries") \
	X(unfinished, "were not done at the end of the run") \
	X(lost, "lost their place or their pass, for one of the next four reasons") \
	X(lost_unknown, "  a poll said that the ticket is none") \
	X(lost_expired, "  a poll said that the turn is over") \
	X(lost_ticket, "  were given another place") \
	X(lost_pass, "  the pass was not taken before its end") \
	X(positions_worse, "polls told a larger position than the first") \
	X(tabs, "second tabs opened") \
	X(tabs_admitted, "of these, admitted") \
	X(tabs_other_session, "of these, to another session than the visitor's") \
	X(tabs_expired, "of these, told that the turn is over") \
	X(polls, "status polls answered") \
	X(polls_next, "of these, called and waiting for a slot") \
	X(pages_seen, "pages of the shop") \
	X(reconnects, "connections opened again") \
	X(errors, "failures, each tried again: the next six") \
	X(error_connect, "  connection refused or reset before the request") \
	X(error_closed, "  connection closed without an answer") \
	X(error_timeout, "  no answer in time") \
	X(error_answer, "  an answer that is not HTTP") \
	X(error_status, "  an answer that was not to be expected") \
	X(error_origin, "  502, 503 or 504 in the shop") \
	X(unrecorded, "admissions, calls or places for which there was no memory")

// What takes how long, from when it was meant to be sent until the answer was there.
#define TALLY_TIMES(X) \
	X(arrival, "first page") \
	X(poll, "status poll") \
	X(enter, "page after the call") \
	X(page, "page in the shop") \
	X(leave, "leave or buy") \
	X(late, "the crowd itself: request sent too late by")

// One visitor who was let in.
struct tally_admission {
	uint64_t key; // 0: direct
	int64_t placed_us; // got the place
	int64_t asked_us, granted_us; // sent the request that was granted; had its answer
	int64_t ended_us; // began to end the session; INT64_MAX: not seen to end
	uint32_t pass_ends; // unix s, of the first pass
};

// One stretch in which a called visitor was present: told `next`, and its next poll neither sent
// nor overdue.
struct tally_presence {
	uint64_t key;
	int64_t from_us, to_us;
};

// One visitor who was told a position.
struct tally_place {
	uint64_t key;
	uint32_t position;
	int64_t arrived_us, placed_us; // asked for a place; had it
};

struct tally {
#define X(name, text) uint64_t name;
	TALLY_COUNTS(X)
#undef X
#define X(name, text) struct histogram name##_us;
	TALLY_TIMES(X)
#undef X
	struct tally_admission *admissions;
	struct tally_presence *presences;
	struct tally_place *places;
	uint32_t admission_count, admission_room, presence_count, presence_room;
	uint32_t place_count, place_room;
};

// All zero is empty. Frees what it holds.
void tally_fini(struct tally *tally);

// Remember one; counted as unrecorded when memory is short. tally_admit() returns its index, or
// UINT32_MAX.
uint32_t tally_admit(struct tally *tally, const struct tally_admission *admission);
void tally_presence(struct tally *tally, const struct tally_presence *presence);
void tally_place(struct tally *tally, const struct tally_place *place);

// Hand a tally to another process of the same program through a file. Returns false on failure.
bool tally_write(const struct tally *tally, FILE *file);

// Add to `tally` the one that the file holds, from its beginning.
bool tally_add_file(struct tally *tally, FILE *file);
