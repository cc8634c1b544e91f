// LISTEN without state (RFC 9293 3.10.7.2, RFC 4987 3.6).

#include "dataplane/net/tcp/listen.h"

#include "dataplane/net/tcp/input.h"
#include "dataplane/net/tcp/reply.h"
#include "dataplane/net/tcp/rtt.h"

#include <string.h>

#define TIMESTAMP_BYTES 12u // of the options of each segment (RFC 6691)
#define ECHO_AGE_MAX_MS 180000u // an echo that is older than any good cookie is none of ours

static bool is_any(const struct stream_address *address)
{
	static const uint8_t zeros[16];
	return memcmp(address->ip, zeros, sizeof(zeros)) == 0;
}

unsigned listen_find(const struct tcp *t, const struct stream_address *local)
{
	for (unsigned i = 0; i < t->plan.listener_count; i++) {
		const struct stream_address *at = &t->plan.listeners[i];
		if (at->port == local->port &&
			(is_any(at) || memcmp(at->ip, local->ip, sizeof(at->ip)) == 0))
			return i;
	}
	return TCP_LISTENERS_MAX;
}

// Where one is remembered, the number of the next must be after its last (RFC 9293 3.6.1): if the
// cookie is before what would have been next, its free bit moves it on by half the space.
static uint32_t number_for(
	const struct tcp *t, const struct tcp_wait_entry *wait, const struct tcp_segment *syn)
{
	uint32_t cookie = syncookie_make(&t->syncookie, syn);
	return wait && tcp_before(cookie, wait->snd_nxt) ? cookie ^ SYNCOOKIE_FREE_BIT : cookie;
}

static void answer_syn(
	struct tcp *t, const struct tcp_wait_entry *wait, const struct tcp_segment *segment)
{
	if (segment->flags & TCP_FIN) {
		tcp_count(t, TCP_cookie_bad); // nonsense
	} else if (!t->is_accepting) {
		tcp_count(t, TCP_syn_refused);
		reply_reset(t, segment);
	} else if (!sources_take(t->sources, segment->peer.ip, t->plan.syn_rate, t->now_ms)) {
		tcp_count(t, TCP_syn_limited);
	} else {
		reply_syn(t, segment, number_for(t, wait, segment));
	}
}

void listen_settle_scale(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment)
{
	c->flags &= (uint16_t)~TCP_CONN_SCALE_UNSURE;
	uint32_t age_ms = t->now_ms + c->ts_offset - segment->ts_echo;
	if (age_ms > ECHO_AGE_MAX_MS)
		return;
	struct syncookie_options options = syncookie_ts_read(segment->ts_echo);
	if (options.has_sack)
		c->flags |= TCP_CONN_SACK;
	c->scales = options.scale == SYNCOOKIE_SCALE_NONE
			    ? 0
			    : (uint8_t)(options.scale | t->scale << 4);
	rtt_sample(c, age_ms * 1000);
}

// Timestamps are on if the SYN offered them, though an old Linux leaves them out of the segment
// that completes the handshake. Until it echoes ours, we know of no scale: then 0 is safe for its
// windows, and shifting ours for those we tell.
static void agree(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment,
	const struct syncookie_told *told)
{
	uint16_t link = tcp_mss_of(t, &segment->local);
	c->mss = told->mss < link ? told->mss : link;
	if (!told->has_timestamp)
		return;
	c->flags |= TCP_CONN_TIMESTAMPS | TCP_CONN_SCALE_UNSURE;
	c->mss -= TIMESTAMP_BYTES;
	c->scales = (uint8_t)(t->scale << 4);
	c->ts_offset = syncookie_ts_offset(&t->syncookie, &segment->local, &segment->peer);
	if (segment->has_timestamp) {
		c->ts_recent = segment->ts_value;
		listen_settle_scale(t, c, segment);
	}
}

static void accept_segment(struct tcp *t, uint64_t hash, unsigned listener,
	const struct tcp_segment *segment, const struct syncookie_told *told)
{
	struct tcp_conn *c = tcp_open(t, hash, segment);
	if (!c) {
		tcp_count(t, TCP_table_full);
		reply_reset(t, segment);
		return;
	}
	c->stream.listener = (uint16_t)listener;
	agree(t, c, segment, told);
	c->snd_una = c->snd_nxt = segment->ack;
	c->snd_wl1 = segment->seq;
	c->snd_wnd = (uint32_t)segment->window << (c->scales & 15);
	c->rcv_nxt = segment->seq;
	c->rcv_edge = segment->seq + tcp_first_window(t);
	tcp_arm(t, c);
	tcp_tell(t, c, STREAM_OPENED, (struct span){0});
	input_segment(t, c, segment); // its text and FIN
}

// Whether another worker sees to a segment that we know nothing of.
static bool is_elsewhere(
	const struct tcp *t, const struct tcp_wait_entry *wait, const struct tcp_segment *segment)
{
	return !wait && t->io->elsewhere && t->io->elsewhere(t->io->ctx, segment);
}

// Whether a segment may follow one that will still open its connection, for all that its timestamp
// says: it echoes one of ours. A stranger's, such as of a connection that ended with the process
// before, does not.
static bool may_follow(const struct tcp *t, const struct tcp_segment *segment)
{
	if (!segment->has_timestamp)
		return true;
	uint32_t offset = syncookie_ts_offset(&t->syncookie, &segment->local, &segment->peer);
	return t->now_ms + offset - segment->ts_echo <= ECHO_AGE_MAX_MS;
}

// Not one that opens a connection. Silence where the segment that does will come: it was lost, or
// this one has overtaken it.
static void refuse_cookie(struct tcp *t, const struct tcp_wait_entry *wait,
	const struct tcp_segment *segment, enum syncookie_result result)
{
	if (is_elsewhere(t, wait, segment))
		return;
	tcp_count(t, result == SYNCOOKIE_LATE ? TCP_cookie_late : TCP_cookie_bad);
	if (wait && !wait->is_over)
		input_again(t, wait, segment);
	else if (result != SYNCOOKIE_OTHER || !may_follow(t, segment))
		reply_reset(t, segment);
}

// A copy of the segment that opened the connection which is remembered acknowledges no more than
// that one sent.
static enum syncookie_result check_cookie(const struct tcp *t, const struct tcp_wait_entry *wait,
	const struct tcp_segment *segment, struct syncookie_told *told)
{
	if (wait && tcp_before(segment->ack - 1, wait->snd_nxt))
		return SYNCOOKIE_BAD;
	return syncookie_check(&t->syncookie, segment, told);
}

static void take_cookie(struct tcp *t, uint64_t hash, unsigned listener,
	struct tcp_wait_entry *wait, const struct tcp_segment *segment)
{
	struct syncookie_told told;
	enum syncookie_result result = check_cookie(t, wait, segment, &told);
	if (result != SYNCOOKIE_GOOD) {
		refuse_cookie(t, wait, segment, result);
		return;
	}
	if (wait) {
		if (!wait->is_over)
			tcp_count(t, TCP_wait_reused);
		wait_remove(t->waits, wait);
	}
	accept_segment(t, hash, listener, segment, &told);
}

// Neither a SYN nor a cookie's return.
static void refuse_stray(struct tcp *t, unsigned listener, const struct tcp_segment *segment)
{
	if (segment->flags & TCP_RST)
		return;
	tcp_count(t, listener == TCP_LISTENERS_MAX ? TCP_no_listener : TCP_cookie_bad);
	if (listener == TCP_LISTENERS_MAX || segment->flags & TCP_ACK)
		reply_reset(t, segment);
}

void listen_segment(struct tcp *t, uint64_t hash, struct tcp_wait_entry *wait,
	const struct tcp_segment *segment)
{
	unsigned listener = listen_find(t, &segment->local);
	uint8_t kind = segment->flags & (TCP_SYN | TCP_ACK | TCP_RST);
	if (listener == TCP_LISTENERS_MAX)
		refuse_stray(t, listener, segment); // all workers listen to the same
	else if (kind == TCP_SYN)
		answer_syn(t, wait, segment);
	else if (kind == TCP_ACK)
		take_cookie(t, hash, listener, wait, segment);
	else if (!is_elsewhere(t, wait, segment))
		refuse_stray(t, listener, segment);
}
