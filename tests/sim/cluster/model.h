// The ledger in memory: what controlplane/cluster/ledger.h says, once more, in C.
//
// The store of a simulated cluster, and the second opinion on ledger.lua. Written for being read:
// arrays that are searched from end to end, nothing that can be counted is remembered. It answers
// with the same bytes as the script, so that a reply goes through ledger_wire.h in a simulation
// too.
//
// One thread. Time is what the caller says TIME is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controlplane/cluster/ledger.h"

#define MODEL_NODES_MAX 64u
#define MODEL_RECORDS_MAX 64u
#define MODEL_TYPES 16u

// An array that grows.
#define MODEL_LIST(type) \
	struct { \
		type *at; \
		uint32_t count, max; \
	}

enum model_state { MODEL_ACTIVE = 1, MODEL_ENDING, MODEL_OVER };

struct model_visitor {
	uint64_t visitor, session, key;
	uint32_t expires;
	uint8_t state; // enum model_state
};

struct model_place {
	uint64_t key, visitor, until_ms;
};

struct model_ended {
	uint64_t session;
	uint32_t expires;
};

struct model_slots {
	uint64_t held[LEDGER_SLOTS_MAX];
	uint32_t count;
};

struct model_quota {
	uint64_t start_ms, used;
};

struct model_hold {
	uint64_t key, until_ms;
};

struct model_gathered {
	uint64_t number;
	bool is_drawn;
	MODEL_LIST(uint64_t) ids;
	struct {
		uint64_t source, count;
		bool has_told, is_whole;
	} told[LEDGER_MEMBERS_MAX];
};

struct model_use { // of a code
	uint64_t digest[2], holder;
	struct ledger_place place;
};

struct model_node {
	uint32_t id; // 0: none
	struct ledger_node is;
	uint64_t order, opened; // opened: in this look, by number
	uint64_t level, filled_ms, pass, served, stride;
	struct model_quota all, direct;
	bool is_active, is_open;
	uint64_t epoch, lost, lost_until_ms, lost_of, sure_ms;
	// Of a line.
	uint64_t threshold, floor, floor_rank;
	uint32_t coming, room_ahead, ahead_ms;
	uint64_t crowded, crowded_until_ms;
	uint64_t threshold_rank, came_fence;
	struct ledger_words words;
	struct model_hold holds[LEDGER_MEMBERS_MAX];
	MODEL_LIST(uint64_t) came_keys; // that the conductor has not asked for
	uint64_t admitted, directs, undone, ended, expired, came;
	uint64_t totals[LEDGER_MEMBERS_MAX], before, config[LEDGER_MEMBERS_MAX];
	bool has_config[LEDGER_MEMBERS_MAX];
	uint64_t last[LEDGER_MEMBERS_MAX], counted; // last: slot told of
	uint64_t drawn, gathering; // people, and ids of what is not drawn
	uint64_t over; // number of the last gathering that is
	MODEL_LIST(struct model_visitor) visitors;
	MODEL_LIST(struct model_place) present;
	MODEL_LIST(uint64_t) affirmed; // visitors whose sessions were written back after a loss
	MODEL_LIST(struct model_place) left;
	MODEL_LIST(struct model_ended) early;
	MODEL_LIST(struct model_slots) slots[LEDGER_MEMBERS_MAX];
	MODEL_LIST(struct model_gathered) gathered;
	MODEL_LIST(struct model_use) uses;
};

struct model_member {
	char name[LEDGER_NAME_MAX + 1]; // "": nobody has this number
	uint64_t incarnation, batch, heard_ms, at_ms, applied, closed, restored;
	bool has_left, is_live;
	char *reply;
};

struct model_ending {
	uint64_t news, visitor, session;
	uint32_t line;
};

struct model_record {
	uint32_t id, len, version;
	uint8_t bytes[LEDGER_BLOB_MAX];
};

struct model_text {
	char *at;
	size_t used, max;
};

struct model {
	// The book's own page.
	char run[LEDGER_RUN_BYTES + 1];
	uint64_t writes, epoch, since_ms, unsure_ms, seen_ms, steady_ms, news, fence, until_ms,
		order, jumped, final, gone_ms, gone_before_ms, surely_ms, peers, missing;
	int64_t correction_ms;
	bool is_recovering;
	uint8_t conductor;
	uint64_t conductor_is;

	struct model_member members[LEDGER_MEMBERS_MAX];
	struct model_node nodes[MODEL_NODES_MAX];
	MODEL_LIST(struct model_ending) endings;
	MODEL_LIST(struct model_record) records[MODEL_TYPES];
	char *log[LEDGER_NEWS_MAX]; // of number % LEDGER_NEWS_MAX

	// Of the batch under way.
	uint64_t raw_ms, now_ms, look;
	uint64_t self_ms; // now, or if skewed and later as the sender says
	int64_t time_ms;
	bool is_skewed, is_conductor;
	uint8_t self;
	struct model_text pages, told;
	uint32_t page_count;
};

// An empty ledger.
void model_init(struct model *m);
void model_fini(struct model *m);

// Run one batch at `raw_ms` of the store's clock. Returns the reply, NUL-terminated, to be freed by
// the caller. What it published is in m->told until the next batch ("": nothing).
char *model_batch(struct model *m, const struct ledger_batch *batch, uint64_t raw_ms);

// Everything that is kept of lines, as text that the test's dump of Redis equals. To be freed.
char *model_dump(const struct model *m);

// --- between the files of the model

void model_print(struct model_text *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
uint64_t model_tell(struct model *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

// A process is no more that may have been granted something until then; unsure: nobody remembers
// what.
void model_went(struct model *m, uint64_t ms);
void model_unsure(struct model *m, uint64_t ms);

// What was lost with a member that was missing is known now.
void model_back(struct model *m, uint32_t number);

// A node as it stands, without looking at it; NULL: unknown.
struct model_node *model_find(struct model *m, uint32_t id);

// A line that is looked at: first what time has done to its tree since. NULL: unknown.
struct model_node *model_line(struct model *m, uint32_t id);
struct model_node *model_look(struct model *m, uint32_t id);

// Sessions that ended early and that all who live refuse, up to news `in_force`.
void model_free_ended(struct model *m, uint64_t in_force);

// What pool_order.c knows. excess: UINT64_MAX: a reservation is held everywhere.
uint64_t model_taken(const struct model *m, const struct model_node *node);
bool model_has_room(struct model *m, struct model_node *line, bool is_direct);
uint64_t model_excess(struct model *m, struct model_node *line, uint64_t before);
void model_charge(struct model *m, struct model_node *line, bool is_direct);
bool model_nobody_waits(struct model *m, struct model_node *line);
uint64_t model_people(struct model *m, const struct model_node *line);
void model_limits(const struct model_node *node, uint64_t *rated, uint64_t *all, uint64_t *direct);
uint64_t model_total(const struct model_node *line);
uint64_t model_settled(const struct model_node *line);

// One entry each; the answer is printed behind its kind.
void model_view(struct model *m, const struct ledger_entry *entry, struct model_text *answer);
// A bit for each live member that has configured it otherwise; whether one has more lines otherwise
// than most have than another who lives.
uint64_t model_otherwise(const struct model *m, const struct model_node *n);
bool model_is_odd(const struct model *m, uint32_t number);
uint64_t model_first_held(const struct model *m, const struct model_node *line);
void model_print_words(struct model_text *text, const struct ledger_words *words);
void model_claim(struct model *m, const struct ledger_entry *entry, struct model_text *answer);
void model_code(struct model *m, const struct ledger_entry *entry, struct model_text *answer);
enum ledger_verdict model_gathered(struct model *m, const struct ledger_entry *entry);
void model_read_gathered(struct model *m, const struct model_node *line,
	const struct ledger_read *read, struct model_text *answer);
void model_share(struct model *m, const struct ledger_entry *entry, struct model_text *answer);

#define MODEL_ADD(list, value) \
	do { \
		if ((list).count == (list).max) { \
			(list).max = (list).max ? 2 * (list).max : 8; \
			(list).at = realloc((list).at, (list).max * sizeof(*(list).at)); \
			assert((list).at); \
		} \
		(list).at[(list).count++] = (value); \
	} while (0)
#define MODEL_REMOVE(list, index) \
	do { \
		memmove(&(list).at[index], &(list).at[(index) + 1], \
			((list).count - (index)-1) * sizeof(*(list).at)); \
		(list).count--; \
	} while (0)
