// Result: what a played plan says, in numbers: waits, rows over time, peaks, appliances.
#pragma once

#include "controlplane/simulate/play.h"
#include "controlplane/simulate/sizes.h"

#define RESULT_ROWS_MAX 240u // of a plot
#define RESULT_TABLE_ROWS_MAX 24u // of a table on a terminal

// How long people wait, in s: from when they come, or from the opening if that is later. NAN where
// nobody was admitted. `p99` is the wait that 99 of 100 do not exceed.
struct result_wait {
	double p50, p90, p99, max;
};

// A stretch of time, of one room or of all.
struct result_row {
	uint32_t from_s, length_s;
	uint32_t came, admitted;
	uint32_t waiting, inside; // at its end
	double polls; // a second, in the mean
	double polls_max; // the busiest second
	double mbit; // sent in a second, in the mean
	uint32_t unserved; // came then, and were still waiting at the end
	struct result_wait wait; // of those who came then and were admitted
};

struct result_rows {
	uint32_t step_s; // that a row is long, but for the last
	uint32_t count;
	struct result_row *at;
};

struct result_room {
	const char *name;
	uint32_t people, tickets, direct, no_shows, lapsed;
	uint32_t admitted, unserved;
	uint32_t waiting_max, inside_max;
	uint32_t last_ms; // when the last was admitted
	double rate; // admissions a second, from the first to the last
	struct result_wait wait;
};

// What an appliance must carry.
enum result_load {
	RESULT_POLLS,
	RESULT_HANDSHAKES,
	RESULT_CONNECTIONS,
	RESULT_BANDWIDTH,
	RESULT_LOAD_COUNT,
};

struct result_need {
	const char *name, *unit;
	double peak; // in the busiest second
	uint32_t at_s; // which one
	double each; // that one appliance carries
	uint32_t appliances; // that take for it
};

struct result {
	const struct plan *plan;
	uint64_t seed;
	struct sizes sizes;
	uint32_t lasted_s;
	bool is_cut; // somebody was still waiting at the end
	uint32_t room_count;
	struct result_room rooms[16];
	struct result_need needs[RESULT_LOAD_COUNT];
	uint32_t needed, with_spare; // appliances
	bool is_enough; // appliance.count, if it is given
};

// Sum up. Returns 0 or -errno.
int result_sum(struct result *r, const struct play *p, const struct sizes *sizes, uint64_t seed);

// Rows of at most `rows_max`, of a round length, of a room or (-1) of all. Returns 0 or -ENOMEM;
// the caller frees rows->at.
int result_rows(const struct result *r, const struct play *p, int room, uint32_t rows_max,
	struct result_rows *rows);

// Seconds as people say them: "45 s", "12 min", "3 h 05". Returns `text`.
#define RESULT_TEXT_BYTES 32
const char *result_time(double seconds, char text[RESULT_TEXT_BYTES]);

// A whole number with commas: "1,234,567". Returns `text`.
const char *result_number(double number, char text[RESULT_TEXT_BYTES]);
