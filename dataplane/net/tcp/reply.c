// Each goes back to where the segment came from: the hop too, so that a neighbour need not be
// known.

#include "dataplane/net/tcp/reply.h"

#include <arpa/inet.h>
#include <string.h>

// Options as all large stacks order them: MSS, SACK permitted, timestamps, NOP, scale.
#define OPTION_MSS_HEAD 0x0204u
#define OPTION_SACK_TIMESTAMP_HEAD 0x0402080au
#define OPTION_NOPS_TIMESTAMP_HEAD 0x0101080au
#define OPTION_SCALE_HEAD 0x01030300u

#define NS_PER_S UINT64_C(1000000000)

static void put32(struct tcp_out *out, uint32_t value)
{
	value = htonl(value);
	memcpy(out->options + out->option_bytes, &value, sizeof(value));
	out->option_bytes += sizeof(value);
}

static struct tcp_out answer(const struct tcp_segment *segment, uint8_t flags)
{
	return (struct tcp_out){
		.local = &segment->local,
		.peer = &segment->peer,
		.hop = &segment->hop,
		.flags = flags,
		.is_control = true,
	};
}

static void send_out(struct tcp *t, const struct tcp_out *out)
{
	tcp_count(t, TCP_segments_out);
	t->io->send(t->io->ctx, out);
}

// A bucket by its level in time: each RST costs its share of a second, and one second may be owed.
static bool may_reset(struct tcp *t)
{
	uint64_t now_ns = t->now_us * 1000;
	if (t->plan.reset_rate == 0)
		return true;
	uint64_t cost_ns = NS_PER_S / t->plan.reset_rate;
	if (t->resets_ns < now_ns)
		t->resets_ns = now_ns;
	if (t->resets_ns + cost_ns > now_ns + NS_PER_S)
		return false;
	t->resets_ns += cost_ns;
	return true;
}

void reply_reset(struct tcp *t, const struct tcp_segment *segment)
{
	if (segment->flags & TCP_RST)
		return;
	if (!may_reset(t)) {
		tcp_count(t, TCP_rst_limited);
		return;
	}
	struct tcp_out out = answer(segment, TCP_RST);
	if (segment->flags & TCP_ACK) {
		out.seq = segment->ack;
	} else {
		out.flags |= TCP_ACK;
		out.ack = segment->seq + tcp_segment_len(segment);
	}
	tcp_count(t, TCP_rst_sent);
	send_out(t, &out);
}

// Our timestamp for who sent a segment.
static uint32_t timestamp_for(const struct tcp *t, const struct tcp_segment *segment)
{
	return t->now_ms + syncookie_ts_offset(&t->syncookie, &segment->local, &segment->peer);
}

// Scale and SACK stand in the timestamp, so without one neither is offered.
static void put_syn_options(struct tcp *t, const struct tcp_segment *syn, struct tcp_out *out)
{
	put32(out, OPTION_MSS_HEAD << 16 | tcp_mss_of(t, &syn->local));
	if (!syn->has_timestamp)
		return;
	struct syncookie_options options = {
		.scale = syn->has_scale ? syn->scale : SYNCOOKIE_SCALE_NONE,
		.has_sack = syn->has_sack_permitted,
	};
	put32(out, options.has_sack ? OPTION_SACK_TIMESTAMP_HEAD : OPTION_NOPS_TIMESTAMP_HEAD);
	put32(out, syncookie_ts_write(timestamp_for(t, syn), options));
	put32(out, syn->ts_value);
	if (syn->has_scale)
		put32(out, OPTION_SCALE_HEAD | t->scale);
}

void reply_syn(struct tcp *t, const struct tcp_segment *syn, uint32_t number)
{
	struct tcp_out out = answer(syn, TCP_SYN | TCP_ACK);
	out.seq = number;
	out.ack = syn->seq + 1; // data on a SYN is sent again
	out.window = tcp_first_window(t);
	put_syn_options(t, syn, &out);
	tcp_count(t, TCP_syn_answered);
	send_out(t, &out);
}

void reply_wait(
	struct tcp *t, const struct tcp_segment *segment, const struct tcp_wait_entry *entry)
{
	struct tcp_out out = answer(segment, TCP_ACK);
	out.seq = entry->snd_nxt;
	out.ack = entry->rcv_nxt;
	if (entry->ts_recent) { // 0: none were agreed on
		put32(&out, OPTION_NOPS_TIMESTAMP_HEAD);
		put32(&out, timestamp_for(t, segment));
		put32(&out, entry->ts_recent);
	}
	send_out(t, &out);
}
