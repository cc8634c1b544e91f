// What a status poll costs between the driver and its answer: whole turns of a worker, and each of
// its stages by itself, in cycles.
//
// The worker is the product's, on the stage of its tests; the driver hands out the same requests
// each turn, and copies what is written, once, as drivers do. The best of many rounds counts: what
// disturbs a measurement only makes it longer. A page view with a pass is followed up to the
// decision, where the origin's part begins.

#include "tests/unit/worker/stage.h"

#include "dataplane/gate/answer.h"
#include "dataplane/gate/place.h"

#include <rte_atomic.h>
#include <rte_cycles.h>

#include <stdio.h>
#include <stdlib.h>

#define POLLS 32u // in a turn
#define SETS 2u // of tickets: alternating, none is remembered
#define REQUEST_BYTES_MAX 1024u
#define ROUNDS_DEFAULT 3000u
#define SLOTS_APART 15u // each ticket has an entry of its own in the index, among as many others

// What a browser sends with fetch(), and with a visit.
#define POLL_FORMAT \
	"GET /.sluice/derby/status HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n" \
	"Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n" \
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " \
	"Chrome/126.0.0.0 Safari/537.36\r\nAccept-Encoding: gzip, deflate, br\r\n" \
	"Accept-Language: en-US,en;q=0.9\r\nCookie: sluice-t-derby=%.64s\r\n\r\n"
#define VISIT_FORMAT \
	"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html,application/xhtml+xml," \
	"application/xml;q=0.9,*/*;q=0.8\r\n" \
	"Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n" \
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " \
	"Chrome/126.0.0.0 Safari/537.36\r\nAccept-Encoding: gzip, deflate, br\r\n" \
	"Accept-Language: en-US,en;q=0.9\r\nCookie: sluice-%c-derby=%.64s\r\n\r\n"

// The requests of a kind.
static struct requests {
	char text[SETS][POLLS][REQUEST_BYTES_MAX];
	uint32_t len[SETS][POLLS];
} polls, pages, visits;

// What is measured.
struct kind {
	const char *name;
	const struct requests *requests;
	bool is_remembered; // the tokens are, by the connections
	bool is_forwarded; // so there is no answer of ours, and no turn
	bool is_cold; // turns only
};

static struct stage stage;
static struct fake_stream *streams[POLLS];
static struct stream_driver_ops wire_ops;
static const struct requests *wire_requests; // what the next turn brings
static unsigned wire_set;
static char wire_out[REPLY_BYTES_MAX];

static int wire_poll(struct stream_driver *d, struct stream_event *events, int max, uint32_t wait)
{
	(void)d;
	(void)wait;
	assert(max >= (int)POLLS);
	for (unsigned i = 0; i < POLLS; i++)
		events[i] = (struct stream_event){.kind = STREAM_DATA,
			.stream = &streams[i]->stream,
			.data = {
				wire_requests->text[wire_set][i], wire_requests->len[wire_set][i]}};
	return POLLS;
}

static size_t wire_write(
	struct stream_driver *d, struct stream *s, const struct span *parts, unsigned count)
{
	size_t bytes = 0;
	(void)d;
	(void)s;
	for (unsigned i = 0; i < count; bytes += parts[i++].len)
		memcpy(wire_out + bytes, parts[i].at, parts[i].len);
	return bytes;
}

static void sign(struct token token, char text[TOKEN_TEXT_BYTES])
{
	token.line_id = stage.derby->line_id;
	token.visitor = random();
	token.issued = stage.w->now_s;
	token_sign(&stage.snapshot->secrets, &token, text);
}

static void write_requests(unsigned set, unsigned i)
{
	char ticket[TOKEN_TEXT_BYTES], pass[TOKEN_TEXT_BYTES];
	uint64_t slot = stage.w->now_ms / PLACE_SLOT_MS + SLOTS_APART * (set * POLLS + i), key = 0;
	for (unsigned n = 0; n < SLOTS_APART; n++)
		key = place_mint(stage.derby, slot + n, 0);
	sign((struct token){.kind = TOKEN_TICKET, .key = key}, ticket);
	sign((struct token){.kind = TOKEN_PASS, .key = i + 1, .expires = UINT32_MAX}, pass);
	polls.len[set][i] =
		(uint32_t)snprintf(polls.text[set][i], REQUEST_BYTES_MAX, POLL_FORMAT, ticket);
	pages.len[set][i] = (uint32_t)snprintf(
		pages.text[set][i], REQUEST_BYTES_MAX, VISIT_FORMAT, 't', ticket);
	visits.len[set][i] =
		(uint32_t)snprintf(visits.text[set][i], REQUEST_BYTES_MAX, VISIT_FORMAT, 'p', pass);
}

static void begin(void)
{
	stage_begin(&stage);
	for (unsigned i = 0; i < POLLS; i++)
		streams[i] = stage_visitor(&stage);
	stage_turn(&stage, 1);
	for (unsigned set = 0; set < SETS; set++)
		for (unsigned i = 0; i < POLLS; i++)
			write_requests(set, i);
	place_close(stage.derby, stage.w->now_ms / PLACE_SLOT_MS + SLOTS_APART * SETS * POLLS);
	wire_ops = *stage.fake.driver.ops;
	wire_ops.poll = wire_poll;
	wire_ops.write = wire_write;
}

// Put the connections out of the caches, as they are when there are many.
static void cool(void)
{
	const char *at = (const char *)stage.w->conns.conns;
	const char *end = (const char *)&stage.w->conns.conns[stage.w->conns.count_max];
	for (; at < end; at += RTE_CACHE_LINE_SIZE)
		__builtin_ia32_clflush(at);
	rte_mb();
}

static uint64_t turn_cycles(const struct requests *requests, unsigned set)
{
	wire_requests = requests;
	wire_set = set;
	uint64_t start = rte_rdtsc();
	stage_turn(&stage, 1);
	return rte_rdtsc() - start;
}

// Whole turns.
static void measure_turns(const struct kind *kind, unsigned rounds)
{
	const struct stream_driver_ops *fake_ops = stage.fake.driver.ops;
	uint64_t before = stage_counter(&stage, COUNTER_tokens);
	uint64_t best = UINT64_MAX;
	stage.fake.driver.ops = &wire_ops;
	for (unsigned round = 0; round < rounds; round++) {
		if (kind->is_cold)
			cool();
		uint64_t took = turn_cycles(kind->requests, kind->is_remembered ? 0 : round % SETS);
		best = took < best ? took : best;
	}
	stage.fake.driver.ops = fake_ops;
	double macs = (double)(stage_counter(&stage, COUNTER_tokens) - before) / POLLS / rounds;
	printf("%-22s %6lu cycles (%.2f MACs)\n", kind->name, (unsigned long)(best / POLLS), macs);
}

// --- the stages one by one

#define STAGES(X) \
	X(head, "http_request_read") \
	X(read, "gate_request_read") \
	X(tokens, "gate_request_tokens") \
	X(mac, "mac_burst") \
	X(settle, "gate_request_settle") \
	X(decide, "decide") \
	X(render, "answer_render")

enum stage_of_poll {
#define X(name, text) STAGE_##name,
	STAGES(X)
#undef X
		STAGE_COUNT,
};

static struct http_head heads[POLLS];
static struct gate_request requests_read[POLLS];
static struct gate_remembered remembered[POLLS];
static struct decision decisions[POLLS];

static bool do_stage(enum stage_of_poll which, struct span in, unsigned i, uint32_t *job_count)
{
	struct worker *w = stage.w;
	uint32_t scanned = 0;
	struct decide_input input = {.request = &requests_read[i],
		.left = w->plan.words->left,
		.now_ms = w->now_ms,
		.now_s = w->now_s,
		.random = i};
	struct answer_frame frame = {.date = w->date,
		.secrets = &w->snapshot->secrets,
		.now_s = w->now_s,
		.minor = 1,
		.site = requests_read[i].site};
	switch (which) {
	case STAGE_head:
		return http_request_read(in, &w->plan.limits, &scanned, &heads[i]) == HTTP_OK;
	case STAGE_read:
		gate_request_read(
			&w->snapshot->map, &heads[i], w->items[i].scratch, &requests_read[i]);
		return requests_read[i].room;
	case STAGE_tokens:
		*job_count += gate_request_tokens(&requests_read[i], &w->snapshot->secrets,
			&w->print_key, &remembered[i], w->now_s, &w->jobs[*job_count]);
		return true;
	case STAGE_mac: // of all, at the first
		if (i == 0 && *job_count > 0)
			mac_burst(w->mac, w->jobs, *job_count);
		return true;
	case STAGE_settle:
		gate_request_settle(&requests_read[i], &remembered[i], w->now_s);
		return requests_read[i].ticket || requests_read[i].pass;
	case STAGE_decide:
		decide(&input, &decisions[i]);
		return true;
	default:
		return decisions[i].action != DECIDE_ANSWER ||
		       answer_render(&decisions[i], &requests_read[i], &frame, w->reply);
	}
}

static void measure_stages(const struct kind *kind, unsigned rounds)
{
	static const char *const names[] = {
#define X(name, text) text,
		STAGES(X)
#undef X
	};
	uint64_t best[STAGE_COUNT];
	memset(best, 0xff, sizeof(best));
	memset(remembered, 0, sizeof(remembered));
	for (unsigned round = 0; round < rounds; round++) {
		unsigned set = kind->is_remembered ? 0 : round % SETS;
		uint32_t job_count = 0;
		for (unsigned s = 0; s < STAGE_COUNT; s++) {
			uint64_t start = rte_rdtsc();
			for (unsigned i = 0; i < POLLS; i++) {
				struct span in = {
					kind->requests->text[set][i], kind->requests->len[set][i]};
				if (!do_stage(s, in, i, &job_count))
					abort();
			}
			uint64_t took = rte_rdtsc() - start;
			best[s] = took < best[s] ? took : best[s];
		}
	}
	printf("%s\n", kind->name);
	for (unsigned s = 0; s < STAGE_COUNT; s++)
		printf("  %-20s %6lu\n", names[s], (unsigned long)(best[s] / POLLS));
}

// poll [ROUNDS [KIND]]: all kinds, or those whose name contains KIND.
int main(int count, char **words)
{
	static const struct kind kinds[] = {
		{.name = "poll, MAC", .requests = &polls},
		{"poll, remembered", &polls, .is_remembered = true},
		{"cold, MAC", &polls, .is_cold = true},
		{"cold, remembered", &polls, .is_remembered = true, .is_cold = true},
		{.name = "page, MAC", .requests = &pages},
		{"page, remembered", &pages, .is_remembered = true},
		{"forwarded, MAC", &visits, .is_forwarded = true},
		{"forwarded, remembered", &visits, .is_remembered = true, .is_forwarded = true},
	};
	unsigned rounds = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : ROUNDS_DEFAULT;
	if (!stage_open() || rounds == 0)
		return 1;
	begin();
	for (unsigned part = 0; part < 2; part++)
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
			if (count > 2 && !strstr(kinds[i].name, words[2]))
				continue;
			if (part == 0 && !kinds[i].is_forwarded)
				measure_turns(&kinds[i], rounds);
			if (part == 1 && !kinds[i].is_cold)
				measure_stages(&kinds[i], rounds);
		}
	stage_end(&stage);
	return 0;
}
