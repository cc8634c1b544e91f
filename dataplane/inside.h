// The inside of a worker: the struct that holds all it touches, and what its files call in each
// other.
//
//   worker.c    start, stop, and the loop
//   client.c    events of visitors' streams: opened, data, end; input that must be kept; deadlines
//   burst.c     requests of a turn: parsed, their tokens verified together, decided
//   act.c       a decision carried out: an answer, a claim with the request parked
//   listing.c   lists of draws, longer than any other answer
//   forward.c   requests passed on to an origin
//   report.c    claims and reports to control, answers from it
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/conn.h"
#include "dataplane/counters.h"
#include "dataplane/gate/answer.h"
#include "dataplane/gate/claim.h"
#include "dataplane/gate/decide.h"
#include "dataplane/gate/mac.h"
#include "dataplane/gate/request.h"
#include "dataplane/http/head.h"
#include "dataplane/origin/exchange.h"
#include "dataplane/origin/origin.h"
#include "dataplane/random.h"
#include "dataplane/recall.h"
#include "dataplane/snapshot.h"
#include "dataplane/source.h"
#include "dataplane/timers.h"
#include "dataplane/tls/tls.h"
#include "dataplane/worker.h"
#include "drivers/span.h"
#include "drivers/stream.h"

#define BURST_MAX 64u // requests decided together: full lanes four times over
#define EVENTS_MAX 256 // events of one turn
#define TLS_EVENTS_MAX 64 // that these become in one round of TLS
#define DUE_MAX 64u // deadlines of one turn
#define CLOSE_MAX 256u // idle connections closed in one turn while draining
#define RENEWALS_MAX 4096u // sessions renewed by command whose pass may not have been told yet
#define ANSWERS_MAX 256u // claim answers of one turn
#define REPLY_BYTES_MAX 32768u // an answer of ours: a head and a page
#define LISTING_MAX 16u // lists of draws that a worker sends at once; beyond them 503
#define SITES_MAX 1024u // sites whose pre-flights are counted

// One request of the burst.
struct item {
	struct conn *conn;
	struct span rest; // what follows the head in this turn's input
	bool is_kept; // head and rest lie in the connection's buffer
	bool is_done; // acting took care of the rest
	bool answer_is_late; // it was parked, and no answer came in time
	uint32_t skip; // bytes of empty lines before the head
	const struct claim_answer *answer; // control's, if it comes back from being parked
	struct http_head head;
	struct gate_request request;
	char *scratch; // GATE_REQUEST_SCRATCH_BYTES of the longest line
};

// Bytes of the request, with empty lines before it and what of its body was read with it.
static inline uint32_t item_bytes(const struct item *item)
{
	return item->skip + item->head.head_bytes + item->request.body_bytes;
}

// A session that the origin's command has renewed: its next answer carries the new pass.
struct renewal {
	uint64_t session;
	uint32_t expires; // unix s
};

// The list of a draw that is being sent.
struct listing {
	struct conn *conn; // NULL: free
	struct draw_list *list;
	uint64_t sent; // lines of it
	uint32_t stalled_ms; // for which the peer has taken nothing
};

// Pre-flights of one site in the second under way.
struct preflights {
	uint32_t second, count;
};

// Claims refused in a room since control looked. Control swaps the key out; a race leaves floor a
// turn lower than need be, never higher.
struct refused {
	_Atomic uint64_t key; // the smallest; UINT64_MAX: none
	_Atomic uint32_t line_id; // of the room; another one may have the index after a reload
	_Atomic uint32_t poll_after; // s; the longest told
};

// What control reads of a worker; the only part that two threads touch.
struct worker_shown {
	struct counters counters;
	_Atomic uint32_t connections, busy;
	_Atomic bool is_draining;
	_Atomic bool stop; // written: control
	_Atomic bool is_woken; // written: control, after `stop`: it is done with the driver
	_Atomic bool has_refused; // since control looked
	struct refused refused[GATE_MAP_ROOMS_MAX]; // by the room's index
};

struct worker {
	struct worker_plan plan;
	struct stream_driver *driver; // of visitors
	struct stream_driver *visitor_tls; // on top of it: visitors that came over TLS
	struct stream_driver *outer; // of origins; may be the same as `driver`
	struct stream_driver *tls; // on top of that: origins over TLS
	const struct snapshot *snapshot; // of this turn
	uint64_t version; // of the one whose origins are in force
	uint64_t now_us; // CLOCK_MONOTONIC, once a turn
	uint64_t turn_began; // time stamp counter
	uint64_t came_us; // when anything came last, in the driver's time
	uint64_t now_ms; // cluster time
	uint32_t now_s;
	bool is_held; // control's heartbeat is old: park nothing
	bool is_draining;
	uint64_t ended_version, cut_version; // of the set and of the snapshot, when last looked for
	char date[32]; // IMF-fixdate of now_s
	uint32_t date_s; // for which `date` stands

	struct conn_table conns;
	struct timers timers; // of the connections
	struct source_table *sources;
	struct random *random;
	struct mac_engine *mac;
	struct token_print_key print_key; // of what connections remember
	struct recall *recall; // polls that were read before
	struct origin *origin;

	struct item *items; // BURST_MAX
	uint32_t item_count;
	struct mac_job *jobs;
	struct preflights preflights[SITES_MAX];
	struct renewal renewals[RENEWALS_MAX]; // by session id; a later one takes the place
	uint32_t parked_count;
	struct listing listings[LISTING_MAX]; // lists of draws that are being sent
	uint32_t listing_count;

	struct claim *reports; // a ring of WORKER_REPORTS_MAX
	uint32_t report_first, report_count;
	bool has_claims; // pushed this turn, or a window is full: control must wake

	char *reply; // REPLY_BYTES_MAX
	char hsts[ANSWER_HSTS_BYTES_MAX]; // the field line of one answer
	struct stream_event events[EVENTS_MAX];
	struct stream_event outer_events[EVENTS_MAX]; // where `outer` is another driver
	int outer_count;
	struct stream_event tls_events[TLS_EVENTS_MAX];

	struct worker_shown shown __attribute__((aligned(64)));
	unsigned long thread; // pthread_t
};

// The driver of a visitor's stream.
static inline struct stream_driver *inside_driver(const struct worker *w, const struct conn *conn)
{
	return conn->is_secure ? w->visitor_tls : w->driver;
}

// Count one.
static inline void inside_count(struct worker *w, enum counter which)
{
	counters_add(&w->shown.counters, which, 1);
}
