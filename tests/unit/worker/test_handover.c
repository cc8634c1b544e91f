// The hand-over between control and a worker, made to be run under TSan: claims and answers over
// the rings, snapshots swapped and freed under load, the line's words, ended sessions, counters.
//
// The worker is the real one on a driver in memory that lets visitors come, ask for the guarded
// page and go. Control is this thread.

#include "dataplane/worker.h"

#include "controlplane/pages/folder.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/place.h"
#include "dataplane/tls/tls.h"

#include <rte_eal.h>
#include <rte_rcu_qsbr.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define VISITORS 64
#define ROUNDS 400
#define ROUNDS_MAX 100000
#define ANSWERS_WANTED 200
#define GRANT_EVERY 3 // of the claims

// A driver whose peers all send the same request as soon as they are in, and leave when answered.
struct memory_driver {
	struct stream_driver driver;
	struct stream streams[VISITORS];
	bool is_open[VISITORS], has_asked[VISITORS], is_done[VISITORS];
	_Atomic uint64_t answers;
	_Atomic bool woken;
};

static const char request[] = "GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n"
			      "Connection: close\r\n\r\n";

static uint64_t monotonic_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static int memory_poll(
	struct stream_driver *driver, struct stream_event *events, int events_max, uint32_t wait_us)
{
	struct memory_driver *d = (struct memory_driver *)driver;
	int count = 0;
	(void)wait_us;
	driver->now_us = monotonic_us();
	for (int i = 0; i < VISITORS && count < events_max; i++) {
		struct stream *stream = &d->streams[i];
		if (!d->is_open[i]) {
			*stream = (struct stream){.peer = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, 1}}};
			d->is_open[i] = true;
			d->has_asked[i] = d->is_done[i] = false;
			events[count++] = (struct stream_event){STREAM_OPENED, 0, stream, {0}};
		} else if (!d->has_asked[i]) {
			d->has_asked[i] = true;
			events[count++] = (struct stream_event){
				STREAM_DATA, 0, stream, {request, sizeof(request) - 1}};
		} else if (d->is_done[i]) {
			d->is_open[i] = false;
			events[count++] = (struct stream_event){STREAM_CLOSED, 0, stream, {0}};
		}
	}
	return count;
}

static size_t memory_write(
	struct stream_driver *driver, struct stream *s, const struct span *parts, unsigned count)
{
	(void)s;
	struct memory_driver *d = (struct memory_driver *)driver;
	size_t bytes = 0;
	for (unsigned i = 0; i < count; i++)
		bytes += parts[i].len;
	atomic_fetch_add(&d->answers, 1);
	return bytes;
}

static size_t memory_queued(const struct stream_driver *driver, const struct stream *s)
{
	(void)driver;
	(void)s;
	return 0;
}

static void memory_nothing(struct stream_driver *driver, struct stream *s)
{
	(void)driver;
	(void)s;
}

static void memory_shut(struct stream_driver *driver, struct stream *s)
{
	struct memory_driver *d = (struct memory_driver *)driver;
	d->is_done[s - d->streams] = true;
}

static void memory_close(struct stream_driver *driver, struct stream *s, bool reset)
{
	(void)reset;
	struct memory_driver *d = (struct memory_driver *)driver;
	d->is_open[s - d->streams] = false;
}

static struct stream *memory_connect(
	struct stream_driver *driver, const struct stream_address *to, void *user)
{
	(void)driver;
	(void)to;
	(void)user;
	return NULL; // no origin: the admitted get 502
}

static void memory_wake(struct stream_driver *driver)
{
	atomic_store(&((struct memory_driver *)driver)->woken, true);
}

static void memory_no(struct stream_driver *driver)
{
	(void)driver;
}

static const struct stream_driver_ops memory_ops = {.poll = memory_poll,
	.write = memory_write,
	.queued = memory_queued,
	.shut = memory_shut,
	.close = memory_close,
	.pause = memory_nothing,
	.resume = memory_nothing,
	.connect = memory_connect,
	.stop_accepting = memory_no,
	.wake = memory_wake,
	.destroy = memory_no};

// What control holds.
struct stage {
	struct memory_driver memory;
	struct snapshot_words words;
	struct rings *rings;
	struct worker *worker;
	struct place_file *places;
	struct place_line *line;
	struct folder *folder;
	int wake_fd;
};

static struct snapshot *build(struct stage *stage, uint64_t version)
{
	static const struct origin_table origins = {.generation = 1};
	struct snapshot *s = calloc(1, sizeof(*s));
	struct gate_room *room = calloc(1, sizeof(*room));
	struct gate_site *site = calloc(1, sizeof(*site));
	struct gate_host *host = calloc(1, sizeof(*host));
	*room = (struct gate_room){.name = SPAN("derby"),
		.path = SPAN("/derby"),
		.line_id = 7,
		.queue_status = 200,
		.session_s = 60,
		.ticket_ttl_s = 3600,
		.line_max = UINT64_MAX,
		.message_json = SPAN("null"),
		.line = stage->line,
		.pages = folder_set(stage->folder)};
	*site = (struct gate_site){.name = SPAN("shop"), .preflight_rate = 1, .room_count = 1};
	site->rooms = calloc(1, sizeof(*site->rooms));
	site->rooms[0] = room;
	*host = (struct gate_host){.name = SPAN("localhost"), .site = site};
	s->version = version;
	s->map = (struct gate_map){.site_count = 1,
		.room_count = 1,
		.host_count = 1,
		.sites = site,
		.rooms = room,
		.hosts = host};
	s->origins = &origins;
	uint8_t secret[32] = {(uint8_t)version};
	token_secrets_add(&s->secrets, 1, secret, sizeof(secret));
	s->secrets.current = 1;
	return s;
}

static void destroy(const struct snapshot *s)
{
	free(s->map.sites->rooms);
	free(s->map.sites);
	free(s->map.rooms);
	free(s->map.hosts);
	free((void *)(uintptr_t)s);
}

static void begin(struct stage *stage)
{
	char path[] = "/tmp/sluice-handover-XXXXXX";
	const struct template_ear ear = {NULL, NULL}; // nothing is wrong with the pages
	int fd = mkstemp(path);
	close(fd);
	unlink(path);
	assert_int_equal(place_file_open(path, 1, 1024, &stage->places), 0);
	unlink(path);
	stage->line = place_file_line(stage->places, 7);
	place_begin(stage->line, 1);
	assert_int_equal(folder_read(NULL, "en", NULL, &ear, NULL, &stage->folder), 0);
	size_t bytes = rte_rcu_qsbr_get_memsize(WORKER_COUNT_MAX);
	stage->words.quiescent = aligned_alloc(64, (bytes + 63) / 64 * 64);
	rte_rcu_qsbr_init(stage->words.quiescent, WORKER_COUNT_MAX);
	stage->words.ended = ended_init(aligned_alloc(64, (ended_bytes(64) + 63) / 64 * 64), 64);
	atomic_store(&stage->words.heartbeat_us, monotonic_us());
	atomic_store(&stage->words.current, build(stage, 1));
	stage->wake_fd = eventfd(0, EFD_NONBLOCK);
	assert_int_equal(rings_create(0, 256, &stage->rings), 0);
	stage->memory.driver = (struct stream_driver){.ops = &memory_ops, .queue_high = 65536};
	struct worker_plan plan = {.connections = VISITORS,
		.connections_per_source = VISITORS,
		.parked_max = VISITORS,
		.buffers = 4 * VISITORS,
		.tls_max = 1,
		.visitor_tls_max = 1,
		.buffer_bytes = 32768,
		.limits = {8192, 16384, 100},
		.head_timeout_ms = 10000,
		.idle_timeout_ms = 10000,
		.driver = &stage->memory.driver,
		.rings = stage->rings,
		.words = &stage->words,
		.control_wake = stage->wake_fd};
	origin_plan_init(&plan.origin, VISITORS, 4);
	assert_int_equal(worker_start(&plan, &stage->worker), 0);
}

// One turn of control. Returns how many claims it answered.
static unsigned turn(struct stage *stage, uint64_t round)
{
	struct claim claims[64];
	uint64_t wakes;
	ssize_t got = read(stage->wake_fd, &wakes, sizeof(wakes));
	(void)got;
	unsigned count = rings_pop_claims(stage->rings, claims, 64), answered = 0;
	for (unsigned i = 0; i < count; i++) {
		const struct claim *claim = &claims[i];
		if (claim->kind != CLAIM_DIRECT && claim->kind != CLAIM_CALLED)
			continue;
		bool grant = i % GRANT_EVERY == 0;
		struct claim_answer answer = {.verdict = grant ? CLAIM_GRANTED : CLAIM_REFUSED,
			.kind = claim->kind,
			.request = claim->request,
			.generation = claim->generation,
			.visitor = claim->visitor,
			.session = round * 64 + i + 1,
			.expires = (uint32_t)(monotonic_us() / 1000000 + 60),
			.issued = (uint32_t)(monotonic_us() / 1000000),
			.line_id = claim->line_id};
		answered += rings_push_answer(stage->rings, &answer);
	}
	place_close(stage->line, monotonic_us() / 10000);
	atomic_store(&stage->line->open, round % 4 ? 16 : PLACE_OPEN_LINE);
	ended_insert(stage->words.ended, round + 1, 1);
	ended_sweep(stage->words.ended, 1000);
	atomic_store(&stage->words.heartbeat_us, monotonic_us());
	worker_wake(stage->worker);
	return answered;
}

static void test_everything_at_once(void **state)
{
	(void)state;
	static struct stage stage;
	begin(&stage);
	const struct origin_counters *origin = origin_counters(worker_origin(stage.worker));
	const struct tls_counters *tls = tls_counters(worker_visitor_tls(stage.worker));
	uint64_t answered = 0, not_served = 0;
	for (uint64_t round = 1; round <= ROUNDS || answered < ANSWERS_WANTED; round++) {
		assert_true(round < ROUNDS_MAX);
		answered += turn(&stage, round);
		struct snapshot *next = build(&stage, round + 1);
		const struct snapshot *before = atomic_exchange(&stage.words.current, next);
		uint64_t token = rte_rcu_qsbr_start(stage.words.quiescent);
		while (rte_rcu_qsbr_check(stage.words.quiescent, token, false) != 1)
			usleep(50);
		destroy(before); // the worker is in the new one
		struct worker_refused refused[GATE_MAP_ROOMS_MAX];
		worker_take_refused(stage.worker, refused);
		assert_true(origin->server_none >= not_served);
		not_served = origin->server_none;
		assert_int_equal(tls->handshakes, 0);
	}
	const struct counters *counters = worker_counters(stage.worker);
	for (int i = 0; i < COUNTER_COUNT; i++)
		if (counters_get(counters, (enum counter)i) > 0)
			print_message("%s %lu\n", counters_names[i],
				counters_get(counters, (enum counter)i));
	assert_true(answered > 0);
	assert_true(counters_get(counters, COUNTER_requests) > ROUNDS);
	assert_true(counters_get(counters, COUNTER_tickets) > 0);
	assert_true(counters_get(counters, COUNTER_granted) > 0);
	assert_true(atomic_load(&stage.memory.answers) > ROUNDS);
	assert_true(not_served > 0);
	worker_stop(stage.worker);
	rings_destroy(stage.rings);
	destroy(atomic_load(&stage.words.current));
	place_file_close(stage.places);
	folder_give(stage.folder);
	close(stage.wake_fd);
	free(stage.words.quiescent);
	free(stage.words.ended);
}

int main(void)
{
	char *arguments[] = {"test", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "64", "-l", "0"};
	if (rte_eal_init(sizeof(arguments) / sizeof(arguments[0]), arguments) < 0)
		return 1;
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_everything_at_once)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
