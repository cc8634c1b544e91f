// Requests passed on to an origin: begun with what the gate decided, ended by what the origin said.

#include "dataplane/forward.h"

#include "dataplane/act.h"
#include "dataplane/client.h"
#include "dataplane/gate/answer.h"
#include "dataplane/gate/page.h"
#include "dataplane/report.h"

#include <assert.h>
#include <string.h>

static struct answer_frame frame_of(const struct worker *w, const struct conn_errand *errand)
{
	struct answer_frame frame = act_frame(w, errand->conn);
	frame.minor = errand->minor;
	frame.close = frame.close || errand->conn->close_after;
	frame.is_head = errand->is_head_request;
	return frame;
}

// What must be known of the request when its answer comes. Returns false if there is no buffer for
// what is to be added to it.
static bool remember(struct worker *w, struct conn_errand *errand, const struct item *item,
	const struct decision *decision)
{
	const struct gate_request *request = &item->request;
	errand->worker = w;
	errand->minor = item->head.minor;
	errand->is_head_request = item->head.method == HTTP_HEAD;
	errand->wants_json = request->wants_json;
	errand->site = request->site->index;
	errand->language = request->language;
	errand->encoding = request->encoding;
	errand->conn->close_after = !item->head.keep_alive;
	errand->session = decision->session;
	errand->visitor = decision->pass.visitor;
	errand->secret_id =
		decision->sets_pass ? w->snapshot->secrets.current : decision->pass.secret_id;
	errand->expires = decision->ends_s;
	errand->line_id = request->room ? request->room->line_id : 0;
	errand->room = request->room ? request->room->index : 0;
	char fields[ANSWER_FIELDS_BYTES_MAX + ANSWER_HSTS_BYTES_MAX];
	struct carry_stale stale;
	struct answer_frame frame = frame_of(w, errand);
	act_find_stale(w, item, decision->sets_pass, &stale);
	frame.site = request->site;
	frame.stale = &stale;
	size_t bytes = answer_fields(decision, request, &frame, fields);
	errand->hsts_s = errand->conn->is_secure ? request->site->hsts_s : 0;
	if (bytes == 0)
		return true;
	bytes += answer_hsts(errand->hsts_s, fields + bytes);
	errand->extra = buffers_take(w->conns.buffers);
	if (!errand->extra)
		return false;
	assert(bytes <= w->plan.buffer_bytes);
	memcpy(buffers_at(w->conns.buffers, errand->extra), fields, bytes);
	errand->extra_bytes = (uint32_t)bytes;
	return true;
}

// The field lines to add to the answer. They lie in a buffer if some of them are for this visitor.
static struct span added(const struct conn_errand *errand)
{
	struct worker *w = errand->worker;
	if (errand->extra)
		return (struct span){
			buffers_at(w->conns.buffers, errand->extra), errand->extra_bytes};
	return (struct span){w->hsts, answer_hsts(errand->hsts_s, w->hsts)};
}

// The error page of the room, or of what of the site lies outside its rooms, if they have one.
// After a reload, what is at their indices now.
static void find_page(const struct conn_errand *errand, struct answer_error *error)
{
	const struct gate_map *map = &errand->worker->snapshot->map;
	const struct gate_room *room =
		errand->room < map->room_count ? &map->rooms[errand->room] : NULL;
	*error = (struct answer_error){.encoding = errand->encoding};
	if (errand->line_id != 0 && room && room->line_id == errand->line_id)
		error->room = room;
	if (error->room)
		error->site = &map->sites[room->site];
	else if (errand->site < map->site_count)
		error->site = &map->sites[errand->site];
	const struct page_set *pages = error->room   ? error->room->pages
				       : error->site ? error->site->pages
						     : NULL;
	if (pages && errand->language < pages->language_count)
		error->page = pages->pages[errand->language][PAGE_error];
}

// An answer in place of the origin's, with the pass that may have been granted: the session is
// kept.
static bool reply_failed(struct worker *w, struct conn *conn, unsigned status)
{
	const struct conn_errand *errand = conn_errand(&w->conns, conn);
	struct answer_frame frame = frame_of(w, errand);
	struct answer_error error;
	find_page(errand, &error);
	frame.error = &error;
	size_t bytes = answer_refusal(status, errand->wants_json, &frame, w->reply);
	char *blank = memmem(w->reply, bytes, "\r\n\r\n", 4);
	assert(blank);
	size_t head = (size_t)(blank - w->reply) + 2;
	struct span more = added(errand);
	struct span parts[] = {{w->reply, head}, more, {w->reply + head, bytes - head}};
	size_t all = bytes + more.len;
	bool is_sent = stream_write(inside_driver(w, conn), conn->stream, parts, 3) == all;
	conn_end_errand(&w->conns, conn);
	if (is_sent)
		return true;
	inside_count(w, COUNTER_write_failed);
	client_close(w, conn, true);
	return false;
}

// The origin gave no answer: send one of ours, which ends the errand. Returns whether the
// connection may go on: it is there, and the request's body is over.
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
	if (conn->kept && !conn->close_after)
		client_resume_later(w, conn);
	else
		client_answered(w, conn);
}

static struct span kept_span(const struct worker *w, const struct conn *conn)
{
	const struct conn_kept *kept = conn_kept(&w->conns, conn);
	return kept ? (struct span){kept->at, kept->bytes} : (struct span){0};
}

// Of what is kept the exchange has taken `taken` bytes: hand over more, until it takes no more.
// Returns false if the connection is gone.
static bool pass_kept(struct worker *w, struct conn *conn, struct exchange *exchange, size_t taken)
{
	for (;;) {
		const bool was_all = taken > 0 && taken == kept_span(w, conn).len;
		conn_drop(&w->conns, conn, (uint32_t)taken);
		if (!was_all || !conn->kept || conn->state != CONN_EXCHANGE)
			return true;
		taken = exchange_client_data(exchange, kept_span(w, conn));
		if (conn->state == CONN_FREE || conn->state == CONN_DISCARD)
			return false;
	}
}

// Hand over the bytes after the head: those of the body are the exchange's, the rest is kept.
static void pass_rest(struct worker *w, struct item *item)
{
	struct conn *conn = item->conn;
	struct exchange *exchange = conn_errand(&w->conns, conn)->exchange;
	struct span rest = item->rest;
	stream_resume(inside_driver(w, conn), conn->stream); // first: the exchange may pause it
	if (item->is_kept) {
		conn_drop(&w->conns, conn, item->skip + item->head.head_bytes);
		rest = kept_span(w, conn);
	}
	size_t taken = rest.len > 0 ? exchange_client_data(exchange, rest) : 0;
	if (conn->state == CONN_FREE || conn->state == CONN_DISCARD)
		return;
	if (!item->is_kept && !client_keep_rest(w, conn, span_from(rest, taken)))
		return;
	if (item->is_kept && !pass_kept(w, conn, exchange, taken))
		return;
	if (conn->state == CONN_HEAD)
		end_kept(w, conn); // it has ended already
	else if (conn->has_ended && !conn->kept)
		exchange_client_eof(exchange);
}

// There is no buffer for the pass: one that is not handed out is none, and its grant goes back.
static void refuse_without_buffer(
	struct worker *w, struct item *item, const struct decision *decision)
{
	const struct claim_answer *answer = item->answer;
	inside_count(w, COUNTER_buffers_exhausted);
	if (answer && answer->verdict == CLAIM_GRANTED && answer->session == decision->session)
		report_gone(w, answer);
	conn_end_errand(&w->conns, item->conn);
	act_refuse(w, item->conn, 503);
}

void forward(struct worker *w, struct item *item, const struct decision *decision)
{
	struct conn *conn = item->conn;
	const struct gate_request *request = &item->request;
	struct conn_errand *errand = conn_begin_errand(&w->conns, conn);
	assert(errand); // there is one more than exchanges
	if (!remember(w, errand, item, decision)) {
		refuse_without_buffer(w, item, decision);
		return;
	}
	if (decision->is_uncounted)
		report_passed(w, request->room);
	struct exchange_request begin = {.client_driver = inside_driver(w, conn),
		.client = conn->stream,
		.user = errand,
		.head = &item->head,
		.origin = request->site->origin,
		.host = request->host,
		.room = request->room ? request->room->name : (struct span){0},
		.session = decision->session,
		.ends_us = ends_us(w, decision->ends_s),
		.is_tls = conn->is_secure,
		.peer_is_trusted = snapshot_is_trusted(w->snapshot, conn->stream->peer.ip)};
	uint16_t status = 0;
	conn_leave(&w->conns, conn, CONN_IDLE);
	timers_remove(&w->timers, conn_index(&w->conns, conn));
	struct exchange *exchange = exchange_begin(w->origin, &begin, &status);
	if (!exchange) {
		if (fail(w, conn, status, !request->has_body))
			client_answered(w, conn);
		return;
	}
	inside_count(w, COUNTER_forwarded);
	errand->exchange = exchange;
	conn_set_state(conn, CONN_EXCHANGE);
	if (decision->session != 0)
		conn_list_errand(&w->conns, errand);
	item->is_done = true;
	pass_rest(w, item);
}

void forward_cut_ended(struct worker *w)
{
	const struct ended *ended = w->plan.words->ended;
	const struct conn_errand *head = &w->conns.sessions;
	for (struct conn_errand *errand = head->next, *next; errand != head; errand = next) {
		next = errand->next;
		uint8_t secret = w->snapshot->secrets.state[errand->secret_id];
		if (secret != TOKEN_SECRET_VALID || ended_has(ended, errand->session))
			exchange_set_ends(errand->exchange, w->now_us);
	}
}

// What an exchange tells; `user` is the errand.

static void on_command(void *user, enum exchange_command command)
{
	const struct conn_errand *errand = user;
	struct worker *w = errand->worker;
	if (errand->session == 0)
		return;
	struct claim claim = {.kind = command == EXCHANGE_COMMAND_END ? CLAIM_END : CLAIM_RENEW,
		.worker = (uint8_t)w->plan.index,
		.room = errand->room,
		.line_id = errand->line_id,
		.session = errand->session,
		.visitor = errand->visitor,
		.expires = command == EXCHANGE_COMMAND_END ? errand->expires : 0,
		.sent_ms = w->now_ms};
	report_send(w, &claim);
}

static void on_answered(void *user, uint16_t status, struct exchange_extra *extra)
{
	(void)status;
	const struct conn_errand *errand = user;
	const struct worker *w = errand->worker;
	extra->fields = added(errand);
	extra->date = (struct span){w->date, strlen(w->date)};
	extra->is_private = errand->extra_bytes > 0;
	extra->close = w->is_draining;
}

static void on_tunnelled(void *user)
{
	const struct conn_errand *errand = user;
	struct exchange *exchange = errand->exchange;
	struct worker *w = errand->worker;
	struct conn *conn = errand->conn;
	if (!conn->kept)
		return;
	const size_t taken = exchange_client_data(exchange, kept_span(w, conn));
	if (conn->state != CONN_EXCHANGE || !pass_kept(w, conn, exchange, taken) ||
		conn->state != CONN_EXCHANGE)
		return;
	if (conn->has_ended)
		exchange_client_eof(exchange);
}

static void on_ended(void *user, const struct exchange_end *end)
{
	struct conn_errand *errand = user;
	struct worker *w = errand->worker;
	struct conn *conn = errand->conn;
	assert(conn->state == CONN_EXCHANGE);
	errand->exchange = NULL;
	conn_set_state(conn, CONN_HEAD);
	if (end->outcome != EXCHANGE_FAILED)
		conn_end_errand(&w->conns, conn);
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
