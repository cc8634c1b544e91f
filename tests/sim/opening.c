// The process of a room with doors. Its store commits once a turn; what was put before is lost with
// the process, unless it had just arrived.

#include "tests/sim/opening.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "controlplane/schedule/wishes.h"
#include "dataplane/http/head.h"
#include "tests/unit/controller/random.h"

// Draws are made here and now instead of on a thread, whose end no seed could tell.
#include "controlplane/draws/draws_job.h"
int draws_job_start_thread(struct draws_job *job);
bool draws_job_is_done_thread(struct draws_job *job, bool wait);
#define draws_job_start draws_job_start_thread
#define draws_job_is_done draws_job_is_done_thread
#include "controlplane/draws/draws_job.c"
#undef draws_job_start
#undef draws_job_is_done

#define ENTRIES 4096u
#define LINE_ID 7u

static uint64_t job_random = 1;

int draws_job_start(struct draws_job *job)
{
	assert(!job->is_running);
	job->is_running = true;
	return draws_job_run(job);
}

bool draws_job_is_done(struct draws_job *job, bool wait)
{
	assert(job->is_running);
	if (!wait && random_below(&job_random, 4) > 0)
		return false;
	job->is_running = false;
	return true;
}

// --- the store

static struct opening *of(struct store *s)
{
	return (struct opening *)((char *)s - offsetof(struct opening, store));
}

static int load(
	struct store *s, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	(void)max;
	for (uint32_t i = 0; kind == STORE_DRAW && i < of(s)->record_count; i++)
		record(ctx, &(struct store_record){.kind = kind, .draw = of(s)->records[i]});
	return 0;
}

static bool put(struct store *s, const struct store_record *record)
{
	struct opening *o = of(s);
	if (o->pending_count == sizeof(o->pending) / sizeof(o->pending[0]))
		return false;
	o->pending[o->pending_count++] = *record;
	return true;
}

static void poll(struct store *s, uint64_t now_ms)
{
	(void)s, (void)now_ms;
}

// What is drawn once is never drawn otherwise.
static void remember(struct opening *o, const struct store_draw *draw)
{
	uint32_t i = 0;
	while (i < o->history_count && o->history[i].number != draw->number)
		i++;
	if (i == OPENING_RECORDS_MAX)
		abort();
	if (i < o->history_count &&
		(draw->base != o->history[i].base || draw->count != o->history[i].count ||
			memcmp(draw->list_sha256, o->history[i].list_sha256,
				sizeof(draw->list_sha256)) != 0))
		abort();
	o->history_count += i == o->history_count;
	o->history[i] = *draw;
}

static void keep(struct opening *o, const struct store_record *record)
{
	if (record->kind == STORE_DOORS) {
		o->doors = record->doors;
		return;
	}
	uint32_t i = 0;
	while (i < o->record_count && o->records[i].number != record->draw.number)
		i++;
	if (record->kind == STORE_DRAW_FORGOTTEN && i < o->record_count)
		memmove(&o->records[i], &o->records[i + 1],
			(--o->record_count - i) * sizeof(o->records[0]));
	if (record->kind != STORE_DRAW)
		return;
	if (i == OPENING_RECORDS_MAX)
		abort();
	o->record_count += i == o->record_count;
	o->records[i] = record->draw;
	if (record->draw.is_drawn)
		remember(o, &record->draw);
}

static void commit(struct store *s, uint64_t now_ms)
{
	struct opening *o = of(s);
	(void)now_ms;
	for (uint32_t i = 0; i < o->pending_count; i++)
		keep(o, &o->pending[i]);
	o->pending_count = 0;
	s->status.commits_total++;
}

static const struct store_ops ops = {.load = load, .put = put, .begin = commit, .poll = poll};

// --- what draws touch

static uint64_t barrier_begin(void *ctx)
{
	struct opening *o = ctx;
	return ++o->barriers;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	const struct opening *o = ctx;
	return token <= o->passed;
}

static void fill_random(void *ctx, uint8_t *bytes, uint32_t count)
{
	struct opening *o = ctx;
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)random_next(&o->random);
}

static void say(void *ctx, uint32_t line_id, const char *text)
{
	(void)ctx, (void)line_id, (void)text;
}

// --- the process

uint64_t opening_now(const struct opening *o)
{
	return clock_at(&o->clock, o->monotonic_ms * 1000);
}

static uint64_t system_ms(const struct opening *o)
{
	return (uint64_t)((int64_t)o->monotonic_ms + o->system_off_ms);
}

void opening_begin(struct opening *o, uint64_t begin_ms)
{
	job_random = o->random;
	o->store.ops = &ops;
	o->monotonic_ms = 1000000;
	o->system_off_ms = (int64_t)(begin_ms - o->monotonic_ms);
	const char *base = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(o->folder, sizeof(o->folder), "%s/sluice-sim-XXXXXX", base);
	o->line = calloc(1, place_line_bytes(ENTRIES));
	if (!o->line || !mkdtemp(o->folder))
		abort();
	place_line_init(o->line, LINE_ID, ENTRIES);
}

static void stop(struct opening *o)
{
	controller_destroy(o->controller);
	draws_destroy(o->draws);
	o->controller = NULL;
	o->draws = NULL;
	o->is_up = false;
}

void opening_end(struct opening *o)
{
	char command[128];
	stop(o);
	snprintf(command, sizeof(command), "rm -rf %s", o->folder);
	if (system(command) != 0)
		abort();
	free(o->line);
}

void opening_kill(struct opening *o)
{
	const struct gather_ids *ids = atomic_load(&draws_gather(o->gatherings)->open);
	if (random_below(&o->random, 2))
		commit(&o->store, 0);
	o->pending_count = 0;
	if (ids && random_below(&o->random, 2)) // amidst a join
		atomic_fetch_add(&((struct gather_ids *)(uintptr_t)ids)->taken, 1);
	stop(o);
}

void opening_start(struct opening *o)
{
	const struct draws_plan plan = {.folder = o->folder};
	const struct draws_seams seams = {.ctx = o,
		.barrier_begin = barrier_begin,
		.barrier_passed = barrier_passed,
		.random = fill_random,
		.say = say};
	const struct controller_bounds bounds = {
		.sessions_max = 4096, .present_max = 1024, .left_max = 64, .seed = 5};
	clock_init(&o->clock, o->last_ms, o->monotonic_ms * 1000, system_ms(o));
	atomic_store(&o->line->drawn, NULL); // as opening the file does
	if (draws_create(&plan, &o->store, &seams, &o->draws) < 0)
		abort();
	o->gatherings = draws_take(o->draws, LINE_ID, o->line, true);
	const uint64_t now_ms = opening_now(o);
	bool has_begun = place_begin(o->line, now_ms / PLACE_SLOT_MS);
	o->controller = controller_create(&o->limits, &bounds, o->line, now_ms);
	assert(o->gatherings && has_begun && o->controller);
	o->schedule = (struct schedule){
		.opened_ms = o->doors.opened_ms, .opened_at_ms = o->doors.opened_at_ms};
	schedule_set(&o->schedule, o->events, o->event_count);
	o->passed = o->barriers; // there are no workers yet
	o->draws_total = 0;
	o->room = (struct gate_room){.name = {"derby", 5},
		.line_id = LINE_ID,
		.queue_status = 200,
		.session_s = o->limits.session_s,
		.ticket_ttl_s = 86400,
		.line_max = UINT64_MAX,
		.state = GATE_BEFORE, // until the first turn, before which nobody asks
		.line = o->line,
		.gather = draws_gather(o->gatherings)};
	o->is_up = true;
	opening_turn(o);
}

static void save_doors(struct opening *o)
{
	store_put(&o->store, &(struct store_record){.kind = STORE_DOORS,
				     .doors = {.line_id = LINE_ID,
					     .opened_ms = o->schedule.opened_ms,
					     .opened_at_ms = o->schedule.opened_at_ms}});
}

void opening_command(struct opening *o)
{
	if (schedule_open(&o->schedule, opening_now(o)))
		save_doors(o);
	commit(&o->store, 0); // answered when the store has it
}

// As doors.c does it. Returns what it wishes.
static struct draws_wish look(struct opening *o, uint64_t now_ms)
{
	static const uint8_t salt[] = "salt";
	struct draws_view draws;
	draws_look(o->gatherings, &draws);
	if (draws.draws_total != o->draws_total)
		controller_forget_told(o->controller, now_ms);
	o->draws_total = draws.draws_total;
	const uint64_t opened_ms = o->schedule.opened_ms;
	o->view = schedule_look(&o->schedule, now_ms);
	if (o->schedule.opened_ms != opened_ms)
		save_doors(o);
	const uint64_t key = wishes_lapsed(&o->schedule, &o->view, &draws);
	if (atomic_load(&o->line->floor) < key)
		controller_lapse(o->controller, key, now_ms);
	const struct schedule_event *event = o->view.event >= 0 ? &o->events[o->view.event] : NULL;
	struct controller_view line;
	controller_look(o->controller, now_ms, &line);
	const struct wishes_input in = {.config = &o->config,
		.may_gather = true,
		.event = event,
		.doors = o->view,
		.draws = &draws,
		.line = &line,
		.gathered_max = o->gathered_max,
		.salt = salt,
		.salt_bytes = 4,
		.now_ms = now_ms};
	o->room.state = wishes_state(&in);
	uint64_t opens_ms = event ? event->opens_ms : 0;
	if (o->view.doors == SCHEDULE_OPEN)
		opens_ms = wishes_is_stale(&in) ? now_ms + 1000 : o->schedule.opened_at_ms;
	o->room.opens_s = o->room.state == GATE_BEFORE ? (uint32_t)(opens_ms / 1000) : 0;
	return wishes_make(&in);
}

// Whether the process ends before the next step.
static bool ends(struct opening *o)
{
	return o->ends_before > 0 && --o->ends_before == 0;
}

static void take_steps(struct opening *o, uint64_t now_ms)
{
	const struct controller_change *changes;
	draws_turn(o->draws, now_ms);
	if (ends(o))
		return opening_kill(o);
	const struct draws_wish wish = look(o, now_ms);
	if (ends(o))
		return opening_kill(o);
	draws_wish(o->gatherings, &wish, now_ms);
	if (ends(o))
		return opening_kill(o);
	controller_set_available(o->controller, o->room.state == GATE_OPEN, now_ms);
	controller_tick(o->controller, now_ms);
	controller_changes(o->controller, &changes);
	if (ends(o))
		return opening_kill(o);
	store_begin(&o->store, now_ms);
	if (ends(o))
		return opening_kill(o);
	controller_publish(o->controller, false, now_ms);
}

void opening_turn(struct opening *o)
{
	clock_slew(&o->clock, o->monotonic_ms * 1000, system_ms(o));
	const uint64_t now_ms = opening_now(o);
	assert(now_ms >= o->last_ms);
	o->last_ms = now_ms;
	if (random_below(&o->random, 3) > 0) // every worker has passed by
		o->passed = o->barriers;
	take_steps(o, now_ms);
}

void opening_decide(struct opening *o, enum gate_route route, const struct token *ticket,
	uint64_t fresh_visitor, struct decision *decision)
{
	static const struct gate_site site = {.name = {"shop", 4}};
	static struct gate_request request;
	struct claim_answer said;
	const uint64_t now_ms = opening_now(o);
	struct decide_input input = {.request = &request,
		.now_ms = now_ms,
		.now_s = (uint32_t)(now_ms / 1000),
		.fresh_visitor = fresh_visitor,
		.random = (uint32_t)random_next(&o->random)};
	memset(&request, 0, sizeof(request));
	request.route = route;
	request.method = HTTP_GET;
	request.draws = route == GATE_ROUTE_GUARDED;
	request.site = &site;
	request.room = &o->room;
	if (ticket) {
		request.token_count = 1;
		request.tokens[0] = (struct gate_token){
			.carried = {.carrier = CARRY_COOKIE, .kind = TOKEN_TICKET},
			.state = GATE_TOKEN_VALID,
			.token = *ticket};
		request.ticket = &request.tokens[0];
	}
	decide(&input, decision);
	if (decision->action != DECIDE_CLAIM)
		return;
	decision->claim.sent_ms = now_ms;
	controller_claim(
		o->controller, &decision->claim, random_next(&o->random) | 1, now_ms, &said);
	said.line_id = LINE_ID;
	input.answer = &said;
	decide(&input, decision);
}
