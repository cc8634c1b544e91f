// The inside of draws: what draws.c and draws_restore.c share.
#pragma once

#include "controlplane/draws/draws.h"
#include "controlplane/draws/gathering.h"
#include "controlplane/draws/retired.h"

struct draws_line {
	uint32_t line_id;
	struct place_line *line;
	struct draws *draws;
	struct draws_line *next;
	struct gather words; // what workers see
	struct draws_wish wish;
	bool has_wished; // since the start: until then what was begun goes on

	// The gatherings, each further than the one before.
	struct gathering *prepared; // has a seed
	bool is_saved; // the store has that
	uint64_t put_commits; // of the store when it was put
	struct gathering *open; // is joined
	uint64_t open_barrier; // from which on nobody mints
	struct gathering *closing; // is being drawn
	uint64_t closing_barrier; // from which on nobody joins
	uint64_t closing_ms;
	bool is_listed; // it is in `set` already, and the index had no room
	struct gathering *drawn; // oldest first; the last one stays until there is another

	struct draw_set *set; // of those drawn that floor has not passed
	struct gather_proof *proof;
	uint64_t last_number;
	uint64_t drawn_epoch; // of the one drawn last; 0: not known
	uint64_t drawn_total, draws_total;
	uint32_t longest_ms;
	int file_error; // said already
};

struct draws {
	struct draws_plan plan;
	struct draws_seams seams;
	struct store *store;
	struct draws_line *lines;
	struct store_draw *known; // of the store at the start, by line and number
	uint32_t known_count, known_max;
	struct retired retired;
};

// A gathering of which only the number is known. NULL when memory is short.
struct gathering *inside_gathering(struct draws_line *l, uint64_t number);

// Its list as drawn by the job: everything but who may see it.
void inside_list(struct draws_line *l, struct gathering *g);

// Put a drawn one behind the others.
void inside_append(struct draws_line *l, struct gathering *g);

// Publish the lists that floor has not passed.
void inside_publish_set(struct draws_line *l);

// Publish what GET draw says, and which gatherings are not drawn.
void inside_publish_words(struct draws_line *l);
