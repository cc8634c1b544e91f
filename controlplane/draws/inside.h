// The inside of draws: what draws*.c share.
#pragma once

#include "controlplane/draws/draws.h"
#include "controlplane/draws/draws_cluster.h"
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

	// Of a line that several appliances share: `prepared`, `open` and `closing` are of these.
	struct gathering *coming; // not drawn here, each further than the one before
	struct gather_ids *joined; // that workers add to
	uint64_t held; // number of the gathering that ranks wait for
	uint64_t putting; // number of a gathering that is being prepared; 0: none is
	uint64_t put_ms; // when
	uint64_t left_ms; // when who left before a draw was offered last
};

struct draws {
	struct draws_plan plan;
	struct draws_seams seams;
	struct store *store;
	struct draws_line *lines;
	struct store_draw *known; // of the store at the start, by line and number
	uint32_t known_count, known_max;
	struct retired retired;

	// Where appliances share lines.
	bool is_shared;
	struct draws_cluster_seams cluster;
	struct draws_cluster_view view;
	struct gathering *strays; // of lines that are not configured here
	bool is_restoring; // everything is told to the ledger again
};

// One line for the log.
__attribute__((format(printf, 2, 3))) void inside_say(
	struct draws_line *l, const char *format, ...);

// Of the seams.
uint64_t inside_barrier(struct draws_line *l);
bool inside_has_passed(struct draws_line *l, uint64_t token);

// Workers may still look at it: freed when they do not. Accepts NULL.
void inside_retire(struct draws_line *l, enum retired_kind kind, void *what);

// The one drawn last, or NULL; and people of those that floor has not passed.
struct gathering *inside_last_drawn(const struct draws_line *l);
uint64_t inside_drawn_people(const struct draws_line *l);
bool inside_is_passed(const struct draws_line *l, const struct gathering *g);

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

// --- where appliances share lines

// draws_follow.c: one turn of a line. Returns whether a list was drawn.
bool inside_follow(struct draws_line *l, uint64_t now_ms);
bool inside_follow_is_busy(const struct draws *d);
bool inside_follow_is_late(const struct draws *d);
void inside_follow_look(const struct draws_line *l, struct draws_view *view);
void inside_follow_take(struct draws_line *l); // what has been told of it
void inside_follow_give(struct draws *d, struct gathering *g); // frees one that nobody looks at
struct gathering *inside_follow_find(const struct draws *d, uint32_t line_id, uint64_t number);
uint64_t inside_follow_joined(const struct gathering *g); // people of all appliances
uint64_t inside_follow_key(const struct gathering *g, uint64_t visitor);

// draws_join.c: one turn of who joins; and the file of a gathering, opened if it is there. Returns
// 0 or -errno, -ENOENT if there is none.
void inside_join(struct draws_line *l, uint64_t now_ms);
int inside_join_look_for(const struct draws *d, struct gathering *g);

// draws_list.c: make the list, if it can be made now; whether it is there, or will not be.
void inside_list_draw(struct draws_line *l, struct gathering *g, uint64_t now_ms);
bool inside_list_is_ready(struct draws_line *l, struct gathering *g, uint64_t now_ms);

// draws_conduct.c: what the one in office puts.
void inside_conduct(struct draws_line *l, uint64_t now_ms);

// draws_ids.c: read all ids anew, and tell all of ours, since the ledger has lost some.
void inside_ids_again(struct gathering *g);
