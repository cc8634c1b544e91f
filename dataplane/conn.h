// A visitor's connection: what a worker keeps of one accepted stream.
//
// Life: HEAD (reading a head, or idle between two) → PARKED (control decides) → EXCHANGE (the
// origin answers) or LISTING (a draw's list goes out) → HEAD again, or DISCARD (answered before the
// body was read: sending side shut, the rest thrown away) → gone.
//
//   struct conn         one cache line: all that an idle connection is
//   struct conn_kept    bytes that must outlive the turn, in buffers of the pool: an incomplete
//                       head, a parked request, pipelined bytes
//   struct conn_errand  a request while an origin answers it, from a pool
//
//   - Every connection has a deadline, except in EXCHANGE, where the proxy keeps it.
//   - A connection is on one list at most: of the idle (HEAD, no bytes), the longest idle first,
//   which are evicted when the table fills; or of those to go on with in this turn.
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/buffers.h"
#include "dataplane/gate/request.h"
#include "dataplane/timers.h"
#include "drivers/stream.h"

enum conn_state {
	CONN_FREE,
	CONN_HEAD,
	CONN_PARKED,
	CONN_EXCHANGE,
	CONN_DISCARD,
	CONN_LISTING,
};

enum conn_list {
	CONN_UNLISTED,
	CONN_IDLE,
	CONN_RESUMED, // whose exchange ended while bytes of the next request were kept
	CONN_LISTS,
};

#define CONN_DISCARD_BITS 19u // what `discarded` counts up to

struct exchange;
struct worker;

struct conn {
	struct stream *stream;
	struct timers_entry deadline;
	struct gate_remembered remembered;
	uint32_t generation; // counts the lives of this struct and the claims made in each; never 0
			     // while in use
	uint32_t next, previous; // on its list: indices. Of a free one: index + 1 of the next free
	uint32_t kept; // first buffer of its struct conn_kept; 0: there are no such bytes
	uint32_t errand; // index + 1 of its struct conn_errand; 0: none
	uint32_t state : 3; // enum conn_state
	uint32_t list : 2; // enum conn_list
	bool is_pending : 1; // its request is in the burst being gathered
	bool was_continued : 1; // its request was told to send its body (100)
	bool has_ended : 1; // the peer will send no more
	bool close_after : 1; // close when the answer under way is out
	bool is_secure : 1; // over TLS: its stream is the worker's `visitor_tls`'s
	bool is_opening : 1; // the handshake is under way: nothing can be sent
	bool was_served : 1; // had an answer
	bool is_counted : 1; // under its source; false: on the reserve, only to be told 503
	uint32_t discarded : CONN_DISCARD_BITS; // CONN_DISCARD: bytes thrown away so far
} __attribute__((aligned(64)));
static_assert(sizeof(struct conn) == 64, "one cache line");

// One buffer of them. All but the last are full, so a head that is in is in the first.
struct conn_kept {
	uint32_t next; // buffer; 0: it is the last
	uint32_t bytes;
	uint32_t scanned; // of those, looked at without finding the end of the head
	char at[];
};

// More than comes when a stream has been paused: of an io_uring receive up to 32 times 4 kB, twice,
// and a TLS record. (A buffer is as large as a head, and 48 kB.)
#define CONN_KEPT_BUFFERS 8u

// What must be known of a request when its answer comes. The exchange's calls know only this.
struct conn_errand {
	struct worker *worker;
	struct conn *conn;
	struct exchange *exchange; // NULL: not begun yet, or over
	struct conn_errand *next, *previous; // of those with a session; NULL: not listed. Of a free
					     // one `next` is the next free
	uint32_t extra; // buffer of field lines to add; 0: none
	uint32_t extra_bytes;
	uint32_t expires; // of the pass, unix s
	uint32_t hsts_s; // of the site, to be told with the answer; 0: nothing
	uint64_t session, visitor; // 0: none
	uint8_t secret_id; // that the pass was signed with
	uint32_t line_id;
	uint16_t room; // in the snapshot of then
	uint8_t minor; // of the request's version
	bool is_head_request, wants_json;
	uint16_t site; // in the snapshot of then
	uint8_t language, encoding; // of an error page
};

struct conn_table {
	struct conn *conns; // and behind them the heads of the lists, of which only links count
	uint32_t count_max; // with the reserve
	uint32_t serve_max; // above this many, newcomers are answered 503
	uint32_t count;
	uint32_t used; // those from here on were never taken
	uint32_t free; // index + 1: of the others, the one given back last
	struct conn_errand *errands;
	uint32_t errand_max, errands_used; // likewise
	struct conn_errand *free_errand;
	struct conn_errand sessions; // list head of the errands that a session's end may cut
	struct buffers *buffers; // of what is kept
	uint32_t kept_max; // bytes of one buffer of what is kept
};

struct conn_plan {
	uint32_t serve_max; // connections served
	uint32_t reserve; // and more, for those who are told that it is full
	uint32_t errands; // at once
	uint32_t buffers, buffer_bytes; // how many may keep bytes at once, and how many each
};

// Make a table. Returns 0 or -errno. conn_table_fini(), also after a failure, frees what it
// allocated.
int conn_table_init(struct conn_table *table, const struct conn_plan *plan);
void conn_table_fini(struct conn_table *table);

// Take a fresh connection in state HEAD for a stream; NULL when even the reserve is in use.
struct conn *conn_take(struct conn_table *table, struct stream *stream);

// Give it back with all that it holds. Its deadline is no longer in any wheel.
void conn_give(struct conn_table *table, struct conn *conn);

// The only way to change state; asserts that the move is allowed.
void conn_set_state(struct conn *conn, enum conn_state to);

// Enter a list at its end, leaving the other; or leave it. Where that is so already, nothing
// changes.
void conn_enter(struct conn_table *table, struct conn *conn, enum conn_list list);
void conn_leave(struct conn_table *table, struct conn *conn, enum conn_list list);

// The one that has been on a list for longest; the one after it. NULL: none.
struct conn *conn_first(const struct conn_table *table, enum conn_list list);
struct conn *conn_next(const struct conn_table *table, const struct conn *conn);

// What refers to the connection by its number and generation no longer finds it. Returns the new
// generation.
uint32_t conn_renew(struct conn *conn);

// Number of a connection in its table, for references that leave the worker; and back. conn_of()
// returns NULL if the connection has another generation now.
static inline uint32_t conn_index(const struct conn_table *table, const struct conn *conn)
{
	return (uint32_t)(conn - table->conns);
}
struct conn *conn_of(const struct conn_table *table, uint32_t index, uint32_t generation);

// The first buffer of what the connection has kept; NULL: nothing. Valid until it keeps or drops.
static inline struct conn_kept *conn_kept(const struct conn_table *table, const struct conn *conn)
{
	return conn->kept ? (struct conn_kept *)buffers_at(table->buffers, conn->kept) : NULL;
}

// Keep `data`, not empty, behind what is kept. Returns false if that takes more than
// CONN_KEPT_BUFFERS, or no buffer is left; then a part of it may be kept.
bool conn_keep(struct conn_table *table, struct conn *conn, struct span data);

// Drop the first `bytes` of its first buffer, which is filled from those behind it; a buffer goes
// back when nothing is left in it.
void conn_drop(struct conn_table *table, struct conn *conn, uint32_t bytes);

// Drop all.
void conn_drop_kept(struct conn_table *table, struct conn *conn);

// The errand of a connection; NULL: none.
static inline struct conn_errand *conn_errand(
	const struct conn_table *table, const struct conn *conn)
{
	return conn->errand ? &table->errands[conn->errand - 1] : NULL;
}

// Begin an errand, all zero but for the connection; NULL: as many as may be are under way.
struct conn_errand *conn_begin_errand(struct conn_table *table, struct conn *conn);

// It is over, if there is one: its field lines go back too.
void conn_end_errand(struct conn_table *table, struct conn *conn);

// Enter an errand into the list of those under a session.
void conn_list_errand(struct conn_table *table, struct conn_errand *errand);
