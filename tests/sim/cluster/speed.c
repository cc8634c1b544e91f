// What an entry costs: microseconds of Redis for each LEDGER_CALLED, in batches of 1, 16 and 256,
// for a line alone, for one of eight that share a pool, and where nothing is free.
//
// By hand: build/tests/sim/cluster/sim_ledger_speed. The figure is the CPU time of Redis, with
// reading the batch and writing the reply; the best of seven.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "controlplane/cluster/ledger_wire.h"
#include "dataplane/gate/place.h"
#include "tests/sim/cluster/redis.h"

#define PREFIX "sluice:{speed}:"
#define ENTRIES_MAX 256u
#define ARGS_MAX (REDIS_SCRIPT_ARGS + LEDGER_WIRE_ARGS_BATCH + ENTRIES_MAX * LEDGER_WIRE_ARGS_ENTRY)
#define TEXT_MAX (LEDGER_WIRE_BYTES_BATCH + ENTRIES_MAX * LEDGER_WIRE_BYTES_ENTRY)

struct speed {
	struct redis_server server;
	char sha[REDIS_SHA_BYTES + 1];
	struct ledger_batch batch;
	struct ledger_entry entries[ENTRIES_MAX];
	uint64_t visitor;
};

static uint64_t now_ms(void)
{
	struct timeval now;
	gettimeofday(&now, NULL);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000;
}

static void load(struct speed *s)
{
	const char *argv[] = {"SCRIPT", "LOAD", ledger_wire_script};
	const size_t lengths[] = {6, 4, ledger_wire_script_bytes};
	redisReply *reply = redis_server_do(&s->server, 3, argv, lengths);
	memcpy(s->sha, reply->str, REDIS_SHA_BYTES);
	freeReplyObject(reply);
}

// Send what is in the batch. Returns how many were granted.
static uint32_t send_batch(struct speed *s)
{
	static const char *argv[ARGS_MAX];
	static size_t lengths[ARGS_MAX];
	static char text[TEXT_MAX];
	struct ledger_wire_args args = {.argv = argv + REDIS_SCRIPT_ARGS,
		.lengths = lengths + REDIS_SCRIPT_ARGS,
		.max = ARGS_MAX - REDIS_SCRIPT_ARGS,
		.text = text,
		.text_max = TEXT_MAX};
	struct ledger_wire_reader reader;
	struct ledger_reply reply;
	struct ledger_answer answer;
	uint32_t granted = 0;
	s->batch.number++;
	s->batch.time_ms = now_ms();
	s->batch.entries = s->entries;
	if (!ledger_wire_batch(&s->batch, PREFIX, &args))
		abort();
	redisReply *r = redis_server_run(&s->server, s->sha, argv, lengths, args.count);
	if (!ledger_wire_reply(&reader, r->str, r->len, &reply))
		abort();
	for (uint32_t i = 0; i < reply.answer_count; i++) {
		if (!ledger_wire_answer(&reader, &answer) || answer.verdict == LEDGER_STALE ||
			answer.verdict == LEDGER_REFUSED || answer.verdict == LEDGER_UNKNOWN)
			abort();
		granted += answer.verdict == LEDGER_GRANTED;
	}
	s->batch.fence = reply.fence;
	s->batch.cursor = s->batch.applied = reply.newest;
	freeReplyObject(r);
	return granted;
}

static void send_one(struct speed *s, struct ledger_entry entry)
{
	s->entries[0] = entry;
	s->batch.count = 1;
	send_batch(s);
}

static void set_node(struct speed *s, uint32_t id, uint32_t parent, bool is_line)
{
	send_one(s, (struct ledger_entry){.kind = LEDGER_NODE,
			    .line = id,
			    .node = {.limits = {.capacity = 1000000, .burst = 1},
				    .parent = parent,
				    .priority = 1,
				    .weight = 1,
				    .is_line = is_line,
				    .session_s = 600,
				    .present_max = 65536,
				    .left_max = 65536,
				    .ended_max = 65536}});
}

static void set_line(struct speed *s, uint32_t id, uint32_t parent)
{
	set_node(s, id, parent, true);
	send_one(
		s, (struct ledger_entry){.kind = LEDGER_THRESHOLD,
			   .line = id,
			   .threshold = {.threshold = place_key_of_ms(now_ms()), .is_open = true}});
}

static void fill(struct speed *s, uint32_t line, uint32_t count)
{
	s->batch.count = count;
	for (uint32_t i = 0; i < count; i++) {
		s->visitor++;
		s->entries[i] = (struct ledger_entry){.kind = LEDGER_CALLED,
			.line = line,
			.claim = {.key = s->visitor * 7919 % 1000003,
				.visitor = s->visitor,
				.session = s->visitor,
				.poll_after = 60}};
	}
}

// Seconds that a field of INFO cpu says.
static double field_s(const char *info, const char *name)
{
	const char *at = strstr(info, name);
	return at ? strtod(at + strlen(name), NULL) : 0;
}

static double cpu_us(struct speed *s)
{
	const char *argv[] = {"INFO", "cpu"};
	redisReply *reply = redis_server_do(&s->server, 2, argv, NULL);
	const double us = 1e6 * (field_s(reply->str, "used_cpu_user:") +
					field_s(reply->str, "used_cpu_sys:"));
	freeReplyObject(reply);
	return us;
}

static void measure(struct speed *s, const char *what, uint32_t line, uint32_t size)
{
	double best = 1e9;
	uint32_t granted = 0;
	for (uint32_t run = 0; run < 7; run++) {
		const uint32_t batches = 1024 / size < 32 ? 32 : 1024 / size;
		const double before = cpu_us(s);
		for (uint32_t i = 0; i < batches; i++) {
			fill(s, line, size);
			granted += send_batch(s);
		}
		const double each = (cpu_us(s) - before) / batches / size;
		best = each < best ? each : best;
	}
	printf("%-24s batches of %3" PRIu32 ": %6.1f us an entry%s\n", what, size, best,
		granted > 0 ? ", granted" : ", next");
}

// What an item of a key costs, of what has been filled by now.
static void weigh(struct speed *s, const char *key, const char *counts)
{
	char name[64];
	snprintf(name, sizeof(name), PREFIX "%s", key);
	redisReply *bytes = redis_server_do(
		&s->server, 5, (const char *[]){"MEMORY", "USAGE", name, "SAMPLES", "0"}, NULL);
	redisReply *count = redis_server_do(&s->server, 2, (const char *[]){counts, name}, NULL);
	printf("%-24s %8lld items, %6.1f bytes each\n", key, count->integer,
		count->integer > 0 ? (double)bytes->integer / (double)count->integer : 0);
	freeReplyObject(bytes);
	freeReplyObject(count);
}

// A slot in a list of its own, 32 in a list: as they come in a turn with few and with many.
static void add_slots(struct speed *s, uint32_t line, uint32_t size)
{
	for (uint32_t i = 0; i < 8192; i += size) {
		s->entries[i / size % ENTRIES_MAX] = (struct ledger_entry){
			.kind = LEDGER_SLOTS, .line = line, .slots = {.count = size}};
		s->batch.count = i / size % ENTRIES_MAX + 1;
		if (s->batch.count == ENTRIES_MAX || i + size == 8192)
			send_batch(s);
	}
}

static void weigh_all(struct speed *s)
{
	static const struct {
		const char *key, *counts;
	} keys[] = {{"v:00000001", "HLEN"}, {"e:00000001", "ZCARD"}, {"c:00000001", "ZCARD"},
		{"p:00000001", "ZCARD"}, {"d:00000001", "ZCARD"}, {"s:00000001:0", "LLEN"},
		{"s:00000010:0", "LLEN"}, {"news", "XLEN"}, {"n:00000001", "HLEN"}};
	add_slots(s, 0x1, 1);
	add_slots(s, 0x10, 32);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		weigh(s, keys[i].key, keys[i].counts);
}

int main(void)
{
	static struct speed s = {.batch = {.name = "a1",
					 .incarnation = 1,
					 .appliance = LEDGER_MEMBERS_MAX,
					 .run = "0123456789012345678901234567890123456789"}};
	static const uint32_t sizes[] = {1, 16, 256};
	redis_server_start(&s.server);
	load(&s);
	send_one(&s, (struct ledger_entry){.kind = LEDGER_ELECT});
	set_line(&s, 1, 0);
	set_node(&s, 2, 0, false);
	for (uint32_t i = 0; i < 8; i++)
		set_line(&s, 0x10 + i, 2);
	for (uint32_t i = 0; i < 3; i++)
		measure(&s, "a line alone", 1, sizes[i]);
	for (uint32_t i = 0; i < 3; i++)
		measure(&s, "one of eight in a pool", 0x10, sizes[i]);
	set_node(&s, 1, 0, true); // its slots are full now
	s.entries[0].node.limits.capacity = 1;
	send_one(&s, s.entries[0]);
	for (uint32_t i = 0; i < 3; i++)
		measure(&s, "a line alone, full", 1, sizes[i]);
	weigh_all(&s);
	redis_server_stop(&s.server);
	return 0;
}
