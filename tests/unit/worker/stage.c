// The worker is included, since its turns are its own.

#include "tests/unit/worker/stage.h"

#include "dataplane/worker.c"

#include "controlplane/pages/folder.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/place.h"
#include "dataplane/guard.h"

#include <rte_eal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#define CLUSTER_MS 1764583200000

bool stage_open(void)
{
	char *arguments[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "64", "-l", "0"};
	return rte_eal_init(sizeof(arguments) / sizeof(arguments[0]), arguments) >= 0;
}

static struct gate_room room_named(const char *name, const char *path, struct stage *stage)
{
	bool is_derby = path[1] == 'd';
	return (struct gate_room){.name = {name, strlen(name)},
		.path = {path, strlen(path)},
		.line_id = is_derby ? 7 : 8,
		.index = is_derby ? 1 : 0,
		.queue_status = 200,
		.session_s = 60,
		.ticket_ttl_s = 3600,
		.line_max = UINT64_MAX,
		.message_json = SPAN("null"),
		.line = is_derby ? stage->derby : stage->cup,
		.pages = folder_set(stage->folder)};
}

static void build_map(struct stage *stage, struct gate_map *map)
{
	static struct gate_room rooms[2];
	static struct gate_site site;
	static const struct gate_room *by_path[2] = {&rooms[1], &rooms[0]};
	static const struct gate_host host = {.name = SPAN("localhost"), .site = &site};
	rooms[0] = room_named("cup", "/cup", stage);
	rooms[1] = room_named("derby", "/derby", stage);
	site = (struct gate_site){
		.name = SPAN("shop"), .preflight_rate = 1, .room_count = 2, .rooms = by_path};
	*map = (struct gate_map){.site_count = 1,
		.room_count = 2,
		.host_count = 1,
		.sites = &site,
		.rooms = rooms,
		.hosts = (struct gate_host *)(uintptr_t)&host};
}

static void build_snapshot(struct stage *stage)
{
	static const struct origin_table_server server = {
		.id = 1, .name = SPAN("one"), .address = {.ip = {[15] = 1}, .port = 80}};
	static const struct origin_table_origin origin = {
		.id = 1, .name = SPAN("shop"), .server_count = 1};
	static const struct origin_table table = {1, 1, 1, &origin, &server};
	static const uint8_t secret[32] = {1};
	struct snapshot *s = stage->snapshot = calloc(1, sizeof(*s));
	assert_non_null(s);
	s->version = 1;
	s->origins = &table;
	build_map(stage, &s->map);
	token_secrets_add(&s->secrets, 1, secret, sizeof(secret));
	s->secrets.current = 1;
	atomic_store(&stage->words.current, s);
}

static void open_places(struct stage *stage)
{
	char path[] = "/tmp/sluice-stage-XXXXXX";
	const struct template_ear ear = {NULL, NULL}; // nothing is wrong with the pages
	close(mkstemp(path));
	unlink(path);
	assert_int_equal(place_file_open(path, 2, 1024, &stage->places), 0);
	unlink(path);
	stage->derby = place_file_line(stage->places, 7);
	stage->cup = place_file_line(stage->places, 8);
	place_begin(stage->derby, CLUSTER_MS / PLACE_SLOT_MS);
	place_begin(stage->cup, CLUSTER_MS / PLACE_SLOT_MS);
	assert_int_equal(folder_read(NULL, "en", NULL, &ear, NULL, &stage->folder), 0);
}

static void open_words(struct stage *stage)
{
	size_t bytes = rte_rcu_qsbr_get_memsize(WORKER_COUNT_MAX);
	stage->words.quiescent = aligned_alloc(64, (bytes + 63) / 64 * 64);
	rte_rcu_qsbr_init(stage->words.quiescent, WORKER_COUNT_MAX);
	rte_rcu_qsbr_thread_register(stage->words.quiescent, 0);
	stage->words.guard = guard_init(aligned_alloc(64, guard_bytes()), 7);
	stage->words.ended = ended_init(aligned_alloc(64, ended_bytes(64)), 64);
	stage->words.clock_offset_ms = CLUSTER_MS;
	stage->wake_fd = eventfd(0, EFD_NONBLOCK);
}

void stage_begin(struct stage *stage)
{
	memset(stage, 0, sizeof(*stage));
	fake_init(&stage->fake);
	stage->now_us = 1000000;
	open_places(stage);
	open_words(stage);
	build_snapshot(stage);
	assert_int_equal(rings_create(0, 15, &stage->rings), 0);
	struct worker_plan plan = {.connections = STAGE_CONNECTIONS,
		.connections_per_source = STAGE_CONNECTIONS,
		.parked_max = STAGE_CONNECTIONS,
		.buffers = STAGE_BUFFERS,
		.buffer_bytes = 32768,
		.limits = {8192, 16384, 100},
		.head_timeout_ms = STAGE_HEAD_MS,
		.idle_timeout_ms = STAGE_IDLE_MS,
		.rings = stage->rings,
		.words = &stage->words,
		.control_wake = stage->wake_fd};
	plan.tls_max = 16;
	plan.visitor_tls_max = 16;
	origin_plan_init(&plan.origin, 16, 4);
	struct worker *w = stage->w = aligned_alloc(64, (sizeof(*w) + 63) / 64 * 64);
	memset(w, 0, sizeof(*w));
	w->plan = plan;
	w->driver = w->outer = &stage->fake.driver;
	assert_int_equal(create(w), 0);
	stage_turn(stage, 0);
}

void stage_close(struct stage *stage)
{
	close_all(stage->w);
}

void stage_end(struct stage *stage)
{
	stage_close(stage);
	assert_int_equal(buffers_taken(stage->w->conns.buffers), 0);
	assert_int_equal(stage->w->parked_count, 0);
	assert_int_equal(stage->w->timers.count, 0);
	stage->w->driver = stage->w->outer = NULL; // the stage's own
	destroy(stage->w);
	rings_destroy(stage->rings);
	free(stage->snapshot);
	place_file_close(stage->places);
	folder_give(stage->folder);
	close(stage->wake_fd);
	free(stage->words.quiescent);
	free(stage->words.guard);
	free(stage->words.ended);
	fake_fini(&stage->fake);
}

// Never inlined: bench/README.md counts instructions by its name.
__attribute__((noinline)) void stage_turn(struct stage *stage, uint64_t ms)
{
	stage->now_us += ms * 1000;
	stage->fake.driver.now_us = stage->now_us;
	if (!stage->control_is_late)
		atomic_store(&stage->words.heartbeat_us, stage->now_us);
	turn(stage->w);
}

struct fake_stream *stage_visitor(struct stage *stage)
{
	struct fake_stream *s = fake_accept(&stage->fake);
	fake_peer_opens(&stage->fake, s);
	return s;
}

void stage_says(struct stage *stage, struct fake_stream *s, const char *text)
{
	fake_peer_sends(&stage->fake, s, (struct span){text, strlen(text)});
	stage_turn(stage, 1);
}

unsigned stage_heard(const struct fake_stream *s, const char *text)
{
	size_t len = strlen(text);
	unsigned count = 0;
	for (size_t i = 0; i + len <= s->got.len; i++)
		count += memcmp(s->got.at + i, text, len) == 0;
	return count;
}

void stage_forget(struct fake_stream *s)
{
	s->got.len = 0;
}

void stage_cookie(const struct fake_stream *s, const char *name, char value[65])
{
	char field[128];
	int len = snprintf(field, sizeof(field), "Set-Cookie: %s=", name);
	const char *found = memmem(s->got.at, s->got.len, field, (size_t)len);
	assert_non_null(found);
	memcpy(value, found + len, 64);
	value[64] = 0;
}

bool stage_has_claim(struct stage *stage)
{
	struct claim claim;
	return rings_pop_claims(stage->rings, &claim, 1) == 1;
}

struct claim stage_claim(struct stage *stage)
{
	struct claim claim;
	assert_int_equal(rings_pop_claims(stage->rings, &claim, 1), 1);
	return claim;
}

void stage_answer(struct stage *stage, const struct claim *claim, uint8_t verdict, uint64_t session)
{
	uint32_t now_s = (uint32_t)(CLUSTER_MS / 1000 + stage->now_us / 1000000);
	struct claim_answer answer = {.verdict = verdict,
		.kind = claim->kind,
		.room = claim->room,
		.request = claim->request,
		.generation = claim->generation,
		.key = claim->key,
		.visitor = claim->visitor,
		.session = session,
		.issued = now_s,
		.expires = now_s + 60,
		.line_id = claim->line_id,
		.lane_id = verdict == CLAIM_HONOURED ? claim->line_id : 0};
	if (verdict == CLAIM_HONOURED) { // a place of nobody in particular
		answer.expires = CLAIM_PLACE_NOBODYS;
		answer.session = claim->key;
		answer.digest = claim->session;
		answer.visitor = session;
	}
	assert_true(rings_push_answer(stage->rings, &answer));
	stage_turn(stage, 1);
}

struct fake_stream *stage_origin(struct stage *stage)
{
	for (int i = stage->fake.count; i-- > 0;)
		if (stage->fake.streams[i].stream.listener == STREAM_CONNECTED)
			return &stage->fake.streams[i];
	fail_msg("nobody has connected to the origin");
	return NULL;
}

unsigned stage_idle(const struct stage *stage)
{
	const struct conn_table *conns = &stage->w->conns;
	unsigned count = 0;
	for (struct conn *c = conn_first(conns, CONN_IDLE); c; c = conn_next(conns, c))
		count++;
	return count;
}

uint64_t stage_counter(const struct stage *stage, enum counter which)
{
	return counters_get(&stage->w->shown.counters, which);
}
