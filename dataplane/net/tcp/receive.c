// The receiving half.
//
// Nothing is stored of what comes in order while the worker reads. What cannot be handed over is
// kept as runs of chunks, ascending, apart, none overlapping. A run that reaches down to rcv_nxt is
// in order: it moves rcv_nxt on, is acknowledged, and waits, alone of its kind and always the
// first, for tcp_due() to hand it over; what comes meanwhile is appended to it. So
//
//   kept[0]   begins before rcv_nxt: it ends at rcv_nxt, is owed to the worker
//   others    begin after rcv_nxt: out of order, told by SACK
//
// A FIN that is reached in order is acknowledged, but for the worker, and for the state, it counts
// only when all before it has been handed over. Until then, and when it came early, it is
// remembered.

#include "dataplane/net/tcp/receive.h"

#include "dataplane/net/tcp/work.h"

#define SPANS_MAX 8u // handed over at once

static uint32_t end_of(const struct tcp_kept *kept)
{
	return kept->from + kept->queue.bytes;
}

// Whether the first run is in order, and owed.
static bool is_owed(const struct tcp_conn *c, const struct tcp_work *w)
{
	return w && w->receive.kept_count > 0 && tcp_before(w->receive.kept[0].from, c->rcv_nxt);
}

static void remove_run(struct tcp_work_receive *r, uint32_t at)
{
	r->kept_count--;
	memmove(&r->kept[at], &r->kept[at + 1], (r->kept_count - at) * sizeof(r->kept[0]));
}

// Whether the peer's FIN is reached: what is beyond is nothing.
static bool has_reached_fin(const struct tcp_conn *c, const struct tcp_work *w)
{
	return w && w->receive.has_fin && w->receive.fin_seq + 1 == c->rcv_nxt;
}

// Put bytes that no run holds before run `at`, or at the end of the one before it. Returns how many
// were taken.
static uint32_t put_piece(
	struct tcp *t, struct tcp_work_receive *r, uint32_t at, uint32_t seq, struct span piece)
{
	if (at > 0 && end_of(&r->kept[at - 1]) == seq) {
		r->kept[at - 1].changed = ++r->changes;
		return (uint32_t)chunks_push(&t->receive_chunks, &r->kept[at - 1].queue, piece);
	}
	if (r->kept_count == TCP_KEPT_MAX)
		return 0;
	struct tcp_kept run = {.from = seq, .changed = ++r->changes};
	uint32_t taken = (uint32_t)chunks_push(&t->receive_chunks, &run.queue, piece);
	if (taken == 0)
		return 0;
	memmove(&r->kept[at + 1], &r->kept[at], (r->kept_count - at) * sizeof(r->kept[0]));
	r->kept[at] = run;
	r->kept_count++;
	return taken;
}

// Make one of runs that have come to touch.
static void join_runs(struct tcp *t, struct tcp_work_receive *r)
{
	for (uint32_t at = 0; at + 1 < r->kept_count;) {
		struct tcp_kept *run = &r->kept[at], *next = run + 1;
		if (end_of(run) != next->from) {
			at++;
			continue;
		}
		if (tcp_after(next->changed, run->changed))
			run->changed = next->changed;
		chunks_join(&t->receive_chunks, &run->queue, &next->queue);
		remove_run(r, at + 1);
	}
}

// Keep what of `text` no run holds. Stops, counting, where there is no room. A segment that lies in
// a run altogether makes it the one that changed last (RFC 2018 4: the first block holds the
// segment that triggered it). Returns how much was kept.
static uint32_t keep(struct tcp *t, struct tcp_work_receive *r, uint32_t seq, struct span text)
{
	uint32_t kept = 0;
	for (uint32_t at = 0; text.len > 0; at++) {
		bool is_last = at == r->kept_count;
		uint32_t gap = is_last ? UINT32_MAX : r->kept[at].from - seq;
		if (!is_last &&
			!tcp_after(r->kept[at].from, seq)) { // it begins in or after this run
			uint32_t end = end_of(&r->kept[at]), inside = end - seq;
			if (!tcp_after(end, seq))
				continue;
			r->kept[at].changed = ++r->changes;
			if (inside >= text.len)
				break;
			text = span_from(text, inside);
			seq = end;
			continue;
		}
		struct span piece = {text.at, text.len < gap ? text.len : gap};
		uint32_t had = r->kept_count, taken = put_piece(t, r, at, seq, piece);
		kept += taken;
		if (taken < piece.len) {
			tcp_count(t, TCP_receive_none);
			break;
		}
		text = span_from(text, taken);
		seq += taken;
		at -= had == r->kept_count; // it went to the run before: this one is still ahead
	}
	return kept;
}

// Drop what of the runs lies before rcv_nxt, which text in order has passed over.
static void drop_passed(struct tcp *t, struct tcp_conn *c, struct tcp_work_receive *r)
{
	while (r->kept_count > 0 && tcp_before(r->kept[0].from, c->rcv_nxt)) {
		struct tcp_kept *run = &r->kept[0];
		uint32_t passed = c->rcv_nxt - run->from;
		bool is_all = passed >= run->queue.bytes;
		chunks_drop(&t->receive_chunks, &run->queue, is_all ? run->queue.bytes : passed);
		run->from = c->rcv_nxt;
		if (is_all)
			remove_run(r, 0);
	}
}

// If the first run has become in order, move rcv_nxt to its end, and beyond the FIN if it is there.
static void advance(struct tcp_conn *c, struct tcp_work_receive *r)
{
	uint32_t was = c->rcv_nxt;
	if (r->kept_count > 0 && !tcp_after(r->kept[0].from, c->rcv_nxt))
		c->rcv_nxt = end_of(&r->kept[0]);
	if (r->has_fin && r->fin_seq == c->rcv_nxt)
		c->rcv_nxt++;
	if (c->rcv_nxt != was)
		c->flags |= TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW;
}

// The worker has all: tell it of the FIN.
static bool tell_fin(struct tcp *t, struct tcp_conn *c)
{
	receive_drop(t, c);
	c->flags |= TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW | TCP_CONN_EOF_TOLD;
	tcp_tell(t, c, STREAM_EOF, (struct span){0});
	return true;
}

// What is in order while all before it was handed over.
static bool take_in_order(struct tcp *t, struct tcp_conn *c, struct span text, bool has_fin)
{
	if (text.len > 0)
		receive_in_order(t, c, text);
	if (has_fin) {
		c->rcv_nxt++;
		return tell_fin(t, c);
	}
	struct tcp_work *w = work_of(t, c);
	if (!w || (w->receive.kept_count == 0 && !w->receive.has_fin))
		return false;
	c->flags |= TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW; // a gap fills (RFC 5681 4.2)
	drop_passed(t, c, &w->receive);
	advance(c, &w->receive);
	return has_reached_fin(c, w) && !is_owed(c, w) && tell_fin(t, c);
}

bool receive_take(struct tcp *t, struct tcp_conn *c, uint32_t seq, struct span text, bool has_fin)
{
	bool is_next = seq == c->rcv_nxt;
	struct tcp_work *w = work_of(t, c);
	if (has_reached_fin(c, w))
		return false;
	if (is_next && !is_owed(c, w) && !(c->flags & TCP_CONN_PAUSED))
		return take_in_order(t, c, text, has_fin);
	c->flags |= TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW;
	w = work_take(t, c);
	if (!w || (text.len > 0 && !work_take_kept(t, w))) {
		tcp_count(t, TCP_receive_none);
		return false;
	}
	if (has_fin && !w->receive.has_fin) {
		w->receive.has_fin = true;
		w->receive.fin_seq = seq + (uint32_t)text.len;
	}
	if (keep(t, &w->receive, seq, text) > 0 && !is_next)
		tcp_count(t, TCP_out_of_order);
	join_runs(t, &w->receive);
	advance(c, &w->receive);
	return false;
}

bool receive_has_owed(const struct tcp *t, const struct tcp_conn *c)
{
	return is_owed(c, work_of(t, c));
}

bool receive_has_more(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *w = work_of(t, c);
	return !(c->flags & TCP_CONN_PAUSED) && (is_owed(c, w) || has_reached_fin(c, w));
}

// Room among the events, less EOF and CLOSED, which may follow what is handed over.
static unsigned room_for_data(const struct tcp *t)
{
	int room = t->event_max - t->event_count - 2;
	return room < 0 ? 0 : (unsigned)room;
}

// What may be told now, unscaled: what can be kept, less what is owed.
static uint32_t window_now(const struct tcp *t, const struct tcp_conn *c)
{
	const struct tcp_work *w = work_of(t, c);
	uint32_t owed = is_owed(c, w) ? w->receive.kept[0].queue.bytes : 0;
	uint32_t told = c->rcv_edge - c->rcv_nxt, least = t->plan.receive_max / 2;
	uint32_t room = owed < t->plan.receive_max ? t->plan.receive_max - owed : 0;
	if (c->mss < least)
		least = c->mss;
	return room >= told + least ? room : told;
}

bool receive_more(struct tcp *t, struct tcp_conn *c)
{
	struct tcp_work *w = work_of(t, c);
	struct span parts[SPANS_MAX];
	uint32_t told = c->rcv_edge - c->rcv_nxt;
	while (is_owed(c, w) && room_for_data(t) > 0) {
		struct tcp_queue *queue = &w->receive.kept[0].queue;
		unsigned max = room_for_data(t) < SPANS_MAX ? room_for_data(t) : SPANS_MAX;
		unsigned count = chunks_at(&t->receive_chunks, queue, 0, queue->bytes, parts, max);
		uint32_t bytes = 0;
		for (unsigned i = 0; i < count; i++) {
			tcp_tell(t, c, STREAM_DATA, parts[i]);
			bytes += (uint32_t)parts[i].len;
		}
		tcp_count_many(t, TCP_bytes_in, bytes);
		chunks_drop(&t->receive_chunks, queue, bytes);
		w->receive.kept[0].from += bytes;
		if (queue->bytes == 0)
			remove_run(&w->receive, 0);
	}
	if (told < c->mss && window_now(t, c) > told) // the peer may be waiting for it
		c->flags |= TCP_CONN_ACK_DUE | TCP_CONN_ACK_NOW;
	// EOF, and CLOSED if that was the last.
	return has_reached_fin(c, w) && !is_owed(c, w) && t->event_max - t->event_count >= 2 &&
	       tell_fin(t, c);
}

uint16_t receive_window(const struct tcp *t, struct tcp_conn *c)
{
	unsigned scale = c->scales >> 4;
	uint32_t window = window_now(t, c) >> scale;
	if (window > UINT16_MAX)
		window = UINT16_MAX;
	uint32_t edge = c->rcv_nxt + (window << scale);
	if (tcp_after(edge, c->rcv_edge))
		c->rcv_edge = edge;
	return (uint16_t)window;
}

unsigned receive_sacks(
	const struct tcp *t, const struct tcp_conn *c, struct tcp_sack *sacks, unsigned max)
{
	const struct tcp_work *w = work_of(t, c);
	if (!w)
		return 0;
	const struct tcp_work_receive *r = &w->receive;
	uint32_t first = is_owed(c, w) ? 1 : 0, count = 0, before = r->changes + 1;
	for (; count < max && first + count < r->kept_count; count++) {
		const struct tcp_kept *latest = NULL;
		for (uint32_t i = first; i < r->kept_count; i++) {
			const struct tcp_kept *run = &r->kept[i];
			if (tcp_before(run->changed, before) &&
				(!latest || tcp_after(run->changed, latest->changed)))
				latest = run;
		}
		sacks[count] = (struct tcp_sack){latest->from, end_of(latest)};
		before = latest->changed;
	}
	return count;
}

uint64_t receive_deadline(const struct tcp *t, const struct tcp_conn *c)
{
	if (!(c->flags & TCP_CONN_ACK_DUE))
		return UINT64_MAX;
	uint64_t began_us = t->now_us - (uint64_t)(t->now_ms - c->active_ms) * 1000;
	return began_us + t->plan.delayed_ack_us;
}

void receive_drop(struct tcp *t, struct tcp_conn *c)
{
	struct tcp_work *w = work_of(t, c);
	if (!w)
		return;
	for (uint32_t i = 0; i < w->receive.kept_count; i++) {
		struct tcp_queue *queue = &w->receive.kept[i].queue;
		chunks_drop(&t->receive_chunks, queue, queue->bytes);
	}
	w->receive.kept_count = 0;
	w->receive.has_fin = false;
}
