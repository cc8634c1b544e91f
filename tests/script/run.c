// Packet in, packet out: runs scripts against TCP in virtual time.
//
//   script_run [-v] FILE...    -v prints all that happens, as a script would say it
//
// A script is a story, a step a line; README.md has the words. A step happens at the time of the
// one before it, or `+40ms` after it. What TCP sends and tells must be named by the steps, in
// order, each within its time: what is not named fails at the next step that lets something in or
// time pass. At the end all deadlines must pass and leave nothing.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/script/play.h"
#include "tests/script/words.h"

#define TOLERANCE_US 2000u // of what is expected, unless the step says `+40ms~10ms`

struct when {
	uint64_t at_us, tolerance_us;
};

// --- segments in

// `count` of them: in sequence if they have payload, the same again if not.
static void step_in(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
	static char bytes[TCP_BURST_MAX][WIRE_BYTES_MAX];
	struct wire burst[TCP_BURST_MAX];
	struct words_segment s;
	struct play_flow *f = p->flow;
	words_of_peer(p, w, &s);
	if (s.count > TCP_BURST_MAX)
		play_fail(p, "more than a burst");
	for (unsigned i = 0; i < s.count; i++) {
		burst[i] = s.wire;
		burst[i].seq += i * (uint32_t)s.wire.payload.len;
		wire_fill(2, burst[i].seq - f->peer_isn - !(s.wire.flags & TCP_SYN), bytes[i],
			s.wire.payload.len);
		burst[i].payload.at = bytes[i];
		const uint32_t next = burst[i].seq - f->peer_isn + wire_len(&burst[i]);
		if (wire_len(&burst[i]) > 0 && next - f->peer_next < p->plan.receive_max)
			f->peer_next = next;
	}
	play_in(p, burst, s.count);
}

// --- segments out

static bool is_same_sacks(const struct wire *a, const struct wire *b)
{
	return a->sack_count == b->sack_count &&
	       memcmp(a->sacks, b->sacks, a->sack_count * sizeof(a->sacks[0])) == 0;
}

static const char *difference(const struct words_segment *s, const struct play_out *o)
{
	const struct wire *a = &s->wire, *b = &o->wire;
	const uint8_t both = (uint8_t)~TCP_PSH;
	if ((a->flags & both) != (b->flags & both) || (a->flags & TCP_PSH && !(b->flags & TCP_PSH)))
		return "flags";
	if (!(b->flags & TCP_SYN) && a->seq != b->seq)
		return "seq";
	if (a->flags & TCP_ACK && a->ack != b->ack)
		return "ack";
	if (a->payload.len != b->payload.len)
		return "len";
	if (s->is_open_window ? b->window == 0 : !s->is_any_window && a->window != b->window)
		return "win";
	if (a->has_mss != b->has_mss || a->mss != b->mss)
		return "mss";
	if (a->has_scale != b->has_scale || a->scale != b->scale)
		return "wscale";
	if (a->has_sack_permitted != b->has_sack_permitted)
		return "sackok";
	if (a->has_timestamp != b->has_timestamp && !(b->flags & TCP_RST)) // may have one or not
		return "ts";
	if (s->has_echo && a->ts_echo != b->ts_echo)
		return "echo";
	if (!is_same_sacks(a, b))
		return "sack";
	if (s->is_newer && !tcp_after(b->seq, o->our_isn_before))
		return "newer";
	return NULL;
}

static void check_time(struct play *p, const struct when *when, uint64_t at_us, const char *what)
{
	const double off = (double)(int64_t)(at_us - when->at_us) / 1000;
	if (at_us + when->tolerance_us < when->at_us || at_us > when->at_us + when->tolerance_us)
		play_fail(p, "%s comes %+.3f ms off its time", what, off);
	p->step_us = at_us;
}

static void expect_out(struct play *p, const struct words_segment *s, const struct when *when)
{
	struct play_flow *f = p->flow;
	play_flush(p);
	if (p->out_count == 0)
		play_until(p, when->at_us + when->tolerance_us);
	if (p->out_count == 0)
		play_fail(p, "nothing is sent");
	const struct play_out *o = &p->outs[0];
	const char *what = o->flow != f ? "flow" : difference(s, o);
	if (what)
		play_fail(p, "another %s is sent: %s", what,
			wire_text(&o->wire, f->our_isn, f->peer_isn));
	check_time(p, when, o->at_us, "the segment");
	const uint32_t next = o->wire.seq - f->our_isn + wire_len(&o->wire);
	if (!(o->wire.flags & TCP_RST) && tcp_after(next, f->our_next))
		f->our_next = next;
	play_took_out(p);
}

static void step_out(struct play *p, struct words *w, const struct when *when)
{
	struct words_segment s;
	play_flush(p); // what a SYN-ACK says of the flow must be known before
	if (p->out_count == 0)
		play_until(p, when->at_us + when->tolerance_us);
	words_of_us(p, w, &s);
	for (unsigned i = 0; i < s.count; i++) {
		expect_out(p, &s, when);
		s.wire.seq += (uint32_t)s.wire.payload.len;
	}
}

// --- what the worker is told, and its calls

static void step_event(struct play *p, struct words *w, const struct when *when)
{
	static const char *const kinds[] = {"", "opened", "data", "writable", "eof", "closed"};
	if (p->told_count == 0)
		play_until(p, when->at_us + when->tolerance_us);
	if (p->told_count == 0)
		play_fail(p, "nothing is told");
	const struct play_told *told = &p->told[0];
	const char *kind = words_next(w);
	if (told->flow != p->flow || !kind || strcmp(kind, kinds[told->kind]) != 0)
		play_fail(p, "told is: %s", kinds[told->kind]);
	if (told->kind == STREAM_DATA && words_number(p, w) != (int64_t)told->bytes)
		play_fail(p, "told are %zu bytes", told->bytes);
	const char *error = told->error ? strerrorname_np(told->error) : "0";
	if (told->kind == STREAM_CLOSED && !words_take(w, error))
		play_fail(p, "closed with %s", error);
	check_time(p, when, told->at_us, "the event");
	play_took_told(p);
}

static void call_write(struct play *p, struct words *w)
{
	static char bytes[1 << 20];
	struct play_flow *f = p->flow;
	const size_t len = (size_t)words_number(p, w);
	if (len > sizeof(bytes))
		play_fail(p, "more than the runner writes");
	wire_fill(1, f->written, bytes, len);
	const struct span parts[] = {{bytes, len / 3}, {bytes + len / 3, len - len / 3}};
	f->written += len; // what is sent during the call is checked against it
	const size_t taken = tcp_write(p->tcp, f->stream, parts, 2);
	f->written -= len - taken;
	if (words_take(w, "takes") ? taken != (size_t)words_number(p, w) : taken != len)
		play_fail(p, "%zu of %zu bytes taken", taken, len);
}

static void step_call(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
	struct play_flow *f = p->flow;
	play_turn(p);
	if (words_take(w, "stop_accepting")) {
		tcp_stop_accepting(p->tcp);
		return;
	}
	if (!f->stream)
		play_fail(p, "the flow has no stream");
	const char *call = words_next(w);
	if (call && strcmp(call, "write") == 0) {
		call_write(p, w);
	} else if (call && strcmp(call, "shut") == 0) {
		tcp_shut(p->tcp, f->stream);
	} else if (call && strcmp(call, "pause") == 0) {
		tcp_pause(p->tcp, f->stream);
	} else if (call && strcmp(call, "resume") == 0) {
		tcp_resume(p->tcp, f->stream);
	} else if (call && (strcmp(call, "close") == 0 || strcmp(call, "reset") == 0)) {
		tcp_close(p->tcp, f->stream, strcmp(call, "reset") == 0);
		f->stream = NULL;
	} else {
		play_fail(p, "no such call");
	}
}

// --- shorter words for what is often said

// The three segments of a handshake, the last one `100ms` later if that is said; the rest of the
// line is for the SYN.
static void step_connect(struct play *p, struct words *w, const struct when *when)
{
	struct words_segment s;
	struct play_flow *f = p->flow;
	const char *word = w->at < w->count ? w->word[w->at] : "";
	const uint64_t delay = word[0] >= '0' && word[0] <= '9' ? words_time(p, words_next(w)) : 0;
	f->peer_next = 0;
	words_of_peer(p, w, &s);
	s.wire.flags = TCP_SYN;
	f->ts_first_us = p->now_us;
	play_in(p, &s.wire, 1);
	play_flush(p);
	const uint8_t flags = p->out_count > 0 ? p->outs[0].wire.flags : 0;
	if (p->out_count != 1 || flags != (TCP_SYN | TCP_ACK))
		play_fail(p, "no SYN-ACK");
	play_took_out(p);
	f->our_next = f->peer_next = 1;
	play_until(p, p->now_us + delay);
	char ack[] = "ACK";
	struct words words = {.count = 1, .word = {ack}};
	words_of_peer(p, &words, &s);
	play_in(p, &s.wire, 1);
	play_flush(p);
	struct words opened = {.count = 1, .word = {"opened"}};
	step_event(p, &opened, &(struct when){p->now_us, when->tolerance_us});
}

static void step_near_wrap(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
	struct words_segment s;
	const uint32_t bytes = (uint32_t)words_number(p, w);
	words_of_peer(p, w, &s);
	s.wire.flags = TCP_SYN;
	play_near_wrap(p, &s.wire, bytes);
}

// SYNs of as many sources, each of which must be answered, none of which may be kept.
static void step_flood(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
	const int64_t count = words_number(p, w);
	const struct play_flow flow = *p->flow;
	const struct wire syn = {.flags = TCP_SYN, .has_mss = true, .mss = 1460, .window = 1000};
	int64_t answered = 0;
	for (int64_t i = 0; i < count; i++) {
		memcpy(p->flow->peer.ip + 12, &(uint32_t){0x01000001 + (uint32_t)i * 0x101}, 4);
		play_in(p, &syn, 1);
		play_flush(p);
		answered += p->out_count;
		p->out_count = 0;
	}
	*p->flow = flow;
	const int64_t wanted = words_take(w, "answers") ? words_number(p, w) : count;
	if (answered != wanted)
		play_fail(p, "%lld answered", (long long)answered);
}

static void step_too_big(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
	struct tcp_segment quoted = {.peer = p->flow->peer, .local = p->flow->local};
	quoted.seq = p->flow->our_isn + (uint32_t)words_number(p, w);
	play_turn(p);
	tcp_too_big(p->tcp, &quoted, (uint16_t)words_number(p, w));
}

static void step_quiet(struct play *p, struct words *w, const struct when *when)
{
	(void)w, (void)when;
	play_flush(p);
	play_expect_nothing(p);
}

// --- what is counted

static uint64_t counted(struct play *p, const char *name)
{
	const struct tcp_stats *stats = tcp_stats(p->tcp);
	for (unsigned i = 0; i < TCP_COUNTERS_COUNT; i++)
		if (strcmp(name, tcp_counter_name(i)) == 0)
			return stats->counters[i];
	if (strcmp(name, "open") == 0)
		return stats->open;
	if (strcmp(name, "waiting") == 0)
		return stats->waiting;
	if (strcmp(name, "working") == 0)
		return stats->working;
	play_fail(p, "\"%s\" is not counted", name);
}

static void step_count(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
	play_flush(p);
	play_turn(p); // what ended in a turn is counted out in the next
	play_flush(p);
	for (const char *name; (name = words_next(w)) != NULL;) {
		const uint64_t is = counted(p, name);
		if (is != (uint64_t)words_number(p, w))
			play_fail(p, "%s is %llu", name, (unsigned long long)is);
	}
}

// --- settings

static void step_plan(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
#define FIELD(name, is_time) \
	{ \
#name, &p->plan.name, is_time \
	}
	const struct {
		const char *name;
		uint32_t *field;
		bool is_time;
	} fields[] = {FIELD(connections_max, 0), FIELD(reserve, 0), FIELD(wait_max, 0),
		FIELD(works_max, 0), FIELD(send_chunks, 0), FIELD(receive_chunks, 0),
		FIELD(chunk_bytes, 0), FIELD(send_max, 0), FIELD(receive_max, 0),
		FIELD(rto_min_us, 1), FIELD(rto_max_us, 1), FIELD(give_up_us, 1), FIELD(idle_us, 1),
		FIELD(wait_us, 1), FIELD(linger_us, 1), FIELD(delayed_ack_us, 1),
		FIELD(syn_rate, 0), FIELD(challenge_rate, 0), FIELD(reset_rate, 0)};
#undef FIELD
	if (p->tcp)
		play_fail(p, "the plan comes before everything else");
	if (words_take(w, "queue_high")) {
		p->plan.queue_high = (size_t)words_number(p, w);
		return;
	}
	if (words_take(w, "mss_v4")) {
		p->plan.mss_v4 = (uint16_t)words_number(p, w);
		return;
	}
	for (unsigned i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (words_take(w, fields[i].name)) {
			*fields[i].field = fields[i].is_time
						   ? (uint32_t)words_time(p, words_next(w))
						   : (uint32_t)words_number(p, w);
			return;
		}
	play_fail(p, "the plan has no such field");
}

static void step_flow(struct play *p, struct words *w, const struct when *when)
{
	(void)when;
	const uint64_t number = (uint64_t)words_number(p, w);
	if (number >= PLAY_FLOWS)
		play_fail(p, "no such flow");
	p->flow = &p->flows[number];
	if (words_take(w, "port"))
		p->flow->local.port = (uint16_t)words_number(p, w);
	if (words_take(w, "v6")) {
		memcpy(p->flow->peer.ip, "\x20\x01\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
		memcpy(p->flow->local.ip, "\x20\x01\xd\xb8\0\0\0\0\0\0\0\0\0\0\0\2", 16);
	}
}

// --- lines

static const struct verb {
	const char *name;
	void (*step)(struct play *p, struct words *w, const struct when *when);
	enum { SAYS, LETS_IN, WAITS, CALLS } sort;
} verbs[] = {
	{"<", step_in, LETS_IN},
	{">", step_out, WAITS},
	{"event", step_event, WAITS},
	{"call", step_call, CALLS},
	{"connect", step_connect, LETS_IN},
	{"near_wrap", step_near_wrap, LETS_IN},
	{"flood", step_flood, LETS_IN},
	{"too_big", step_too_big, CALLS},
	{"quiet", step_quiet, CALLS},
	{"count", step_count, CALLS},
	{"flow", step_flow, SAYS},
	{"plan", step_plan, SAYS},
};

static struct when read_when(struct play *p, struct words *w)
{
	struct when when = {p->step_us, TOLERANCE_US};
	if (w->word[0][0] != '+')
		return when;
	char *word = strdup(words_next(w) + 1);
	char *tolerance = strchr(word, '~');
	if (tolerance) {
		*tolerance++ = '\0';
		when.tolerance_us = words_time(p, tolerance);
	}
	when.at_us += words_time(p, word);
	free(word);
	return when;
}

// Let time pass before what is no expectation.
static void pass_time(struct play *p, uint64_t at_us)
{
	if (at_us > p->now_us) {
		play_flush(p);
		play_expect_nothing(p);
		play_until(p, at_us);
		play_expect_nothing(p);
	}
	p->step_us = at_us;
}

static void play_line(struct play *p, const char *line)
{
	struct words words;
	words_split(&words, line);
	if (words.count == 0)
		return;
	const struct when when = read_when(p, &words);
	const char *name = words_next(&words);
	for (unsigned i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const struct verb *verb = &verbs[i];
		if (!name || strcmp(verb->name, name) != 0)
			continue;
		if (verb->sort == LETS_IN || verb->sort == CALLS)
			pass_time(p, when.at_us);
		if (verb->sort == LETS_IN) {
			play_flush(p);
			play_expect_nothing(p);
		}
		verb->step(p, &words, &when);
		if (words.at < words.count)
			play_fail(p, "\"%s\" is left over", words.word[words.at]);
		return;
	}
	play_fail(p, "no such step");
}

static void play_file(const char *name, bool is_loud)
{
	static struct play play;
	char line[400];
	FILE *file = fopen(name, "r");
	if (!file) {
		perror(name);
		exit(2);
	}
	play_init(&play, name, is_loud);
	while (fgets(line, sizeof(line), file)) {
		play.line++;
		play_line(&play, line);
	}
	fclose(file);
	if (play.tcp)
		play_end(&play);
}

int main(int argc, char **argv)
{
	const bool is_loud = argc > 1 && strcmp(argv[1], "-v") == 0;
	for (int i = 1 + is_loud; i < argc; i++)
		play_file(argv[i], is_loud);
	printf("%d scripts\n", argc - 1 - is_loud);
	return 0;
}
