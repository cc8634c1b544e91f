// A visitor's connection: what a worker keeps of one accepted stream.
//
// Life: HEAD (reading a head, or idle between two) → PARKED (control decides) → EXCHANGE (the
// origin answers) or LISTING (a draw's list goes out) → HEAD again, or DISCARD (answered before the
// body was read: sending side shut, the rest thrown away) → gone.
//
//   - Every connection has a deadline, except in EXCHANGE, where the proxy keeps it.
//   - `buffer` is held only while bytes must outlive the turn: an incomplete head, a parked
//   request, pipelined bytes.
//   - Idle connections (HEAD, no bytes) are on a list, longest idle first, and are evicted when the
//   table fills.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/buffers.h"
#include "dataplane/gate/request.h"
#include "dataplane/wheel.h"
#include "drivers/stream.h"

enum conn_state {
	CONN_FREE,
	CONN_HEAD,
	CONN_PARKED,
	CONN_EXCHANGE,
	CONN_DISCARD,
	CONN_LISTING,
};

struct draw_list;
struct exchange;
struct worker;

struct conn {
	// line 0: what every request needs
	struct stream *stream;
	char *buffer; // of the pool; NULL while nothing must be kept
	uint32_t buffered; // bytes in it
	uint32_t scanned; // of those, looked at without finding the end of the head
	uint8_t state; // enum conn_state
	bool is_idle; // on the idle list
	bool is_pending; // its request is in the burst being gathered
	bool is_resumed; // on the worker's list of those to go on with in this turn
	bool has_ended; // the peer will send no more
	bool close_after; // close when the answer under way is out
	bool is_secure; // over TLS: its stream is the worker's `visitor_tls`'s
	bool is_opening; // the handshake is under way: nothing can be sent
	bool was_served; // had an answer
	uint32_t generation; // counts the lives of this struct and the claims made in each; never 0
			     // while in use
	struct wheel_entry deadline;

	uint8_t source_ip[16];
	bool is_counted; // under that source; false: on the reserve, only to be told 503
	struct conn *idle_next, *idle_previous;
	uint32_t discarded; // CONN_DISCARD: bytes thrown away so far; CONN_LISTING: ms for which
			    // the peer has taken nothing
	struct draw_list *list; // CONN_LISTING
	uint64_t list_sent; // lines of it

	// CONN_EXCHANGE: what must be known of the request when its answer comes
	struct worker *worker; // for the exchange's calls, which know only the connection
	struct exchange *exchange;
	struct conn *exchange_next, *exchange_previous; // on the list of those with a session
	char *extra; // field lines to add, in a buffer of the pool; NULL: none
	uint32_t extra_bytes;
	uint32_t expires; // of the pass, unix s
	uint32_t hsts_s; // of the site, to be told with the answer; 0: nothing
	uint64_t session, visitor; // 0: none
	uint8_t secret_id; // that the pass was signed with
	uint32_t line_id;
	uint16_t room; // in the snapshot of then
	uint8_t minor; // of the request's version
	bool is_head_request, wants_json;

	struct gate_remembered remembered;
};

struct conn_table {
	struct conn *conns;
	uint32_t count_max; // with the reserve
	uint32_t serve_max; // above this many, newcomers are answered 503
	uint32_t count;
	struct conn *free; // chained through idle_next
	struct conn idle; // list head: next is the longest idle
	struct conn exchanging; // list head of the exchanges that a session's end may cut
	uint32_t idle_count;
};

// Make a table for `serve_max` connections and a reserve of `reserve` more, for those who are told
// that it is full. Returns 0 or -ENOMEM. conn_table_fini() frees what it allocated.
int conn_table_init(struct conn_table *table, uint32_t serve_max, uint32_t reserve);
void conn_table_fini(struct conn_table *table);

// Take a fresh connection in state HEAD for a stream; NULL when even the reserve is in use.
struct conn *conn_take(struct conn_table *table, struct stream *stream);

// Give it back: its buffer to `buffers`, itself to the table. Its deadline is no longer in any
// wheel.
void conn_give(struct conn_table *table, struct conn *conn, struct buffers *buffers);

// The only way to change state; asserts that the move is allowed.
void conn_set_state(struct conn *conn, enum conn_state to);

// Enter or leave the idle list; twice the same changes nothing.
void conn_set_idle(struct conn_table *table, struct conn *conn, bool idle);

// What refers to the connection by its number and generation no longer finds it. Returns the new
// generation.
uint32_t conn_renew(struct conn *conn);

// Enter or leave the list of exchanges under a session; twice the same changes nothing.
void conn_set_exchanging(struct conn_table *table, struct conn *conn, bool exchanging);

// The longest idle connection, or NULL.
struct conn *conn_longest_idle(const struct conn_table *table);

// Number of a connection in its table, for references that leave the worker; and back. conn_of()
// returns NULL if the connection has another generation now.
uint32_t conn_index(const struct conn_table *table, const struct conn *conn);
struct conn *conn_of(const struct conn_table *table, uint32_t index, uint32_t generation);

// Keep `data` at the end of the connection's buffer, taken from `buffers` (of `buffer_bytes` each)
// if there is none. Returns false if no buffer is left or it would not fit.
bool conn_keep(struct conn *conn, struct buffers *buffers, uint32_t buffer_bytes, struct span data);

// Drop the first `bytes` of what is buffered; the buffer goes back when nothing is left.
void conn_drop(struct conn *conn, struct buffers *buffers, uint32_t bytes);

// Give back the field lines that were to be added to an answer.
void conn_drop_extra(struct conn *conn, struct buffers *buffers);
