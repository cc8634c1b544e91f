// The requests of a turn: each head is read as its bytes come, then the tokens of all are verified
// together, then each is decided and carried out.
//
// A head that came whole is read where it lies, in the driver's buffer; only what is incomplete is
// copied. A connection has at most one request in the burst, so that pipelined requests are
// answered in order; what follows a request is offered again when that one has been answered.

#include "dataplane/burst.h"

#include "dataplane/act.h"
#include "dataplane/client.h"
#include "dataplane/gate/lane.h"
#include "dataplane/proxied.h"

#include <assert.h>
#include <string.h>

// What follows a request, once it has been acted on.
struct after {
	struct conn *conn;
	bool is_kept, is_done;
	uint32_t done; // bytes of the kept input that are done with
	struct span rest;
};

static const unsigned refusals[] = {[HTTP_BAD] = 400,
	[HTTP_TOO_LARGE] = 431,
	[HTTP_LINE_TOO_LARGE] = 414,
	[HTTP_VERSION] = 505};

static enum counter refusal_counter(enum http_result result)
{
	if (result == HTTP_BAD)
		return COUNTER_bad_head;
	return result == HTTP_VERSION ? COUNTER_bad_version : COUNTER_head_too_large;
}

static void refuse(struct worker *w, struct conn *conn, struct span input, enum http_result result)
{
	inside_count(w, refusal_counter(result));
	if (result == HTTP_TOO_LARGE)
		act_refuse_too_large(w, conn, input);
	else
		act_refuse(w, conn, refusals[result]);
}

// The head is not whole: what came must outlive the turn, and the head has a deadline from its
// first byte.
static void wait_for_more(struct worker *w, struct conn *conn, struct span data, uint32_t scanned)
{
	if (data.len > 0 && !conn_keep(&w->conns, conn, data)) {
		inside_count(w, COUNTER_buffers_exhausted);
		act_refuse(w, conn, 503);
		return;
	}
	if (conn->kept)
		conn_kept(&w->conns, conn)->scanned = scanned;
	if (conn->has_ended) {
		client_close(w, conn, false);
		return;
	}
	if (conn->list == CONN_IDLE && conn->kept) {
		conn_leave(&w->conns, conn, CONN_IDLE);
		client_set_deadline(w, conn, w->plan.head_timeout_ms);
	}
}

// Read the head that `from` begins with, and its request: by one that was read before, if it can
// be.
static enum http_result read_request(
	struct worker *w, struct span from, uint32_t *scanned, struct item *item)
{
	const struct http_limits *limits = &w->plan.limits;
	struct recall_trace trace;
	if (recall_read(w->recall, w->version, from, limits, &trace, &item->head, item->scratch,
		    &item->request)) {
		inside_count(w, COUNTER_recalled);
		return HTTP_OK;
	}
	enum http_result result = http_request_read(from, limits, scanned, &item->head);
	if (result != HTTP_OK)
		return result;
	gate_request_read(&w->snapshot->map, &item->head, item->scratch, &item->request);
	recall_keep(w->recall, &trace, &item->head, &item->request);
	return HTTP_OK;
}

// The body of a code comes with its head, or is asked for (RFC 9110 10.1.1), once. If that cannot
// be written now its sender waits no longer than it likes, as the RFC has it.
static void ask_for_body(struct worker *w, struct conn *conn, const struct item *item)
{
	const struct span more = SPAN("HTTP/1.1 100 Continue\r\n\r\n");
	if (!item->head.expect_continue || item->rest.len > 0 || conn->was_continued)
		return;
	conn->was_continued = true;
	stream_write(inside_driver(w, conn), conn->stream, &more, 1);
}

static void enter_lane(const struct worker *w, const struct conn *conn, struct item *item)
{
	const uint8_t *peer = conn->stream->peer.ip;
	uint8_t ip[16];
	proxied_source(w->snapshot, &item->head, peer, ip);
	lane_enter(&item->head, ip, snapshot_is_trusted(w->snapshot, peer), &item->request);
}

// Read the head at the start of `input` into the burst. Returns HTTP_OK if a request was added.
//   scanned  of the input, looked at before; and by now
static enum http_result read_head(
	struct worker *w, struct conn *conn, struct span input, bool is_kept, uint32_t *scanned)
{
	struct item *item = &w->items[w->item_count];
	size_t skip = http_head_skip(input);
	struct span from = span_from(input, skip);
	enum http_result result = read_request(w, from, scanned, item);
	if (result != HTTP_OK)
		return result;
	item->conn = conn;
	item->skip = (uint32_t)skip;
	item->rest = span_from(from, item->head.head_bytes);
	item->is_kept = is_kept;
	item->is_done = false;
	item->answer = NULL;
	item->answer_is_late = false;
	if (item->request.route == GATE_ROUTE_CODE &&
		!code_read(&item->head, item->rest, &item->request)) {
		ask_for_body(w, conn, item);
		return HTTP_MORE;
	}
	item->rest = span_from(item->rest, item->request.body_bytes);
	if (item->request.room && item->request.room->lane_count > 0)
		enter_lane(w, conn, item);
	w->item_count++;
	return HTTP_OK;
}

// It sends and does not read its answers: what it has sent waits until it has (STREAM_WRITABLE).
static void hold(struct worker *w, struct conn *conn, struct span data)
{
	stream_pause(inside_driver(w, conn), conn->stream);
	if (client_keep_rest(w, conn, data))
		conn_leave(&w->conns, conn, CONN_IDLE);
}

void burst_offer(struct worker *w, struct conn *conn, struct span data)
{
	assert(conn->state == CONN_HEAD);
	assert(!conn->is_pending);
	const struct stream_driver *driver = inside_driver(w, conn);
	if (stream_queued(driver, conn->stream) > driver->queue_high) {
		hold(w, conn, data);
		return;
	}
	if (w->item_count == BURST_MAX)
		burst_run(w);
	const struct conn_kept *kept = conn_kept(&w->conns, conn);
	if (kept && data.len > 0 && !conn_keep(&w->conns, conn, data)) {
		inside_count(w, COUNTER_pipeline_full);
		act_refuse(w, conn, 431);
		return;
	}
	struct span input = kept ? (struct span){kept->at, kept->bytes} : data;
	uint32_t scanned = kept ? kept->scanned : 0;
	enum http_result result = read_head(w, conn, input, kept, &scanned);
	if (result == HTTP_MORE && kept && kept->bytes == w->conns.kept_max) {
		inside_count(w, COUNTER_pipeline_full);
		act_refuse(w, conn, 431);
	} else if (result == HTTP_MORE) {
		wait_for_more(w, conn, kept ? (struct span){0} : data, scanned);
	} else if (result != HTTP_OK) {
		refuse(w, conn, input, result);
	} else {
		conn_leave(&w->conns, conn, CONN_IDLE);
		conn->is_pending = true;
		conn->was_continued = false;
		inside_count(w, COUNTER_requests);
	}
}

void burst_offer_answered(struct worker *w, struct conn *conn, const struct claim_answer *answer)
{
	assert(conn->state == CONN_PARKED);
	if (w->item_count == BURST_MAX)
		burst_run(w);
	conn_set_state(conn, CONN_HEAD);
	w->parked_count--;
	struct item *item = &w->items[w->item_count];
	const struct conn_kept *kept = conn_kept(&w->conns, conn);
	uint32_t scanned = 0;
	enum http_result result =
		read_head(w, conn, (struct span){kept->at, kept->bytes}, true, &scanned);
	assert(result == HTTP_OK); // it was read before
	item->answer = answer;
	item->answer_is_late = !answer;
	conn->is_pending = true;
}

// Count the tokens of a request that stand so; once, though it may be read again after a claim.
static void count_tokens(
	struct worker *w, const struct item *item, enum gate_token_state state, enum counter which)
{
	if (item->answer || item->answer_is_late)
		return;
	for (uint32_t i = 0; i < item->request.token_count; i++)
		if (item->request.tokens[i].state == state)
			inside_count(w, which);
}

// Decode the tokens of all requests and compute their MACs side by side.
static void verify(struct worker *w)
{
	uint32_t job_count = 0;
	for (uint32_t i = 0; i < w->item_count; i++) {
		struct item *item = &w->items[i];
		uint32_t jobs = gate_request_tokens(&item->request, &w->snapshot->secrets,
			&w->print_key, &item->conn->remembered, w->now_s, &w->jobs[job_count]);
		job_count += jobs;
		count_tokens(w, item, GATE_TOKEN_VALID, COUNTER_tokens_remembered);
	}
	if (job_count > 0)
		mac_burst(w->mac, w->jobs, job_count);
	counters_add(&w->shown.counters, COUNTER_tokens, job_count);
	for (uint32_t i = 0; i < w->item_count; i++) {
		struct item *item = &w->items[i];
		gate_request_settle(&item->request, &item->conn->remembered, w->now_s);
		count_tokens(w, item, GATE_TOKEN_NONE, COUNTER_bad_token);
	}
}

// Nothing is left of its input: it may be idle, and is read again if it was not.
static void be_idle(struct worker *w, struct conn *conn, bool was_kept)
{
	conn_enter(&w->conns, conn, CONN_IDLE);
	if (was_kept)
		stream_resume(inside_driver(w, conn), conn->stream);
}

// Go on with what followed a request, if its connection is ready for the next.
static void go_on(struct worker *w, const struct after *after)
{
	struct conn *conn = after->conn;
	if (conn->state != CONN_HEAD || after->is_done)
		return; // acting took care of the rest
	if (after->is_kept)
		conn_drop(&w->conns, conn, after->done);
	bool has_more = after->is_kept ? conn->kept : after->rest.len > 0;
	if (has_more)
		burst_offer(w, conn, after->is_kept ? (struct span){0} : after->rest);
	else if (conn->has_ended)
		client_close(w, conn, false);
	else
		be_idle(w, conn, after->is_kept);
}

void burst_run(struct worker *w)
{
	struct after after[BURST_MAX];
	while (w->item_count > 0) {
		uint32_t item_count = w->item_count;
		verify(w);
		for (uint32_t i = 0; i < item_count; i++) {
			struct item *item = &w->items[i];
			after[i] = (struct after){.conn = item->conn,
				.is_kept = item->is_kept,
				.done = item_bytes(item),
				.rest = item->rest};
			item->conn->is_pending = false;
			act(w, item);
			after[i].is_done = item->is_done;
		}
		assert(w->item_count == item_count); // acting offers nothing
		w->item_count = 0;
		for (uint32_t i = 0; i < item_count; i++)
			go_on(w, &after[i]);
	}
}
