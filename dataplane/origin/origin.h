// The origin side of a worker: who the origins' servers are, how they do, the connections kept to
// them, and all exchanges in flight (exchange.h).
//
// Driven by stream events and one clock: it never waits, allocates nothing after creation, and all
// its loops and tables are bounded by the plan. A turn of the worker is
//
//   origin_tick(o, now)           first: the time of everything until the next one
//   origin_event(o, event)        for each event of a stream with listener STREAM_CONNECTED
//   exchange_...(x, ...)          for each event of a client's stream that has an exchange
//
// One thread, the worker's. A stream is a stream: servers that speak TLS are reached by a driver
// that wraps the other one (dataplane/tls/), and the events of both come here.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/http/head.h"
#include "dataplane/origin/origin_table.h"
#include "drivers/stream.h"

struct origin;
struct exchange_calls;

// Sizes and times. origin_plan_init() sets the defaults named here; 0 is not allowed unless said.
struct origin_plan {
	uint32_t exchanges_max; // requests in flight, tunnels included; and connections, in use
				// or kept, to all servers together
	uint32_t servers_max; // distinct servers in a table, and those of older ones still in use
	uint32_t idle_max; // connections kept to one server (32); 0: none. A bound for all origins
	uint32_t buffers_max; // heads on their way, and bodies that came before the connection
			      // (exchanges_max + a quarter + 16); a streaming exchange holds none
	uint32_t request_head_bytes; // the limit that requests were parsed with (16384)
	struct http_limits answer; // 4096, 32768, HTTP_FIELDS_MAX
	// Of origins whose table entry has no limits of its own; what they mean stands there.
	uint32_t connect_us; // 5 s
	uint32_t answer_us; // 60 s
	uint32_t idle_us; // 4 s
	uint32_t faults_max; // 3
	uint32_t aside_us; // 1 s
	uint32_t tunnel_us; // between two signs of life of a tunnel, of either side (10 min)
	uint32_t late_us; // what an answer in flight may take beyond its session's end (30 s)
	uint64_t body_us; // all of a request's body, times when the origin is too slow for it not
			  // counted; trickling does not extend it (10 min)
	uint32_t body_grace_us; // when body_rate begins to be asked for (10 s)
	uint32_t body_rate; // bytes/s that a request's body must average after the grace (512)
};

// The defaults, for that many requests in flight and servers.
void origin_plan_init(struct origin_plan *plan, uint32_t exchanges_max, uint32_t servers_max);

// What origin_create() will allocate, for the memory bill.
size_t origin_plan_bytes(const struct origin_plan *plan);

// Everything that can happen, counted. Written by the worker, read by anybody.
#define ORIGIN_COUNTERS(X) \
	X(exchanges, "requests passed on to an origin") \
	X(answers, "final answers passed on to a client") \
	X(interims, "1xx answers received") \
	X(tunnels, "upgrades accepted by an origin") \
	X(connects, "connections begun") \
	X(connects_failed, \
		"connections refused, unreachable or reset before they opened, or whose " \
		"TLS failed") \
	X(connects_late, "connections not open within connect_us") \
	X(connects_none, "connections not begun: out of streams or descriptors") \
	X(reuses, "requests sent on a kept connection") \
	X(retries, "requests sent again, on another connection") \
	X(kept, "connections kept after an answer") \
	X(kept_full, "connections not kept: idle_max of the server") \
	X(kept_evicted, "kept connections closed to make room for one to another server") \
	X(kept_expired, "kept connections closed by idle_us") \
	X(kept_closed, "kept connections closed by the origin") \
	X(kept_spoke, "kept connections dropped: bytes came without a request") \
	X(exchange_none, "requests refused: exchanges_max in flight") \
	X(buffer_none, "requests refused: no buffer free") \
	X(server_none, "requests refused: the origin has no server") \
	X(servers_full, "servers of a table left out: servers_max") \
	X(servers_aside, "times that a server was set aside") \
	X(request_too_large, "requests refused: head too large with the added fields") \
	X(request_body_bad, "request bodies against the chunked grammar") \
	X(request_body_cut, "request bodies cut short by the client") \
	X(request_body_late, "request bodies not whole within body_us") \
	X(request_body_slow, "request bodies slower than body_rate") \
	X(answer_none, "connections closed by the origin before an answer") \
	X(answer_bad, "answer heads against the grammar") \
	X(answer_too_large, "answer heads beyond a limit") \
	X(answer_unasked, "answers that came before the request") \
	X(answer_switched, "101 answers to requests without upgrade") \
	X(answer_flood, "answers with too many 1xx before them") \
	X(answer_late, "answers not begun within answer_us") \
	X(answer_body_bad, "answer bodies against the chunked grammar") \
	X(answer_body_cut, "answer bodies cut short by the origin") \
	X(answer_surplus, "connections dropped: bytes after the answer") \
	X(answer_early, "answers before the request's body had ended") \
	X(stalls, "answers and tunnels ended by answer_us or tunnel_us") \
	X(session_ends, "answers and tunnels ended by their session's end") \
	X(client_gone, "clients that left before the end of the answer") \
	X(client_full, "answers given up: the client's driver took no more") \
	X(origin_full, "requests given up: the origin's driver took no more")

struct origin_counters {
#define X(name, text) _Atomic uint64_t name; // written: the worker; any thread may read
	ORIGIN_COUNTERS(X)
#undef X
};

// Make the origin side of one worker.
//   plan    copied
//   driver  of the connections to origins; borrowed, must outlive the result
//   tls     likewise, of those with TLS (tls_create()); NULL if no table lists such a server
//   calls   what the worker wants to hear (exchange.h); borrowed likewise
// Returns NULL when out of memory. There is no table yet: every request is refused.
struct origin *origin_create(const struct origin_plan *plan, struct stream_driver *driver,
	struct stream_driver *tls, const struct exchange_calls *calls);

// Close what is kept and free all. No exchange may be in flight. Accepts NULL.
void origin_destroy(struct origin *origin);

// Go over to another table. Servers with an id that is known keep their health and connections;
// kept connections of servers no longer listed are closed; exchanges in flight finish. The table is
// borrowed until the next call; the one before may be freed when this returns.
void origin_set_table(struct origin *origin, const struct origin_table *table);

// Begin a turn: `now_us` is the time until the next one; it never goes back. Ends what has passed
// its deadline, at most ORIGIN_TICK_MAX exchanges and as many kept connections; the rest next turn.
// Call it once a turn, before the events: bytes of an origin that come in the same turn as the
// request went out are known to be no answer to it.
#define ORIGIN_TICK_MAX 64
void origin_tick(struct origin *origin, uint64_t now_us);

// When the next deadline may pass, for how long a worker may sleep; UINT64_MAX: there is none.
uint64_t origin_due_us(const struct origin *origin);

// Take in an event of a stream that this side has connected; STREAM_NONE is skipped.
void origin_event(struct origin *origin, const struct stream_event *event);

// How one server does, as this worker sees it. Each figure is of some moment near now.
struct origin_server_stat {
	uint64_t id; // of origin_table_server
	uint32_t exchanges; // in flight
	uint32_t kept; // idle connections
	uint32_t aside_us; // how long it is still set aside for; 0: healthy
	uint32_t tls_failures; // handshakes, since the server is known
	uint32_t tls_fault; // dataplane/tls/fault.h: why the latest failed; 0: it did not
};

// Copy the figures of up to `stats_max` servers that are listed, each once, in no order. Returns
// how many. `now_us` is that of origin_tick(). Any thread.
uint32_t origin_server_stats(const struct origin *origin, uint64_t now_us,
	struct origin_server_stat *stats, uint32_t stats_max);

// The figures of the server that stands at `index` of the table and has that id. False: this worker
// does not know it, since it has another table yet, or the server was left out. Any thread.
bool origin_server_stat(const struct origin *origin, uint32_t index, uint64_t id, uint64_t now_us,
	struct origin_server_stat *stat);

// They live as long as the origin side does.
const struct origin_counters *origin_counters(const struct origin *origin);

// Exchanges in flight now.
uint32_t origin_exchange_count(const struct origin *origin);
