// What happens on visitors' streams, apart from the requests themselves: connections open and end,
// input is kept or discarded, deadlines pass.

#include "dataplane/client.h"

#include "dataplane/act.h"
#include "dataplane/burst.h"
#include "dataplane/listing.h"

#include <assert.h>

static void opened(struct worker *w, struct stream *stream, bool is_secure);
static void shaken(struct worker *w, struct conn *conn);
static void data_came(struct worker *w, struct conn *conn, struct span data);
static void peer_ended(struct worker *w, struct conn *conn);
static void client_resume(struct worker *w, struct conn *conn);
static void end(struct worker *w, struct conn *conn);

void client_event(struct worker *w, const struct stream_event *event)
{
	struct conn *conn = event->stream->user;
	if (event->kind == STREAM_OPENED && !conn) {
		opened(w, event->stream, tls_serves(w->visitor_tls, event->stream->listener));
		return;
	}
	if (!conn)
		return; // refused when it opened, and on its way out
	if (conn->is_pending)
		burst_run(w); // its request comes first, and may have ended it
	if (event->stream->user != conn || conn->stream != event->stream)
		return;
	switch (event->kind) {
	case STREAM_OPENED:
		shaken(w, conn);
		break;
	case STREAM_DATA:
		data_came(w, conn, event->data);
		break;
	case STREAM_WRITABLE:
		if (conn->state == CONN_EXCHANGE)
			exchange_client_writable(conn_errand(&w->conns, conn)->exchange);
		else if (conn->state == CONN_HEAD && conn->kept)
			client_resume(w, conn); // pipelined requests waited for it to read
		break;
	case STREAM_EOF:
		peer_ended(w, conn);
		break;
	default:
		assert(event->kind == STREAM_CLOSED);
		if (conn->state == CONN_PARKED || conn->state == CONN_EXCHANGE)
			inside_count(w, COUNTER_peer_gone);
		end(w, conn); // the driver has the stream back
	}
}

void client_set_deadline(struct worker *w, struct conn *conn, uint32_t after_ms)
{
	timers_set(&w->timers, conn_index(&w->conns, conn), w->now_us + after_ms * 1000ull);
}

// Answer 503 to somebody who gets no connection, and close. Over TLS that would cost a handshake: a
// reset.
static void turn_away(struct worker *w, struct stream *stream, bool is_secure)
{
	static const struct span answer = SPAN("HTTP/1.1 503 Service Unavailable\r\n"
					       "Retry-After: 5\r\nCache-Control: no-store\r\n"
					       "Connection: close\r\nContent-Length: 0\r\n\r\n");
	stream->user = NULL;
	if (!is_secure)
		stream_write(w->driver, stream, &answer, 1);
	stream_close(w->driver, stream, is_secure);
}

// At nine tenths full, the longest idle makes room.
static void make_room(struct worker *w)
{
	uint32_t most = w->conns.serve_max - w->conns.serve_max / 10;
	struct conn *longest = conn_first(&w->conns, CONN_IDLE);
	if (w->conns.count < most || !longest)
		return;
	inside_count(w, COUNTER_evicted);
	client_close(w, longest, false);
}

// Let the connection speak TLS. Returns false if there is no stream for it.
static bool secure(struct worker *w, struct conn *conn, struct stream *stream)
{
	struct stream *over = tls_accept(w->visitor_tls, stream, conn);
	if (!over)
		return false;
	conn->stream = over;
	conn->is_secure = conn->is_opening = true;
	return true;
}

// The handshake of a connection is done: its patience begins anew, for a head.
static void shaken(struct worker *w, struct conn *conn)
{
	assert(conn->is_opening);
	conn->is_opening = false;
	client_set_deadline(w, conn, w->plan.head_timeout_ms);
}

// Somebody has connected; with `is_secure` there will be a handshake first.
static void opened(struct worker *w, struct stream *stream, bool is_secure)
{
	inside_count(w, COUNTER_connections);
	make_room(w);
	bool is_full = w->conns.count >= w->conns.serve_max;
	if (is_full)
		inside_count(w, COUNTER_table_full);
	else if (!source_take(w->sources, stream->peer.ip)) {
		inside_count(w, COUNTER_source_full);
		turn_away(w, stream, is_secure);
		return;
	}
	struct conn *conn = is_full && is_secure ? NULL : conn_take(&w->conns, stream);
	if (!conn) { // even the reserve is in use
		turn_away(w, stream, is_secure);
		return;
	}
	stream->user = conn;
	conn->is_counted = !is_full;
	if (is_secure && !secure(w, conn, stream)) {
		client_close(w, conn, true);
		return;
	}
	if (is_full) {
		act_refuse(w, conn, 503);
		return;
	}
	conn_enter(&w->conns, conn, CONN_IDLE);
	client_set_deadline(w, conn, w->plan.head_timeout_ms);
}

static void discard(struct worker *w, struct conn *conn, size_t bytes)
{
	static_assert(WORKER_DISCARD_BYTES < 1u << CONN_DISCARD_BITS, "it can be counted");
	bytes += conn->discarded;
	if (bytes <= WORKER_DISCARD_BYTES) {
		conn->discarded = (uint32_t)bytes & ((1u << CONN_DISCARD_BITS) - 1);
		return;
	}
	inside_count(w, COUNTER_drain_timeout);
	client_close(w, conn, true);
}

// Bytes while an exchange runs: its body, its tunnel, or the next request, which must wait.
static void feed_exchange(struct worker *w, struct conn *conn, struct span data)
{
	struct exchange *exchange = conn_errand(&w->conns, conn)->exchange;
	size_t taken = conn->kept ? 0 : exchange_client_data(exchange, data);
	if (conn->state == CONN_FREE)
		return;
	data = span_from(data, taken);
	if (data.len == 0)
		return;
	if (conn->state == CONN_HEAD)
		burst_offer(w, conn, data);
	else if (conn->state == CONN_EXCHANGE)
		client_keep_rest(w, conn, data);
	else
		discard(w, conn, data.len);
}

static void data_came(struct worker *w, struct conn *conn, struct span data)
{
	switch (conn->state) {
	case CONN_HEAD:
		burst_offer(w, conn, data);
		break;
	case CONN_PARKED:
	case CONN_LISTING:
		client_keep_rest(w, conn, data);
		break;
	case CONN_EXCHANGE:
		feed_exchange(w, conn, data);
		break;
	default:
		assert(conn->state == CONN_DISCARD);
		discard(w, conn, data.len);
	}
}

static void peer_ended(struct worker *w, struct conn *conn)
{
	conn->has_ended = true;
	switch (conn->state) {
	case CONN_EXCHANGE:
		if (!conn->kept) // else it ends after what is kept
			exchange_client_eof(conn_errand(&w->conns, conn)->exchange);
		break;
	case CONN_PARKED:
	case CONN_LISTING:
		break; // answered all the same; closed after
	default:
		if (conn->state == CONN_HEAD && conn->kept)
			burst_offer(w, conn, (struct span){0}); // requests wait, or part of one
		else
			client_close(w, conn, false); // nothing more can come of it
	}
}

bool client_keep_rest(struct worker *w, struct conn *conn, struct span rest)
{
	if (rest.len == 0)
		return true;
	if (conn_keep(&w->conns, conn, rest)) {
		stream_pause(inside_driver(w, conn), conn->stream);
		return true;
	}
	inside_count(w, conn->kept ? COUNTER_pipeline_full : COUNTER_buffers_exhausted);
	client_close(w, conn, true);
	return false;
}

void client_answered(struct worker *w, struct conn *conn)
{
	assert(conn->state == CONN_HEAD);
	conn->was_served = true;
	if (conn->has_ended && (conn->close_after || !conn->kept)) {
		client_close(w, conn, false);
		return;
	}
	if (conn->close_after) {
		client_discard(w, conn); // a close while it still sends would reset the answer
		return;
	}
	if (!conn->kept)
		conn_enter(&w->conns, conn, CONN_IDLE);
	client_set_deadline(w, conn, w->plan.idle_timeout_ms);
}

void client_discard(struct worker *w, struct conn *conn)
{
	conn_set_state(conn, CONN_DISCARD);
	conn_leave(&w->conns, conn, CONN_IDLE);
	conn_drop_kept(&w->conns, conn);
	if (conn->has_ended) {
		client_close(w, conn, false);
		return;
	}
	stream_shut(inside_driver(w, conn), conn->stream);
	stream_resume(inside_driver(w, conn), conn->stream);
	client_set_deadline(w, conn, WORKER_DISCARD_MS);
}

// Forget a connection, whose stream is still there to be read.
static void end(struct worker *w, struct conn *conn)
{
	const struct conn_errand *errand = conn_errand(&w->conns, conn);
	if (conn->state == CONN_EXCHANGE && errand->exchange)
		exchange_client_closed(errand->exchange);
	if (conn->state == CONN_PARKED)
		w->parked_count--;
	if (conn->state == CONN_LISTING)
		listing_end(w, conn);
	if (conn->is_counted)
		source_give(w->sources, conn->stream->peer.ip);
	timers_remove(&w->timers, conn_index(&w->conns, conn));
	conn_give(&w->conns, conn);
}

void client_close(struct worker *w, struct conn *conn, bool reset)
{
	struct stream_driver *driver = inside_driver(w, conn);
	struct stream *stream = conn->stream;
	end(w, conn);
	stream->user = NULL;
	stream_close(driver, stream, reset);
}

// Look at what the connection has kept, as if it had just arrived.
static void client_resume(struct worker *w, struct conn *conn)
{
	stream_resume(inside_driver(w, conn), conn->stream);
	burst_offer(w, conn, (struct span){0});
}

static void deadline_passed(struct worker *w, struct conn *conn)
{
	switch (conn->state) {
	case CONN_HEAD:
		if (conn->is_opening) {
			tls_late(w->visitor_tls, conn->stream);
			client_close(w, conn, true);
		} else if (conn->list == CONN_IDLE) {
			inside_count(w, COUNTER_idle_timeout);
			client_close(w, conn, false);
		} else {
			inside_count(w, COUNTER_head_timeout);
			act_refuse(w, conn, 408);
		}
		break;
	case CONN_PARKED:
		inside_count(w, COUNTER_claim_timeout);
		burst_offer_answered(w, conn, NULL);
		break;
	case CONN_LISTING:
		listing_go_on(w, conn);
		break;
	default:
		assert(conn->state == CONN_DISCARD);
		inside_count(w, COUNTER_drain_timeout);
		client_close(w, conn, false); // our answer may still be on its way
	}
}

void client_deadlines(struct worker *w)
{
	static_assert(DUE_MAX <= BURST_MAX, "no burst runs while the due are gone through");
	uint32_t due[DUE_MAX];
	unsigned due_count = timers_due(&w->timers, w->now_us, due, DUE_MAX);
	for (unsigned i = 0; i < due_count; i++)
		deadline_passed(w, &w->conns.conns[due[i]]);
}

bool client_resumed(struct worker *w)
{
	struct conn *conn = conn_first(&w->conns, CONN_RESUMED);
	bool were_any = conn;
	while ((conn = conn_first(&w->conns, CONN_RESUMED))) {
		conn_leave(&w->conns, conn, CONN_RESUMED);
		if (conn->state == CONN_HEAD && conn->kept && !conn->is_pending)
			client_resume(w, conn);
	}
	return were_any;
}

void client_resume_later(struct worker *w, struct conn *conn)
{
	conn_enter(&w->conns, conn, CONN_RESUMED);
	client_set_deadline(w, conn, w->plan.head_timeout_ms);
}

void client_close_idle(struct worker *w)
{
	struct conn *conn = conn_first(&w->conns, CONN_IDLE);
	for (unsigned i = 0; conn && i < CLOSE_MAX; i++) {
		struct conn *next = conn_next(&w->conns, conn);
		if (conn->was_served) // who has just connected is still answered
			client_close(w, conn, false);
		conn = next;
	}
}
