// Goal: ledger.lua on a real Redis and the model do the same.
// Goal: batch by batch every reply is equal, byte for byte; and so is the state, time and again.
// Goal: what a newer version keeps in the same records changes nothing, and is kept (every other
// seed).
//
// Arguments: seeds and batches of each; the seed is printed and replays. Virtual time: the script
// reads TIME from two keys instead.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "controlplane/cluster/ledger_wire.h"
#include "dataplane/gate/place.h"
#include "tests/sim/cluster/crowd.h"
#include "tests/sim/cluster/model.h"
#include "tests/sim/cluster/redis.h"

#define PREFIX "sluice:{twins}:"
#define DUMP_EVERY 40u
#define ARGS_MAX \
	(REDIS_SCRIPT_ARGS + LEDGER_WIRE_ARGS_BATCH + LEDGER_ENTRIES_MAX * LEDGER_WIRE_ARGS_ENTRY)
#define TEXT_MAX (LEDGER_WIRE_BYTES_BATCH + LEDGER_ENTRIES_MAX * LEDGER_WIRE_BYTES_ENTRY)
#define EMPTIED_EVERY 331u // batches: the store has lost everything

struct twins {
	struct redis_server server;
	struct model model;
	struct crowd crowd;
	char sha[REDIS_SHA_BYTES + 1];
	char *dump, *tomorrow; // scripts
	uint64_t verdicts[LEDGER_KINDS][LEDGER_VERDICTS];
};

static redisReply *say(struct twins *t, int argc, const char **argv)
{
	return redis_server_do(&t->server, argc, argv, NULL);
}

// The script with its clock replaced.
static void load(struct twins *t)
{
	static const char clock[] = "redis.call('TIME')";
	static const char keys[] = "{redis.call('GET','now:s'),redis.call('GET','now:us')}";
	const char *at = memmem(ledger_wire_script, ledger_wire_script_bytes, clock, strlen(clock));
	if (!at)
		abort();
	const size_t before = (size_t)(at - ledger_wire_script);
	const char *rest = at + strlen(clock);
	struct model_text script = {0};
	model_print(&script, "%.*s%s%.*s", (int)before, ledger_wire_script, keys,
		(int)(ledger_wire_script + ledger_wire_script_bytes - rest), rest);
	redisReply *reply = say(t, 3, (const char *[]){"SCRIPT", "LOAD", script.at});
	memcpy(t->sha, reply->str, REDIS_SHA_BYTES);
	freeReplyObject(reply);
	free(script.at);
}

static void set_clock(struct twins *t)
{
	char s[32], us[32];
	snprintf(s, sizeof(s), "%" PRIu64, t->crowd.raw_ms / 1000);
	snprintf(us, sizeof(us), "%" PRIu64, t->crowd.raw_ms % 1000 * 1000 + 7);
	freeReplyObject(say(t, 5, (const char *[]){"MSET", "now:s", s, "now:us", us}));
}

static redisReply *ask_redis(struct twins *t, const struct ledger_batch *batch)
{
	static const char *argv[ARGS_MAX];
	static size_t lengths[ARGS_MAX];
	static char text[TEXT_MAX];
	struct ledger_wire_args args = {.argv = argv + REDIS_SCRIPT_ARGS,
		.lengths = lengths + REDIS_SCRIPT_ARGS,
		.max = ARGS_MAX - REDIS_SCRIPT_ARGS,
		.text = text,
		.text_max = TEXT_MAX};
	if (!ledger_wire_batch(batch, PREFIX, &args))
		abort();
	return redis_server_run(&t->server, t->sha, argv, lengths, args.count);
}

static char *read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 1 << 16);
	if (!file || !text || fread(text, 1, (1 << 16) - 1, file) == 0)
		abort();
	fclose(file);
	return text;
}

static void differ(
	uint64_t seed, uint64_t step, const char *what, const char *lua, const char *model)
{
	size_t at = 0;
	while (lua[at] == model[at] && lua[at] != '\0')
		at++;
	while (at > 0 && lua[at - 1] != '\n')
		at--;
	fprintf(stderr,
		"seed %" PRIu64 ", batch %" PRIu64
		": %s differ from here\nlua:\n%.600s\nmodel:\n%.600s\n",
		seed, step, what, lua + at, model + at);
	exit(1);
}

static void compare_state(struct twins *t, uint64_t seed, uint64_t step)
{
	redisReply *reply = say(t, 4, (const char *[]){"EVAL", t->dump, "1", PREFIX});
	char *model = model_dump(&t->model);
	if (strcmp(reply->str, model) != 0)
		differ(seed, step, "states", reply->str, model);
	free(model);
	freeReplyObject(reply);
}

static void count(struct twins *t, const char *bytes)
{
	static struct ledger_news news;
	struct ledger_wire_reader reader;
	struct ledger_reply reply;
	struct ledger_answer answer;
	struct ledger_member member;
	bool is_sound = ledger_wire_reply(&reader, bytes, strlen(bytes), &reply);
	for (uint32_t i = 0; is_sound && i < reply.answer_count; i++) {
		is_sound = ledger_wire_answer(&reader, &answer);
		t->verdicts[answer.kind][answer.verdict] += is_sound;
	}
	for (uint32_t i = 0; is_sound && i < reply.member_count; i++)
		is_sound = ledger_wire_member(&reader, &member);
	for (uint32_t i = 0; is_sound && i < reply.news_count; i++)
		is_sound = ledger_wire_news(&reader, &news);
	if (is_sound)
		return;
	fprintf(stderr, "a reply that cannot be read:\n%s\n", bytes);
	exit(1);
}

// Whether a record that is named there has been entered anew by what a member knows of it.
static bool is_entered_anew(const struct ledger_batch *batch, const char *name)
{
	char expected[48];
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct ledger_entry *e = &batch->entries[i];
		snprintf(
			expected, sizeof(expected), "v %08x%016" PRIx64, e->line, e->claim.visitor);
		if (e->kind == LEDGER_TAKEN && strncmp(name, expected, strlen(expected)) == 0)
			return true;
	}
	return false;
}

// A newer version was here: each record has more in it than ours.
static void meet_tomorrow(
	struct twins *t, const struct ledger_batch *batch, uint64_t seed, uint64_t step)
{
	redisReply *reply = say(t, 4, (const char *[]){"EVAL", t->tomorrow, "1", PREFIX});
	for (const char *name = reply->str; *name; name = strchr(name, '\n') + 1) {
		if (is_entered_anew(batch, name))
			continue;
		fprintf(stderr, "seed %" PRIu64 ", batch %" PRIu64 ": lost %s", seed, step, name);
		exit(1);
	}
	freeReplyObject(reply);
}

// News carry what a newer conductor said.
static void take_out_tomorrow(char *text)
{
	static const char what[] = " tomorrow";
	for (char *at = text; (at = strstr(at, what));)
		memmove(at, at + strlen(what), strlen(at + strlen(what)) + 1);
}

static void empty(struct twins *t)
{
	freeReplyObject(say(t, 1, (const char *[]){"FLUSHALL"}));
	model_fini(&t->model);
	model_init(&t->model);
}

static void run(struct twins *t, uint64_t seed, uint64_t batches)
{
	empty(t);
	crowd_init(&t->crowd, seed);
	t->crowd.is_calm = seed % 2 == 1;
	t->crowd.is_shared = seed % 3 == 0;
	for (uint64_t step = 0; step < batches; step++) {
		struct crowd_member *member;
		const struct ledger_batch *batch = crowd_batch(&t->crowd, &member);
		t->crowd.is_settled = seed % 4 > 1 && step > 300;
		if (!t->crowd.is_calm && step % EMPTIED_EVERY == EMPTIED_EVERY - 1)
			empty(t);
		set_clock(t);
		redisReply *lua = ask_redis(t, batch);
		char *model = model_batch(&t->model, batch, t->crowd.raw_ms);
		count(t, lua->str);
		take_out_tomorrow(lua->str);
		if (strcmp(lua->str, model) != 0)
			differ(seed, step, "replies", lua->str, model);
		if (step % DUMP_EVERY == 0 || step + 1 == batches)
			compare_state(t, seed, step);
		if (seed % 2 == 0)
			meet_tomorrow(t, batch, seed, step);
		crowd_reply(&t->crowd, member, model, strlen(model));
		free(model);
		freeReplyObject(lua);
	}
}

// Of a1, which has sent none yet.
static struct ledger_batch first_batch(const struct ledger_entry *entries)
{
	return (struct ledger_batch){.name = "a1",
		.incarnation = 1,
		.appliance = LEDGER_MEMBERS_MAX,
		.run = "0123456789012345678901234567890123456789",
		.entries = entries};
}

// What is kept of one type of records is bounded.
static void records_are_bounded(struct twins *t)
{
	static struct ledger_entry entries[LEDGER_ENTRIES_MAX];
	static const uint8_t byte = 7;
	struct ledger_batch batch = first_batch(entries);
	empty(t);
	crowd_init(&t->crowd, 0);
	set_clock(t);
	for (uint32_t id = 0; id <= LEDGER_RECORDS_MAX; id++) {
		entries[batch.count++] = (struct ledger_entry){
			.kind = LEDGER_RECORD, .record = {.id = id, .len = 1, .bytes = &byte}};
		if (batch.count < LEDGER_ENTRIES_MAX && id < LEDGER_RECORDS_MAX)
			continue;
		batch.number++;
		batch.time_ms = t->crowd.raw_ms;
		redisReply *lua = ask_redis(t, &batch);
		char *model = model_batch(&t->model, &batch, t->crowd.raw_ms);
		const char *verdict = strchr(model, '\n');
		if (strcmp(lua->str, model) != 0)
			differ(0, id, "replies", lua->str, model);
		if (strncmp(verdict, id < LEDGER_RECORDS_MAX ? "\n15 7" : "\n15 9", 5) != 0)
			abort();
		free(model);
		freeReplyObject(lua);
		batch.count = 0;
	}
}

static struct ledger_entry node_entry(uint32_t id, uint32_t parent)
{
	return (struct ledger_entry){.kind = LEDGER_NODE,
		.line = id,
		.node = {.limits = {.burst = 1},
			.parent = parent,
			.priority = 1,
			.weight = 1,
			.is_line = parent != 0,
			.session_s = 60,
			.present_max = 1,
			.left_max = 1,
			.ended_max = 1}};
}

static struct ledger_entry called_entry(struct twins *t, uint64_t visitor)
{
	return (struct ledger_entry){.kind = LEDGER_CALLED,
		.line = 1,
		.claim = {.key = place_key_of_ms(t->crowd.raw_ms) - 1,
			.visitor = visitor,
			.session = visitor}};
}

// The last of so many answers is this one.
static void expect(const char *reply, uint32_t count, const char *answer)
{
	for (; count > 0; count--)
		reply = strchr(reply, '\n') + 1;
	if (strncmp(reply, answer, strlen(answer)) != 0) {
		fprintf(stderr, "expected %s, got %.40s\n", answer, reply);
		exit(1);
	}
}

// Ask the script alone.
static void expect_last(struct twins *t, struct ledger_batch *batch, const char *answer)
{
	batch->number++;
	batch->time_ms = t->crowd.raw_ms;
	redisReply *reply = ask_redis(t, batch);
	expect(reply->str, batch->count, answer);
	freeReplyObject(reply);
}

// As many nodes as may share slots, and one more. The script alone: the model holds fewer.
static void trees_are_bounded(struct twins *t)
{
	static struct ledger_entry entries[LEDGER_ENTRIES_MAX];
	struct ledger_batch batch = first_batch(entries);
	empty(t);
	crowd_init(&t->crowd, 0);
	set_clock(t);
	entries[batch.count++] = (struct ledger_entry){.kind = LEDGER_ELECT};
	expect_last(t, &batch, "10 7");
	batch.fence = 1;
	batch.count = 0;
	entries[batch.count++] = node_entry(0xf000, 0);
	for (uint32_t id = 1; id < LEDGER_TREE_MAX; id++)
		entries[batch.count++] = node_entry(id, 0xf000);
	entries[batch.count++] = (struct ledger_entry){.kind = LEDGER_THRESHOLD,
		.line = 1,
		.threshold = {.threshold = place_key_of_ms(t->crowd.raw_ms), .is_open = true}};
	entries[batch.count++] = called_entry(t, 7);
	expect_last(t, &batch, "1 1 0000000000000007");
	batch.count = 0;
	entries[batch.count++] = node_entry(LEDGER_TREE_MAX, 0xf000);
	entries[batch.count++] = called_entry(t, 8);
	expect_last(t, &batch, "1 2 10\n");
}

// To both; returns the reply, to be freed.
static char *ask_both(struct twins *t, struct ledger_batch *batch)
{
	batch->number++;
	batch->time_ms = t->crowd.raw_ms;
	redisReply *lua = ask_redis(t, batch);
	char *model = model_batch(&t->model, batch, t->crowd.raw_ms);
	if (strcmp(lua->str, model) != 0)
		differ(0, batch->number, "replies", lua->str, model);
	freeReplyObject(lua);
	batch->count = 0;
	return model;
}

static void expect_both(struct twins *t, struct ledger_batch *batch, const char *answer)
{
	const uint32_t count = batch->count;
	char *reply = ask_both(t, batch);
	expect(reply, count, answer);
	free(reply);
}

// How many keys of who came a reply to one LEDGER_VIEW tells.
static uint32_t count_came(char *reply)
{
	struct ledger_wire_reader reader;
	struct ledger_reply head;
	static struct ledger_answer answer;
	if (!ledger_wire_reply(&reader, reply, strlen(reply), &head) ||
		!ledger_wire_answer(&reader, &answer) || answer.kind != LEDGER_VIEW)
		abort();
	free(reply);
	return answer.view.came_count;
}

// Who came is kept for the conductor, told piece by piece, and bounded; those before its first look
// are not told at all.
static void who_came_is_bounded(struct twins *t)
{
	static struct ledger_entry entries[LEDGER_ENTRIES_MAX];
	struct ledger_batch batch = first_batch(entries);
	empty(t);
	crowd_init(&t->crowd, 0);
	set_clock(t);
	entries[batch.count++] = (struct ledger_entry){.kind = LEDGER_ELECT};
	free(ask_both(t, &batch));
	batch.fence = 1;
	entries[batch.count++] = node_entry(0xf000, 0);
	entries[batch.count++] = node_entry(1, 0xf000);
	entries[batch.count++] = (struct ledger_entry){.kind = LEDGER_THRESHOLD,
		.line = 1,
		.threshold = {.threshold = place_key_of_ms(t->crowd.raw_ms), .is_open = true}};
	entries[batch.count++] = called_entry(t, 1);
	free(ask_both(t, &batch));
	const struct ledger_entry view = {.kind = LEDGER_VIEW, .line = 1, .takes_came = true};
	entries[batch.count++] = view;
	if (count_came(ask_both(t, &batch)) != 0)
		abort();
	for (uint64_t visitor = 2; visitor < LEDGER_CAME_KEPT_MAX + 3; visitor++) {
		entries[batch.count++] = called_entry(t, visitor);
		if (batch.count == LEDGER_ENTRIES_MAX || visitor == LEDGER_CAME_KEPT_MAX + 2)
			free(ask_both(t, &batch));
	}
	compare_state(t, 0, batch.number);
	for (uint32_t told = 0; told <= LEDGER_CAME_KEPT_MAX; told += LEDGER_CAME_MAX) {
		entries[batch.count++] = view;
		const uint32_t count = count_came(ask_both(t, &batch));
		if (count != (told < LEDGER_CAME_KEPT_MAX ? LEDGER_CAME_MAX : 0))
			abort();
	}
}

static struct ledger_entry session_entry(enum ledger_kind kind, const struct twins *t, uint64_t id)
{
	return (struct ledger_entry){.kind = kind,
		.line = 1,
		.claim = {.visitor = id,
			.session = id,
			.expires = (uint32_t)(t->crowd.raw_ms / 1000 + 50)}};
}

static struct ledger_entry direct_entry(uint64_t id)
{
	return (struct ledger_entry){
		.kind = LEDGER_DIRECT, .line = 1, .claim = {.visitor = id, .session = id}};
}

// Two slots: 1 is inside by a2, 2 by a1. Writes are lost, a2 does not come back. It may have ended
// 1 and let somebody else in, whom it alone would remember: when 1 ends, its slot is not free.
static void what_nobody_writes_back_frees_nothing(struct twins *t)
{
	static struct ledger_entry entries[LEDGER_ENTRIES_MAX];
	struct ledger_batch a1 = first_batch(entries);
	struct ledger_batch a2 = a1;
	snprintf(a2.name, sizeof(a2.name), "a2");
	a2.incarnation = 2;
	empty(t);
	crowd_init(&t->crowd, 0);
	set_clock(t);
	entries[a1.count++] = (struct ledger_entry){.kind = LEDGER_ELECT};
	free(ask_both(t, &a1));
	a1.fence = 1;
	struct ledger_entry *pool = &entries[a1.count++];
	*pool = node_entry(0xf000, 0);
	pool->node.limits.capacity = 2;
	struct ledger_entry *line = &entries[a1.count++];
	*line = node_entry(1, 0xf000);
	line->node.direct = true;
	entries[a1.count++] = (struct ledger_entry){
		.kind = LEDGER_THRESHOLD, .line = 1, .threshold = {.is_open = true}};
	entries[a1.count++] = direct_entry(2);
	expect_both(t, &a1, "2 1");
	entries[a2.count++] = direct_entry(1);
	expect_both(t, &a2, "2 1");
	snprintf(a1.run, sizeof(a1.run), "9876543210987654321098765432109876543210");
	entries[a1.count++] = session_entry(LEDGER_TAKEN, t, 2);
	free(ask_both(t, &a1));
	entries[a1.count++] =
		(struct ledger_entry){.kind = LEDGER_RESTORED, .restored.epoch = t->model.epoch};
	free(ask_both(t, &a1));
	t->crowd.raw_ms += LEDGER_RECOVER_MS + LEDGER_LIVE_MS;
	set_clock(t);
	free(ask_both(t, &a1));
	if (t->model.is_recovering)
		abort();
	entries[a1.count++] = session_entry(LEDGER_END, t, 1);
	free(ask_both(t, &a1));
	a1.applied = t->model.news;
	free(ask_both(t, &a1));
	entries[a1.count++] = direct_entry(3);
	expect_both(t, &a1, "2 3\n");
	compare_state(t, 0, a1.number);
}

static struct ledger_entry gathered_entry(uint8_t what, uint64_t number)
{
	return (struct ledger_entry){.kind = LEDGER_GATHERED,
		.line = 1,
		.gathered = {.what = what, .number = number, .ids = {5}, .count = 1, .people = 1}};
}

// Somebody tells of a gathering that is over: nobody gathers.
static void what_is_over_stays_so(struct twins *t)
{
	static struct ledger_entry entries[LEDGER_ENTRIES_MAX];
	struct ledger_batch a1 = first_batch(entries);
	empty(t);
	crowd_init(&t->crowd, 0);
	set_clock(t);
	entries[a1.count++] = (struct ledger_entry){.kind = LEDGER_ELECT};
	free(ask_both(t, &a1));
	a1.fence = 1;
	entries[a1.count++] = node_entry(0xf000, 0);
	entries[a1.count++] = node_entry(1, 0xf000);
	entries[a1.count++] = gathered_entry(LEDGER_GATHERED_TELL, 2);
	entries[a1.count++] = gathered_entry(LEDGER_GATHERED_DRAWN, 2);
	entries[a1.count++] = gathered_entry(LEDGER_GATHERED_OVER, 2);
	entries[a1.count++] = gathered_entry(LEDGER_GATHERED_TELL, 2);
	entries[a1.count++] = gathered_entry(LEDGER_GATHERED_TELL, 1);
	expect_both(t, &a1, "17 7\n");
	if (model_find(&t->model, 1)->gathering != 0)
		abort();
	entries[a1.count++] = gathered_entry(LEDGER_GATHERED_TELL, 3);
	free(ask_both(t, &a1));
	if (model_find(&t->model, 1)->gathering != 1)
		abort();
	compare_state(t, 0, a1.number);
}

static struct ledger_entry record_entry(uint32_t version, uint32_t len, bool is_conductors)
{
	static const uint8_t byte = 7;
	return (struct ledger_entry){.kind = LEDGER_RECORD,
		.record = {.id = 3,
			.version = version,
			.len = len,
			.bytes = &byte,
			.is_conductors = is_conductors}};
}

// Who writes back a record changes none that is there; deleting one that is not is no news.
static void records_are_written_back(struct twins *t)
{
	static struct ledger_entry entries[LEDGER_ENTRIES_MAX];
	struct ledger_batch a1 = first_batch(entries);
	static const struct {
		uint32_t version, len;
		bool is_conductors;
		const char *answer;
		uint32_t news;
	} steps[] = {
		{2, 1, false, "15 7\n", 1},
		{2, 1, false, "15 8\n", 0},
		{1, 1, true, "15 8\n", 0},
		{2, 1, true, "15 7\n", 1},
		{3, 1, false, "15 7\n", 1},
		{0, 0, true, "15 7\n", 1},
		{0, 0, true, "15 7\n", 0},
	};
	empty(t);
	crowd_init(&t->crowd, 0);
	set_clock(t);
	entries[a1.count++] = (struct ledger_entry){.kind = LEDGER_ELECT};
	free(ask_both(t, &a1));
	a1.fence = 1;
	for (uint32_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		const uint64_t before = t->model.news;
		entries[a1.count++] =
			record_entry(steps[i].version, steps[i].len, steps[i].is_conductors);
		expect_both(t, &a1, steps[i].answer);
		if (t->model.news != before + steps[i].news)
			abort();
	}
}

int main(int argc, char **argv)
{
	static struct twins twins;
	const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 6;
	const uint64_t batches = argc > 2 ? strtoull(argv[2], NULL, 10) : 400;
	const uint64_t first = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	twins.dump = read_file(TWINS_FOLDER "/dump.lua");
	twins.tomorrow = read_file(TWINS_FOLDER "/tomorrow.lua");
	redis_server_start(&twins.server);
	load(&twins);
	records_are_bounded(&twins);
	trees_are_bounded(&twins);
	who_came_is_bounded(&twins);
	what_nobody_writes_back_frees_nothing(&twins);
	what_is_over_stays_so(&twins);
	records_are_written_back(&twins);
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		fflush(stdout);
		run(&twins, seed, batches);
	}
	redis_server_stop(&twins.server);
	model_fini(&twins.model);
	free(twins.dump);
	free(twins.tomorrow);
	for (uint32_t kind = 1; kind < LEDGER_KINDS; kind++) {
		printf("kind %2u:", kind);
		for (uint32_t v = 1; v < LEDGER_VERDICTS; v++)
			printf(" %" PRIu64, twins.verdicts[kind][v]);
		printf("\n");
	}
	return 0;
}
