// Requests passed on to an origin: begun with what the gate decided, ended by what the origin said.

#include "dataplane/forward.h"

#include "dataplane/act.h"
#include "dataplane/client.h"
#include "dataplane/gate/answer.h"
#include "dataplane/report.h"

#include <assert.h>
#include <string.h>

static struct answer_frame frame_of(const struct worker *w, const struct conn *conn)
{
	struct answer_frame frame = act_frame(w, conn);
	frame.minor = conn->minor;
	frame.close = frame.close || conn->close_after;
	frame.is_head = conn->is_head_request;
	return frame;
}

// What must be known of the request when its answer comes. Returns false if there is no buffer for
// what is to be added to it.
static bool remember(struct worker *w, struct conn *conn, const struct item *item,
	const struct decision *decision)
{
	const struct gate_request *request = &item->request;
	conn->minor = item->head.minor;
	conn->is_head_request = item->head.method == HTTP_HEAD;
	conn->wants_json = request->wants_json;
	conn->close_after = !item->head.keep_alive;
	conn->session = decision->session;
	conn->visitor = decision->pass.visitor;
	conn->secret_id =
		decision->sets_pass ? w->snapshot->secrets.current : decision->pass.secret_id;
	conn->expires = decision->ends_s;
	conn->line_id = request->room ? request->room->line_id : 0;
	conn->room = request->room ? request->room->index : 0;
	char fields[ANSWER_FIELDS_BYTES_MAX + ANSWER_HSTS_BYTES_MAX];
	struct carry_stale stale;
	struct answer_frame frame = frame_of(w, conn);
	act_find_stale(w, item, decision->sets_pass, &stale);
	frame.site = request->site;
	frame.stale = &stale;
	size_t bytes = answer_fields(decision, request, &frame, fields);
	conn->hsts_s = conn->is_secure ? request->site->hsts_s : 0;
	if (bytes == 0)
		return true;
	bytes += answer_hsts(conn->hsts_s, fields + bytes);
	conn->extra = buffers_take(w->buffers);
	if (!conn->extra)
		return false;
	assert(bytes <= w->plan.buffer_bytes);
	memcpy(conn->extra, fields, bytes);
	conn->extra_bytes = (uint32_t)bytes;
	return true;
}

// The field lines to add to the answer. They lie in a buffer if some of them are for this visitor.
static struct span added(struct conn *conn)
{
	char *line = conn->worker->hsts;
	if (conn->extra_bytes > 0)
		return (struct span){conn->extra, conn->extra_bytes};
	return (struct span){line, answer_hsts(conn->hsts_s, line)};
}

// An answer in place of the origin's, with the pass that may have been granted: the session is
// kept.
static bool reply_failed(struct worker *w, struct conn *conn, unsigned status)
{
	struct answer_frame frame = frame_of(w, conn);
	size_t bytes = answer_refusal(status, conn->wants_json, &frame, w->reply);
	char *blank = memmem(w->reply, bytes, "\r\n\r\n", 4);
	assert(blank);
	size_t head = (size_t)(blank - w->reply) + 2;
	struct span more = added(conn);
	struct span parts[] = {{w->reply, head}, more, {w->reply + head, bytes - head}};
	size_t all = bytes + more.len;
	bool is_sent = stream_write(inside_driver(w, conn), conn->stream, parts, 3) == all;
	conn_drop_extra(conn, w->buffers);
	if (is_sent)
		return true;
	inside_count(w, COUNTER_write_failed);
	client_close(w, conn, true);
	return false;
}

// The origin gave no answer: send one of ours. Returns whether the connection may go on: it is
// there, and the request's body is over.
static bool fail(struct worker *w, struct conn *conn, unsigned status, bool body_ended)
{
	static const struct {
		unsigned status;
		enum counter counter;
	} counters[] = {{502, COUNTER_origin_failed}, {504, COUNTER_origin_late},
		{503, COUNTER_exchanges_full}, {408, COUNTER_slow_body}, {400, COUNTER_bad_body},
		{431, COUNTER_head_too_large}};
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		if (counters[i].status == status)
			inside_count(w, counters[i].counter);
	if (!body_ended)
		conn->close_after = true;
	if (!reply_failed(w, conn, status))
		return false;
	if (!body_ended)
		client_discard(w, conn);
	return body_ended;
}

static uint64_t ends_us(const struct worker *w, uint32_t ends_s)
{
	if (ends_s == 0)
		return UINT64_MAX;
	uint64_t ends_ms = ends_s * 1000ull;
	return ends_ms > w->now_ms ? w->now_us + (ends_ms - w->now_ms) * 1000 : w->now_us;
}

// An exchange is over: go on with what is kept, or rest.
static void end_kept(struct worker *w, struct conn *conn)
{
	if (conn->buffered > 0 && !conn->close_after)
		client_resume_later(w, conn);
	else
		client_answered(w, conn);
}

// Hand over the bytes after the head: those of the body are the exchange's, the rest is kept.
static void pass_rest(struct worker *w, struct item *item)
{
	struct conn *conn = item->conn;
	struct span rest = item->rest;
	stream_resume(inside_driver(w, conn), conn->stream); // first: the exchange may pause it
	if (item->is_kept) {
		conn_drop(conn, w->buffers, item->skip + item->head.head_bytes);
		rest = (struct span){conn->buffer, conn->buffered};
	}
	size_t taken = rest.len > 0 ? exchange_client_data(conn->exchange, rest) : 0;
	if (conn->state == CONN_FREE || conn->state == CONN_DISCARD)
		return;
	if (item->is_kept)
		conn_drop(conn, w->buffers, (uint32_t)taken);
	else if (!client_keep_rest(w, conn, span_from(rest, taken)))
		return;
	if (conn->state == CONN_HEAD)
		end_kept(w, conn); // it has ended already
	else if (conn->has_ended && conn->buffered == 0)
		exchange_client_eof(conn->exchange);
}

// There is no buffer for the pass: one that is not handed out is none, and its grant goes back.
static void refuse_without_buffer(
	struct worker *w, struct item *item, const struct decision *decision)
{
	const struct claim_answer *answer = item->answer;
	inside_count(w, COUNTER_buffers_exhausted);
	if (answer && answer->verdict == CLAIM_GRANTED && answer->session == decision->session)
		report_gone(w, answer);
	act_refuse(w, item->conn, 503);
}

void forward(struct worker *w, struct item *item, const struct decision *decision)
{
	struct conn *conn = item->conn;
	const struct gate_request *request = &item->request;
	if (!remember(w, conn, item, decision)) {
		refuse_without_buffer(w, item, decision);
		return;
	}
	if (decision->is_uncounted)
		report_passed(w, request->room);
	struct exchange_request begin = {.client_driver = inside_driver(w, conn),
		.client = conn->stream,
		.user = conn,
		.head = &item->head,
		.origin = request->site->origin,
		.host = request->host,
		.room = request->room ? request->room->name : (struct span){0},
		.session = decision->session,
		.ends_us = ends_us(w, decision->ends_s),
		.is_tls = conn->is_secure,
		.peer_is_trusted = snapshot_is_trusted(w->snapshot, conn->stream->peer.ip)};
	uint16_t status = 0;
	conn_set_idle(&w->conns, conn, false);
	wheel_remove(&w->wheel, &conn->deadline);
	struct exchange *exchange = exchange_begin(w->origin, &begin, &status);
	if (!exchange) {
		if (fail(w, conn, status, !request->has_body))
			client_answered(w, conn);
		return;
	}
	inside_count(w, COUNTER_forwarded);
	conn->exchange = exchange;
	conn_set_state(conn, CONN_EXCHANGE);
	conn_set_exchanging(&w->conns, conn, decision->session != 0);
	item->is_done = true;
	pass_rest(w, item);
}

void forward_cut_ended(struct worker *w)
{
	const struct ended *ended = w->plan.words->ended;
	const struct conn *head = &w->conns.exchanging;
	for (struct conn *conn = head->exchange_next, *next; conn != head; conn = next) {
		next = conn->exchange_next;
		uint8_t secret = w->snapshot->secrets.state[conn->secret_id];
		if (secret != TOKEN_SECRET_VALID || ended_has(ended, conn->session))
			exchange_set_ends(conn->exchange, w->now_us);
	}
}

// What an exchange tells; `user` is the connection.

static void on_command(void *user, enum exchange_command command)
{
	struct conn *conn = user;
	struct worker *w = conn->worker;
	if (conn->session == 0)
		return;
	struct claim claim = {.kind = command == EXCHANGE_COMMAND_END ? CLAIM_END : CLAIM_RENEW,
		.worker = (uint8_t)w->plan.index,
		.room = conn->room,
		.line_id = conn->line_id,
		.session = conn->session,
		.visitor = conn->visitor,
		.expires = command == EXCHANGE_COMMAND_END ? conn->expires : 0,
		.sent_ms = w->now_ms};
	report_send(w, &claim);
}

static void on_answered(void *user, uint16_t status, struct exchange_extra *extra)
{
	(void)status;
	struct conn *conn = user;
	extra->fields = added(conn);
	extra->date = (struct span){conn->worker->date, strlen(conn->worker->date)};
	extra->is_private = conn->extra_bytes > 0;
	extra->close = conn->worker->is_draining;
}

static void on_tunnelled(void *user)
{
	struct conn *conn = user;
	struct worker *w = conn->worker;
	if (conn->buffered == 0)
		return;
	uint32_t kept = conn->buffered;
	exchange_client_data(conn->exchange, (struct span){conn->buffer, kept});
	if (conn->state != CONN_EXCHANGE)
		return;
	conn_drop(conn, w->buffers, kept);
	if (conn->has_ended)
		exchange_client_eof(conn->exchange);
}

static void on_ended(void *user, const struct exchange_end *end)
{
	struct conn *conn = user;
	struct worker *w = conn->worker;
	assert(conn->state == CONN_EXCHANGE);
	conn->exchange = NULL;
	conn_set_exchanging(&w->conns, conn, false);
	conn_set_state(conn, CONN_HEAD);
	if (end->outcome != EXCHANGE_FAILED)
		conn_drop_extra(conn, w->buffers);
	switch ((enum exchange_outcome)end->outcome) {
	case EXCHANGE_KEPT:
		end_kept(w, conn);
		break;
	case EXCHANGE_CLOSE:
		client_close(w, conn, false);
		break;
	case EXCHANGE_LINGER:
		client_discard(w, conn);
		break;
	case EXCHANGE_BROKEN:
		client_close(w, conn, true);
		break;
	case EXCHANGE_FAILED:
		if (fail(w, conn, end->status, end->body_ended))
			end_kept(w, conn);
	}
}

const struct exchange_calls forward_calls = {.command = on_command,
	.answered = on_answered,
	.tunnelled = on_tunnelled,
	.ended = on_ended};
