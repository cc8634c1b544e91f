// A worker: one thread on one core that takes everything a visitor sends and answers it.
//
// Shared nothing: its own driver (listeners, connections), its own connections to origins, its own
// counters; but for the guard of codes (guard.h). It hears from control through the snapshot words
// and its answer ring, and speaks to it through its claim ring.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/counters.h"
#include "dataplane/http/head.h"
#include "dataplane/origin/origin.h"
#include "dataplane/rings.h"
#include "dataplane/snapshot.h"
#include "drivers/stream.h"

#define WORKER_COUNT_MAX 64u
#define WORKER_RESERVE 64u // connections beyond the limit, for those who are told 503
#define WORKER_CLAIM_MS_MAX \
	1000u // a claim not answered by then is answered `next`, or with a ticket
#define WORKER_DISCARD_BYTES (256u << 10) // of a body nobody wanted, before the connection is cut
#define WORKER_DISCARD_MS 2000u // and how long
#define WORKER_REST_AFTER_US 1000u // since anything came to a worker that polls and may rest
#define WORKER_REPORTS_MAX 4096u // reports to control kept while the ring is full

// Everything a worker is built from; nothing is allocated after.
struct worker_plan {
	unsigned index; // of WORKER_COUNT_MAX
	unsigned cpu; // pinned to
	uint32_t connections; // served at once
	uint32_t connections_per_source;
	uint32_t parked_max; // claims under way
	uint32_t buffers,
		buffer_bytes; // for what outlives a turn; at least a head and what is read at once
	struct http_limits limits;
	uint32_t head_timeout_ms; // absolute, from the first byte or the accept
	uint32_t idle_timeout_ms; // between two requests
	struct origin_plan origin;
	uint32_t tls_max; // connections to origins over TLS at once
	uint32_t visitor_tls_max; // visitors' connections over TLS at once
	uint32_t visitor_handshakes; // of theirs in a second; 0: as many as come
	struct stream_driver *driver; // visitors come by it; made by the caller, the worker's from
				      // worker_start() on, also when that fails
	struct stream_driver *outer; // origins are reached by it, likewise; NULL: by `driver` too
	uint32_t
		rest_us; // of a worker with an `outer` that has been idle for WORKER_REST_AFTER_US:
			 // it sleeps there, so long at most; 0: it polls all the time
	bool refuses_when_draining; // `driver` takes no connection any more then
	struct rings *rings; // stays the caller's, as all below
	struct snapshot_words *words;
	int control_wake; // eventfd that wakes control after claims were pushed
};

struct worker;

// What a worker holds, for the memory bill: for each connection, and whatever their number.
size_t worker_connection_bytes(void);
size_t worker_fixed_bytes(void);
size_t worker_errand_bytes(void); // and for each request that an origin may be at at once

// Make a worker and start its thread. Returns 0 or -errno when memory, the MAC self-test or the
// thread fail.
int worker_start(const struct worker_plan *plan, struct worker **worker);

// End the thread and free the worker: connections are reset. Waits for the thread. Accepts NULL.
void worker_stop(struct worker *worker);

// End a sleep, so that answers in its ring or new words are seen now. Control.
void worker_wake(struct worker *worker);

// Control, at any time:
const struct counters *worker_counters(const struct worker *worker);
unsigned worker_cpu(const struct worker *worker);
// For their counters only; the rest is the worker's.
const struct stream_driver *worker_driver(const struct worker *worker);
const struct stream_driver *worker_outer(const struct worker *worker);
const struct stream_driver *worker_tls(const struct worker *worker);
const struct stream_driver *worker_visitor_tls(const struct worker *worker);
const struct origin *worker_origin(const struct worker *worker);
uint32_t worker_connections(const struct worker *worker); // open now
uint32_t worker_busy(const struct worker *worker); // of those, with a request under way
bool worker_is_draining(const struct worker *worker); // it knows, and has closed who was idle

// A room in which this worker refused claims (ring full, held, too late).
struct worker_refused {
	uint64_t key; // the smallest
	uint32_t line_id;
	uint32_t poll_after; // s; the longest told
};

// Take what was refused since the last call. Returns in how many rooms. Control.
unsigned worker_take_refused(
	struct worker *worker, struct worker_refused refused[GATE_MAP_ROOMS_MAX]);
