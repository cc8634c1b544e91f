// A decision carried out: an answer of ours, a claim with the request parked, or an exchange with
// the origin.

#include "dataplane/act.h"

#include "dataplane/act_code.h"
#include "dataplane/act_count.h"
#include "dataplane/client.h"
#include "dataplane/forward.h"
#include "dataplane/gate/answer.h"
#include "dataplane/gate/draw.h"
#include "dataplane/listing.h"
#include "dataplane/report.h"

#include <assert.h>
#include <string.h>

static void decide_item(struct worker *w, struct item *item, struct decision *decision);
static void reply(struct worker *w, struct item *item, const struct decision *decision);
static bool park(struct worker *w, struct item *item, const struct decision *decision);

static bool method_is_ours_to_refuse(const struct item *item)
{
	return item->head.method == HTTP_CONNECT || item->head.method == HTTP_TRACE;
}

// Whether one more pre-flight of the site may pass in this second.
static bool preflight_may_pass(struct worker *w, const struct gate_site *site)
{
	struct preflights *seen = &w->preflights[site->index % SITES_MAX];
	if (seen->second != w->now_s)
		*seen = (struct preflights){.second = w->now_s};
	bool may_pass = seen->count++ < site->preflight_rate;
	inside_count(w, may_pass ? COUNTER_preflights : COUNTER_preflight_limited);
	return may_pass;
}

void act(struct worker *w, struct item *item)
{
	struct decision decision;
	if (method_is_ours_to_refuse(item)) {
		inside_count(w, COUNTER_bad_method);
		act_refuse(w, item->conn, 501);
		return;
	}
	decide_item(w, item, &decision);
	act_code_guard(w, item, &decision);
	if (decision.action == DECIDE_CLAIM && !park(w, item, &decision)) {
		if (item->conn->state == CONN_FREE)
			return;
		item->answer_is_late = true; // as if control had not answered
		decide_item(w, item, &decision);
	}
	if (decision.refuses_claim)
		report_refused(w, &decision.claim);
	if (decision.refuses_claim && !item->answer_is_late)
		inside_count(w, COUNTER_held);
	if (decision.answer == DECIDE_DRAW_KEYS && !listing_may_begin(w)) {
		decision.answer = DECIDE_UNAVAILABLE;
		decision.status.poll_after = LISTING_LATER_S;
	}
	act_count(w, item, &decision);
	if (decision.is_preflight && !preflight_may_pass(w, item->request.site)) {
		decision.action = DECIDE_ANSWER;
		decision.answer = DECIDE_UNAVAILABLE;
	}
	if (decision.action == DECIDE_FORWARD)
		forward(w, item, &decision);
	else if (decision.action == DECIDE_ANSWER)
		reply(w, item, &decision);
}

// Until when the session of a pass is known to have been renewed; 0: not.
static uint32_t renewed_until(const struct worker *w, const struct gate_token *pass)
{
	if (!pass)
		return 0;
	const struct renewal *renewal = &w->renewals[pass->token.key % RENEWALS_MAX];
	return renewal->session == pass->token.key ? renewal->expires : 0;
}

// Whether the request crossed a network as it is, as far as we can know.
static bool is_plain(const struct worker *w, const struct item *item)
{
	const struct gate_site *site = item->request.site;
	if (item->conn->is_secure || !site || site->https_port == 0)
		return false; // or it makes no difference
	const struct http_field *field =
		http_field_first(&item->head, HTTP_FIELD_x_forwarded_proto);
	return !field || !snapshot_is_trusted(w->snapshot, item->conn->stream->peer.ip) ||
	       !span_is_equal_caseless(http_field_value(&item->head, field), SPAN("https"));
}

static void decide_item(struct worker *w, struct item *item, struct decision *decision)
{
	const struct gate_request *request = &item->request;
	const struct snapshot_words *words = w->plan.words;
	struct decide_input input = {.request = request,
		.answer = item->answer,
		.answer_is_late = item->answer_is_late,
		.left = words->left,
		.pass_has_ended =
			request->pass && ended_has(words->ended, request->pass->token.key),
		.pass_renewed = renewed_until(w, request->pass),
		.is_plain = is_plain(w, item),
		.is_held = w->is_held,
		.is_draining = w->is_draining,
		.is_unhealthy = atomic_load_explicit(&words->is_unhealthy, memory_order_relaxed),
		.appliance = (uint8_t)atomic_load_explicit(&words->appliance, memory_order_relaxed),
		.now_ms = w->now_ms,
		.now_s = w->now_s,
		.fresh_visitor = request->route == GATE_ROUTE_STATUS ? 0 : random_u64(w->random),
		.random = random_u32(w->random)};
	decide(&input, decision);
	assert(decision->action != DECIDE_CLAIM || !item->answer_is_late);
	w->has_claims |= decision->fills_window;
	// A grant that this decision does not use goes back, and so does a use of a code.
	const struct claim_answer *answer = item->answer;
	if (answer && answer->verdict == CLAIM_GRANTED && decision->session != answer->session)
		report_gone(w, answer);
	// A reload may have taken the codes from the room meanwhile: then the answer alone tells.
	if (answer ? answer->kind == CLAIM_CODE || answer->kind == CLAIM_MOVE
		   : item->answer_is_late && request->route == GATE_ROUTE_CODE)
		act_code_answered(w, item, decision);
}

// Keep the request and ask control. Returns false if it cannot be asked; a connection that could
// not keep its request is closed then.
static bool park(struct worker *w, struct item *item, const struct decision *decision)
{
	struct conn *conn = item->conn;
	if (w->parked_count >= w->plan.parked_max) {
		inside_count(w, COUNTER_parked_full);
		return false;
	}
	struct claim claim = decision->claim;
	claim.worker = (uint8_t)w->plan.index;
	claim.request = conn_index(&w->conns, conn);
	claim.generation = conn_renew(conn); // the answer to an earlier claim of it is late
	claim.sent_ms = w->now_ms;
	if (!report_claim(w, &claim))
		return false;
	if (claim.kind == CLAIM_CODE)
		inside_count(w, COUNTER_codes);
	struct span whole = {item->head.bytes, item_bytes(item) - item->skip + item->rest.len};
	if (item->is_kept && item->skip > 0)
		conn_drop(&w->conns, conn, item->skip);
	if (!item->is_kept && !conn_keep(&w->conns, conn, whole)) {
		inside_count(w, COUNTER_buffers_exhausted);
		client_close(w, conn, true); // its answer will find it gone
		return false;
	}
	conn_set_state(conn, CONN_PARKED);
	w->parked_count++;
	stream_pause(inside_driver(w, conn), conn->stream);
	client_set_deadline(w, conn, WORKER_CLAIM_MS_MAX);
	return true;
}

struct answer_frame act_frame(const struct worker *w, const struct conn *conn)
{
	return (struct answer_frame){.date = w->date,
		.secrets = &w->snapshot->secrets,
		.now_s = w->now_s,
		.minor = 1,
		.close = w->is_draining || conn->has_ended,
		.is_secure = conn->is_secure};
}

// Send what was rendered. Returns false if the connection is gone.
static bool send_reply(struct worker *w, struct conn *conn, size_t bytes, struct span more)
{
	struct span parts[] = {{w->reply, bytes}, more};
	if (stream_write(inside_driver(w, conn), conn->stream, parts, 1 + (more.len > 0)) ==
		bytes + more.len)
		return true;
	inside_count(w, COUNTER_write_failed);
	client_close(w, conn, true);
	return false;
}

void act_find_stale(struct worker *w, const struct item *item, bool adds, struct carry_stale *stale)
{
	stale->count = 0;
	if (item->request.has_other_cookies)
		carry_stale_find(
			&w->snapshot->map, &item->head, item->request.room, adds, w->now_s, stale);
}

// What follows the request waits until the list is out.
static void begin_listing(struct worker *w, struct item *item, struct draw_list *list)
{
	item->is_done = true;
	if (item->is_kept)
		conn_drop(&w->conns, item->conn, item->skip + item->head.head_bytes);
	else if (!client_keep_rest(w, item->conn, item->rest))
		return;
	listing_begin(w, item->conn, list);
}

static void reply(struct worker *w, struct item *item, const struct decision *decision)
{
	struct conn *conn = item->conn;
	struct carry_stale stale;
	struct answer_frame frame = act_frame(w, conn);
	act_find_stale(w, item, decision->sets_ticket || decision->sets_pass, &stale);
	frame.minor = item->head.minor;
	frame.is_head = item->head.method == HTTP_HEAD;
	frame.site = item->request.site;
	frame.stale = &stale;
	frame.close = frame.close || !item->head.keep_alive || item->request.has_body;
	size_t bytes = answer_render(decision, &item->request, &frame, w->reply);
	assert(bytes <= REPLY_BYTES_MAX);
	struct span more = {NULL, 0};
	if (decision->answer == DECIDE_ASSET && !frame.is_head)
		more = item->request.asset->bytes;
	if (!send_reply(w, conn, bytes, more))
		return;
	conn->close_after = frame.close;
	if (decision->answer == DECIDE_DRAW_KEYS && decision->list->count > 0) {
		begin_listing(w, item, decision->list);
		return;
	}
	if (item->request.has_body) {
		client_discard(w, conn);
		return;
	}
	client_answered(w, conn);
}

void act_refuse(struct worker *w, struct conn *conn, unsigned status)
{
	struct answer_frame frame = act_frame(w, conn);
	frame.close = true;
	size_t bytes = answer_refusal(status, false, &frame, w->reply);
	if (send_reply(w, conn, bytes, (struct span){NULL, 0}))
		client_discard(w, conn);
}

void act_refuse_too_large(struct worker *w, struct conn *conn, struct span head)
{
	struct http_head *salvaged = &w->items[w->item_count].head; // free: nothing was added
	const struct gate_map *map = &w->snapshot->map;
	struct carry_stale stale;
	char scratch[MATCH_HOST_BYTES_MAX + 1];
	struct span matched;
	struct answer_frame frame = act_frame(w, conn);
	carry_salvage(head, salvaged);
	carry_stale_find(map, salvaged, NULL, 0, w->now_s, &stale);
	frame.site = gate_map_site(map, salvaged->host, scratch, &matched);
	frame.stale = &stale;
	frame.close = true;
	size_t bytes = answer_refusal(431, false, &frame, w->reply);
	if (send_reply(w, conn, bytes, (struct span){NULL, 0}))
		client_discard(w, conn);
}
