// An opening: half a million gathered, the draw, and the first minute of polls after it.
//
// The product's own gate, controller and draws in one process, in virtual time: everybody polls
// when told to, a little later as the page does. What is measured in real time: from the closing of
// the list to the moment from which every poll is told its place, and the CPU time of turns: as
// many polls as a worker takes at once, with MACs verified together, decided, answered and signed.
// Connections and heads are not part of it; `bench/poll` measures those.
//
// The same opening is gone through several times, each time by a process of its own, so that
// nothing is in its caches or touched before. Turn by turn it is the same work; of each turn the
// least time counts, since an interrupt that is charged to the thread only adds to it, and meets
// another turn the next time. The longest of those is the longest turn.

#include "controlplane/controller/controller.h"
#include "controlplane/draws/draws.h"
#include "controlplane/draws/draws_file.h"
#include "controlplane/pages/folder.h"
#include "dataplane/gate/answer.h"
#include "dataplane/gate/decide.h"
#include "dataplane/gate/mac.h"
#include "dataplane/gate/place.h"
#include "dataplane/http/head.h"

#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define GATHER_S 120u // in which they come, evenly
#define AFTER_S 60u // of polls after the opening that are looked at
#define TURN_POLLS 256u // a worker takes no more events in a turn
#define STEP_MS 20u // of virtual time; a turn of control
#define STEPS ((GATHER_S + AFTER_S + 70u) * 1000 / STEP_MS)
#define LINE_ENTRIES 65536u
#define TURNS_MAX 100000u
#define OPENINGS 5u // of which each turn's least counts
#define BINS 1000u
#define BEGIN_MS 1800000000000ull
#define OPENS_MS (BEGIN_MS + GATHER_S * 1000ull)

struct visitor {
	struct token token;
	uint64_t position;
	uint32_t next; // index + 1, of those who poll in the same step
};

struct memory_store {
	struct store store;
};

// What the openings came to; shared by their processes.
struct results {
	uint64_t turns; // of each opening
	uint64_t least_ns[TURNS_MAX]; // of each turn
	uint32_t turn_polls[TURNS_MAX]; // in each turn: the same in all openings
	double placed_s[OPENINGS];
	uint32_t second_polls[AFTER_S]; // in each second after the opening
	double chi_square;
	uint64_t untold;
};

static struct visitor *visitors;
static uint32_t count;
static uint32_t agenda[STEPS]; // index + 1 of the first who polls in a step
static struct results *results;
static unsigned opening; // which of them this process goes through
static struct place_line *line;
static struct controller *controller;
static struct draws *draws;
static struct draws_line *gatherings;
static struct gate_room room = {.name = {"derby", 5},
	.line_id = 7,
	.queue_status = 200,
	.session_s = 600,
	.ticket_ttl_s = 86400,
	.line_max = UINT64_MAX,
	.opens_s = OPENS_MS / 1000,
	.state = GATE_BEFORE,
	.message_json = {"null", 4}};
static struct gate_site site = {.name = {"shop", 4}};
static struct token_secrets secrets;
static struct mac_engine *mac;
static uint64_t seed, elsewhere_ns, turns;

static uint64_t next_random(void)
{
	seed += 0x9e3779b97f4a7c15u;
	uint64_t z = seed;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint64_t clock_ns(clockid_t which)
{
	struct timespec now;
	clock_gettime(which, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

// --- what draws touches outside itself

static int load(
	struct store *s, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	(void)s, (void)kind, (void)max, (void)record, (void)ctx;
	return 0;
}

static bool put(struct store *s, const struct store_record *record)
{
	(void)record;
	s->status.commits_total++;
	return true;
}

static void moment(struct store *s, uint64_t now_ms)
{
	(void)now_ms;
	s->status.commits_total++;
}

static const struct store_ops ops = {.load = load, .put = put, .begin = moment, .poll = moment};

static uint64_t barrier_begin(void *ctx)
{
	(void)ctx;
	return 1;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	(void)ctx, (void)token;
	return true;
}

static void fill_random(void *ctx, uint8_t *bytes, uint32_t bytes_count)
{
	(void)ctx;
	for (uint32_t i = 0; i < bytes_count; i++)
		bytes[i] = (uint8_t)next_random(); // the same in each opening
}

static void say(void *ctx, uint32_t line_id, const char *text)
{
	(void)ctx, (void)line_id;
	fprintf(stderr, "%s\n", text);
}

// --- a turn of a worker

static void due(uint32_t index, uint64_t at_ms)
{
	uint64_t step = (at_ms - BEGIN_MS) / STEP_MS;
	if (step >= STEPS)
		return;
	visitors[index].next = agenda[step];
	agenda[step] = index + 1;
}

static void decide_one(struct gate_request *request, const struct claim_answer *answer,
	uint64_t now_ms, struct decision *decision)
{
	const struct decide_input input = {.request = request,
		.answer = answer,
		.now_ms = now_ms,
		.now_s = (uint32_t)(now_ms / 1000),
		.fresh_visitor = next_random(),
		.random = (uint32_t)next_random()};
	decide(&input, decision);
	if (decision->action != DECIDE_CLAIM)
		return;
	struct claim_answer said;
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	decision->claim.sent_ms = now_ms;
	controller_claim(controller, &decision->claim, next_random() | 1, now_ms, &said);
	said.line_id = room.line_id;
	elsewhere_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	decide_one(request, &said, now_ms, decision);
}

// The page asks up to a tenth later than it was told.
static void told(uint32_t index, const struct decision *decision, uint64_t now_ms)
{
	struct visitor *v = &visitors[index];
	if (decision->sets_ticket)
		v->token = decision->ticket;
	if (decision->status.position != STATUS_UNKNOWN)
		v->position = decision->status.position;
	if (decision->status.state == STATUS_admitted)
		return;
	uint64_t after_ms = decision->status.poll_after * 1000ull;
	due(index, now_ms + after_ms + next_random() % (after_ms / 10));
}

static void note_turn(uint32_t poll_count, uint64_t took_ns)
{
	if (turns == TURNS_MAX)
		abort();
	if (opening == 0 || took_ns < results->least_ns[turns])
		results->least_ns[turns] = took_ns;
	if (opening == 0)
		results->turn_polls[turns] = poll_count;
	assert(results->turn_polls[turns] == poll_count);
	turns++;
}

static void turn(const uint32_t *who, uint32_t poll_count, uint64_t now_ms)
{
	static struct gate_request requests[TURN_POLLS];
	static struct token_wire wires[TURN_POLLS];
	static struct mac_job jobs[TURN_POLLS];
	static char out[ANSWER_BYTES_MAX];
	static struct decision decision;
	const struct answer_frame frame = {.date = "Thu, 01 Jan 1970 00:00:00 GMT",
		.secrets = &secrets,
		.now_s = (uint32_t)(now_ms / 1000),
		.minor = 1,
		.site = &site};
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (uint32_t i = 0; i < poll_count; i++) {
		struct gate_request *request = &requests[i];
		memset(request, 0, sizeof(*request));
		request->route = GATE_ROUTE_STATUS;
		request->method = HTTP_GET;
		request->site = &site;
		request->room = &room;
		request->token_count = 1;
		request->tokens[0] = (struct gate_token){
			.carried = {.carrier = CARRY_COOKIE, .kind = TOKEN_TICKET},
			.state = GATE_TOKEN_VALID,
			.token = visitors[who[i]].token};
		request->ticket = &request->tokens[0];
		token_pack(&request->tokens[0].token, wires[i].body);
		jobs[i] = (struct mac_job){&secrets.keys[1], wires[i].body, wires[i].tag};
	}
	mac_burst(mac, jobs, poll_count);
	for (uint32_t i = 0; i < poll_count; i++) {
		decide_one(&requests[i], NULL, now_ms, &decision);
		answer_render(&decision, &requests[i], &frame, out);
		told(who[i], &decision, now_ms);
	}
	// Control's part is done by another thread.
	const uint64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns - elsewhere_ns;
	elsewhere_ns = 0;
	if (now_ms >= OPENS_MS)
		note_turn(poll_count, took_ns);
}

static void take_polls(uint32_t step, uint64_t now_ms)
{
	uint32_t who[TURN_POLLS], poll_count = 0;
	for (uint32_t at = agenda[step]; at;) {
		who[poll_count++] = at - 1;
		at = visitors[at - 1].next; // before it is told when next
		if (now_ms >= OPENS_MS && now_ms < OPENS_MS + AFTER_S * 1000)
			results->second_polls[(now_ms - OPENS_MS) / 1000] += opening == 0;
		if (poll_count == TURN_POLLS || !at) {
			turn(who, poll_count, now_ms);
			poll_count = 0;
		}
	}
}

static void arrive(uint32_t index, uint64_t now_ms)
{
	static struct gate_request request;
	struct decision decision;
	memset(&request, 0, sizeof(request));
	request.route = GATE_ROUTE_GUARDED;
	request.method = HTTP_GET;
	request.draws = true;
	request.site = &site;
	request.room = &room;
	decide_one(&request, NULL, now_ms, &decision);
	assert(decision.was_minted && decision.ticket.flags == TOKEN_FLAG_GATHERED);
	told(index, &decision, now_ms);
}

// --- control, and what is measured

static void control(uint64_t now_ms)
{
	const struct draws_wish wish = {.prepares = true,
		.gathers = now_ms < OPENS_MS + 1000,
		.epoch = OPENS_MS,
		.gathered_max = count};
	draws_wish(gatherings, &wish, now_ms);
	draws_turn(draws, now_ms);
	controller_set_available(controller, room.state == GATE_OPEN, now_ms);
	controller_tick(controller, now_ms);
	const struct controller_change *changes;
	controller_changes(controller, &changes);
	controller_publish(controller, false, now_ms);
}

// Real time from the closing of the list until everybody's place is known.
static double draw_places(uint64_t now_ms)
{
	const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
	struct draws_view view;
	do {
		control(now_ms);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
		draws_look(gatherings, &view);
	} while (view.is_undrawn);
	room.state = GATE_OPEN;
	room.opens_s = 0;
	return (double)(clock_ns(CLOCK_MONOTONIC) - began_ns) / 1e9;
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

// Of places by arrival: a thousand cells of a hundred parts of the crowd and ten of the places,
// less their 108 margins that are given. Nobody may have the place of another.
static double chi_square(void)
{
	static uint32_t cells[BINS / 10][10];
	uint64_t *places = malloc(count * sizeof(*places)), known = 0;
	double sum = 0, expected;
	for (uint32_t i = 0; i < count; i++) {
		if (visitors[i].position == 0)
			continue;
		places[known++] = visitors[i].position;
		cells[(uint64_t)i * (BINS / 10) / count][(visitors[i].position - 1) * 10 / count]++;
	}
	expected = (double)known / BINS;
	qsort(places, known, sizeof(*places), compare);
	for (uint64_t i = 1; i < known; i++)
		assert(places[i] != places[i - 1]);
	free(places);
	for (uint32_t i = 0; i < BINS; i++) {
		const double off = cells[i / 10][i % 10] - expected;
		sum += off * off / expected;
	}
	return sum;
}

static double cycles_per_ns(void)
{
	const uint64_t tsc = __rdtsc(), ns = clock_ns(CLOCK_MONOTONIC);
	nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
	return (double)(__rdtsc() - tsc) / (double)(clock_ns(CLOCK_MONOTONIC) - ns);
}

static int compare_seconds(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(void)
{
	double sum = 0, peak = 0;
	for (uint32_t i = 0; i < AFTER_S; i++) {
		sum += results->second_polls[i];
		peak = results->second_polls[i] > peak ? results->second_polls[i] : peak;
	}
	qsort(results->placed_s, OPENINGS, sizeof(results->placed_s[0]), compare_seconds);
	qsort(results->least_ns, results->turns, sizeof(results->least_ns[0]), compare);
	const double cycles = cycles_per_ns();
	printf("{\"gathered\": %u, \"placed_s\": %.3f, \"placed_longest_s\": %.3f, "
	       "\"peak_over_mean\": %.3f, \"chi_square\": %.0f, "
	       "\"longest_turn_cycles\": %.0f, \"median_turn_cycles\": %.0f, "
	       "\"turns\": %lu, \"polls\": %.0f, \"untold\": %lu}\n",
		count, results->placed_s[OPENINGS / 2], results->placed_s[OPENINGS - 1],
		peak / (sum / AFTER_S), results->chi_square,
		(double)results->least_ns[results->turns - 1] * cycles,
		(double)results->least_ns[results->turns / 2] * cycles, results->turns, sum,
		results->untold);
}

static void begin(const char *folder)
{
	static struct memory_store store = {.store = {.ops = &ops}};
	const struct draws_plan plan = {.folder = folder};
	const struct draws_seams seams = {.barrier_begin = barrier_begin,
		.barrier_passed = barrier_passed,
		.random = fill_random,
		.say = say};
	const struct controller_limits limits = {
		.capacity = 2000, .burst = 1, .session_s = 600, .claim_s = 120, .direct = true};
	const struct controller_bounds bounds = {.sessions_max = 100000,
		.present_max = 65536,
		.left_max = 1024,
		.seed = next_random()};
	const struct template_ear ear = {NULL, NULL}; // nothing is wrong with the pages
	static struct folder *pages;
	visitors = calloc(count, sizeof(*visitors));
	line = aligned_alloc(64, (place_line_bytes(LINE_ENTRIES) + 63) / 64 * 64);
	memset(line, 0, place_line_bytes(LINE_ENTRIES));
	place_line_init(line, room.line_id, LINE_ENTRIES);
	if (!visitors || mac_create(&mac) < 0 ||
		folder_read(NULL, "en", NULL, &ear, NULL, &pages) < 0 ||
		draws_create(&plan, &store.store, &seams, &draws) < 0)
		abort();
	token_secrets_add(&secrets, 1, (const uint8_t *)"sixteen bytes or more", 21);
	secrets.current = 1;
	gatherings = draws_take(draws, room.line_id, line, true);
	place_begin(line, BEGIN_MS / PLACE_SLOT_MS);
	controller = controller_create(&limits, &bounds, line, BEGIN_MS);
	room.pages = folder_set(pages);
	room.line = line;
	room.gather = draws_gather(gatherings);
}

static void end(const char *folder)
{
	for (uint32_t i = 0; i < count; i++)
		results->untold += opening == 0 && visitors[i].position == 0;
	results->chi_square = chi_square();
	results->turns = turns;
	controller_destroy(controller);
	draws_destroy(draws);
	draws_file_remove(folder, room.line_id, BEGIN_MS);
	mac_destroy(mac);
	free(visitors);
	free(line);
}

static void go_through(const char *folder)
{
	uint32_t arrived = 0;
	begin(folder);
	for (int i = 0; i < 5; i++)
		control(BEGIN_MS);
	for (uint32_t step = 0; step < (GATHER_S + AFTER_S) * 1000 / STEP_MS; step++) {
		const uint64_t now_ms = BEGIN_MS + step * STEP_MS;
		const uint64_t expected = (uint64_t)count * (now_ms - BEGIN_MS) / (GATHER_S * 1000);
		for (; arrived < count && arrived < expected; arrived++)
			arrive(arrived, now_ms);
		if (now_ms == OPENS_MS + 1000) // who is being drawn while it takes so long
			results->placed_s[opening] = draw_places(now_ms);
		else
			control(now_ms);
		take_polls(step, now_ms);
	}
	end(folder);
}

// In a process of its own, which ends with this one. Returns whether it came to its end.
static bool open_doors(const char *folder)
{
	int status;
	const pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		go_through(folder);
		_exit(0);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

int main(int argc, char **argv)
{
	if (argc != 3 || (count = (uint32_t)strtoul(argv[1], NULL, 10)) < BINS) {
		fprintf(stderr, "usage: draw PEOPLE FOLDER   (at least %u)\n", BINS);
		return 2;
	}
	results = mmap(
		NULL, sizeof(*results), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (results == MAP_FAILED || getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return 1;
	for (; opening < OPENINGS; opening++)
		if (!open_doors(argv[2]))
			return 1;
	report();
	return 0;
}
