// Link, member, conductor and what is shared, tied together. The link's events and the engine's
// turns are the only ways in; what member and shared want done comes back by their seams.
//
// A reply is followed by a turn at once, so that claims that came while a batch was in flight wait
// no longer than that. Snapshots that records ask for are made when the member is about to say that
// its workers go by them (barrier), not one for each.

#include "controlplane/appliance/inside.h"

#include "controlplane/link/link_password.h"
#include "controlplane/log.h"
#include "controlplane/reload.h"
#include "controlplane/rooms.h"
#include "controlplane/turn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#define SOUND_US 2000000u // without a failure: it is over
#define ARGS_MAX (LEDGER_WIRE_ARGS_BATCH + LEDGER_ENTRIES_MAX * LEDGER_WIRE_ARGS_ENTRY)
#define TEXT_MAX (LEDGER_WIRE_BYTES_BATCH + LEDGER_ENTRIES_MAX * LEDGER_WIRE_BYTES_ENTRY)
#define KNOWN_MAX (1u << 21) // of all rooms; some 110 bytes each
#define LEAVE_MS 2000u // for the goodbye to be taken

bool appliance_is_wanted(const struct config *config)
{
	return config->store.kind != CONFIG_STORE_EMBEDDED;
}

// --- what is noted for the next start

static void take_note(struct control *c, bool is_lasting)
{
	struct appliance *a = c->appliance;
	const char *path = state_path(c->state, STATE_APPLIANCE);
	const int ret = note_write(path, c->started->cluster->appliance, &a->note, is_lasting);
	if (ret < 0 && !a->has_no_note)
		log_warning("%s: %s: after a restart it will not be known who this was", path,
			strerror(-ret));
	a->has_no_note = ret < 0;
}

static void note_heard(struct control *c, uint64_t time_ms)
{
	struct appliance *a = c->appliance;
	const uint64_t before = a->note.peers;
	for (uint32_t i = 0; i < a->status.member_count; i++)
		a->note.peers |= UINT64_C(1) << a->status.members[i].number;
	// A note of the future is none: the difference is large then.
	if (time_ms - a->note.heard_ms < NOTE_EVERY_MS && a->note.peers == before)
		return;
	a->note.heard_ms = time_ms;
	take_note(c, false);
}

// --- what the member wants done

static uint64_t seam_barrier_begin(void *ctx)
{
	struct control *c = ctx;
	if (c->appliance->is_snapshot_due && !c->appliance->is_joining) {
		c->appliance->is_snapshot_due = false;
		reload_snapshot(c);
	}
	return turn_seams.barrier_begin(c);
}

static bool seam_send(void *ctx, const struct ledger_batch *batch)
{
	struct control *c = ctx;
	struct appliance *a = c->appliance;
	const bool fits = ledger_wire_batch(batch, a->prefix, &a->args);
	assert(fits); // ARGS_MAX and TEXT_MAX are enough for every batch
	if (link_send(a->link, 1, a->args.count, a->args.argv, a->args.lengths) < 0)
		return false;
	a->sent_us = clock_monotonic_us();
	a->sent_ms = clock_at(&c->clock, a->sent_us);
	return true;
}

static void seam_time(void *ctx, const struct member_time *time)
{
	struct control *c = ctx;
	struct appliance *a = c->appliance;
	if (!time->is_skewed)
		note_heard(c, time->time_ms);
	if (!time->is_sound)
		return;
	const struct clock_reply reply = {.sent_us = a->sent_us,
		.received_us = a->received_us,
		.ms = time->time_ms,
		.is_skewed = time->is_skewed};
	if (!a->has_begun)
		clock_join(&c->clock, &reply);
	else if (a->is_joining)
		clock_join_again(&c->clock, &reply);
	else
		clock_follow(&c->clock, &reply);
	a->has_begun = true;
	atomic_store(&c->words.clock_offset_ms, c->clock.offset_ms);
}

static void seam_numbered(void *ctx, uint8_t appliance)
{
	struct control *c = ctx;
	struct appliance *a = c->appliance;
	atomic_store(&c->words.appliance, appliance);
	if (appliance == a->note.number)
		return;
	log_info("appliance %s has number %u", c->started->cluster->appliance, appliance);
	a->note.number = appliance;
	take_note(c, true);
}

static void seam_record(void *ctx, uint8_t type, uint32_t id, const uint8_t *bytes, uint32_t len)
{
	struct control *c = ctx;
	shared_take(c->appliance->shared, type, id, bytes, len);
}

static void seam_recorded(void *ctx, uint8_t type, uint32_t id, enum ledger_verdict verdict)
{
	struct control *c = ctx;
	if (verdict != LEDGER_FULL)
		return;
	c->appliance->full_us = clock_monotonic_us();
	log_error("the cluster's store has no room for record %u of type %u", id, type);
}

static void seam_resynced(void *ctx)
{
	struct control *c = ctx;
	shared_resynced(c->appliance->shared);
}

static bool seam_restore(void *ctx)
{
	struct control *c = ctx;
	const struct appliance *a = c->appliance;
	const bool are_codes_told =
		!a->is_code_due && !a->is_code_asked && (!a->is_code_unknown || a->is_code_late);
	return shared_restore(a->shared) && are_codes_told && appliance_draws_are_restored(c);
}

static uint32_t seam_offer(void *ctx, struct ledger_entry *entries, uint32_t max)
{
	const uint32_t codes = appliance_code_offer(ctx, entries, max);
	return codes + appliance_draws_offer(ctx, entries + codes, max - codes);
}

static void seam_offered(
	void *ctx, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	if (entry->kind == LEDGER_CODE)
		appliance_code_offered(ctx, entry, answer);
	else
		appliance_draws_offered(ctx, entry, answer);
}

// --- what is shared

static bool seam_put(void *ctx, const struct ledger_record *record)
{
	struct control *c = ctx;
	return member_put_record(c->appliance->member, record);
}

static void seam_keys(void *ctx)
{
	struct control *c = ctx;
	c->appliance->is_snapshot_due = true;
}

static void save_room(struct control *c, const struct shared_room *said)
{
	const struct store_record record = {.kind = STORE_ROOM,
		.room = {.line_id = said->line_id,
			.state = said->state,
			.mode = said->mode,
			.message = said->message}};
	if (!store_put(c->store, &record))
		log_error("the own store took no record of a command of the cluster");
}

// A room that is not configured here may be some day.
static void seam_room(void *ctx, const struct shared_room *said)
{
	struct control *c = ctx;
	struct control_room *room = rooms_find_line(c, said->line_id);
	save_room(c, said);
	if (!room)
		return;
	room->state_override = said->state;
	room->mode_override = said->mode;
	memcpy(room->message, said->message, sizeof(room->message));
	memcpy(room->salt, said->salt, sizeof(room->salt));
	room->salt_bytes = said->salt_bytes;
	if (said->opened_ms > room->schedule.opened_ms) {
		room->schedule.opened_ms = said->opened_ms;
		room->schedule.opened_at_ms = said->opened_at_ms;
	}
	rooms_apply(c, room);
	c->appliance->is_snapshot_due = true;
}

static void seam_release(void *ctx, uint32_t line_id, uint64_t people)
{
	struct control *c = ctx;
	if (c->appliance->status.office.is_in_office)
		member_release(c->appliance->member, line_id, people);
}

static void seam_say(void *ctx, const char *text)
{
	(void)ctx;
	log_error("%s", text);
}

// --- what the link tells

void appliance_look(struct control *c)
{
	struct appliance *a = c->appliance;
	member_status(a->member, &a->status);
	if (a->status.is_resyncing && !a->was_resyncing)
		shared_resync_begins(a->shared);
	a->was_resyncing = a->status.is_resyncing;
	const uint64_t skew_ms = (uint64_t)llabs(a->status.skew_ms);
	if (!a->is_joining && !a->status.is_away && skew_ms > a->skew_max_ms)
		a->skew_max_ms = skew_ms;
}

static void on_ready(void *context, const struct link_status *status, bool is_other)
{
	struct control *c = context;
	if (c->appliance->failures == 0)
		log_info("store: connected to %s (Redis %s)%s", status->primary,
			status->server.version, is_other ? "" : ", as before");
	for (uint32_t i = 0; is_other && i < status->warnings.count; i++)
		log_warning("store: %s", status->warnings.texts[i]);
	member_connected(c->appliance->member, status->server.run_id, clock_now_ms(&c->clock));
	appliance_look(c);
}

static void on_lost(void *context, const char *reason)
{
	struct control *c = context;
	if (c->appliance->failures == 0)
		log_warning("store: connection lost: %s", reason);
	member_lost(c->appliance->member, clock_now_ms(&c->clock));
	appliance_look(c);
}

// Nothing can be gone by that this store says: no memory there, a full disk, keys that somebody
// else has written. It is asked again, less and less often (link.h), and said when it begins, when
// it is something else, and when it is over.
static void fail(struct appliance *a, const char *what)
{
	static const char damaged[] = "DAMAGED ";
	char text[APPLIANCE_FAILURE_BYTES];
	if (strncmp(what, damaged, strlen(damaged)) == 0)
		snprintf(text, sizeof(text),
			"damaged key %.160s: restore it, or delete it and %smeta: then the "
			"appliances write back what they know",
			what + strlen(damaged), a->prefix);
	else
		snprintf(text, sizeof(text), "its script fails: %.160s", what);
	if (strcmp(a->failure, text) != 0)
		log_error("store: %s", text);
	memcpy(a->failure, text, sizeof(text));
	a->failures++;
	a->failed_us = clock_monotonic_us();
	link_drop(a->link, "says what cannot be gone by");
}

// A batch that does not touch the damaged key is answered: that says nothing yet.
static void fail_no_more(struct appliance *a)
{
	if (a->failures == 0 || a->received_us < a->failed_us + SOUND_US)
		return;
	log_info("store: can be gone by again, after %" PRIu64 " tries that failed", a->failures);
	a->failures = 0;
	a->failure[0] = '\0';
}

static void on_replied(void *context, const redisReply *reply)
{
	struct control *c = context;
	struct appliance *a = c->appliance;
	a->received_us = clock_monotonic_us();
	if (reply->type != REDIS_REPLY_STRING) {
		fail(a, reply->type == REDIS_REPLY_ERROR ? reply->str : "no text");
		return;
	}
	if (!member_reply(a->member, reply->str, reply->len, a->sent_ms,
		    clock_at(&c->clock, a->received_us))) {
		fail(a, "its reply cannot be read");
		return;
	}
	fail_no_more(a);
	appliance_look(c);
	if (c->wake)
		event_active(c->wake, EV_READ, 0); // claims may wait
	else
		member_turn(a->member, clock_now_ms(&c->clock));
}

static void on_subscribed(void *context)
{
	(void)context; // what was published before comes with the next reply
}

static void on_told(void *context, const char *message, size_t bytes)
{
	struct control *c = context;
	if (!member_news(c->appliance->member, message, bytes, clock_now_ms(&c->clock)))
		link_drop(c->appliance->link, "tells what cannot be read");
	appliance_look(c);
}

// --- begin and end

static int make_args(struct appliance *a)
{
	a->args = (struct ledger_wire_args){.argv = calloc(ARGS_MAX, sizeof(char *)),
		.lengths = calloc(ARGS_MAX, sizeof(size_t)),
		.max = ARGS_MAX,
		.text = malloc(TEXT_MAX),
		.text_max = TEXT_MAX};
	return a->args.argv && a->args.lengths && a->args.text ? 0 : -ENOMEM;
}

static int make_link(struct control *c)
{
	static const struct link_events events = {.ready = on_ready,
		.lost = on_lost,
		.replied = on_replied,
		.subscribed = on_subscribed,
		.told = on_told};
	struct appliance *a = c->appliance;
	char password[LINK_PASSWORD_BYTES_MAX + 1] = "";
	const char *path = c->started->store_password_file;
	const char *error = path ? link_password_read(path, password) : NULL;
	if (error) {
		log_error("%s", error);
		return -EACCES;
	}
	const struct link_options options = {.store = &c->started->store,
		.password = path ? password : NULL,
		.channel = a->channel,
		.script = ledger_wire_script,
		.script_bytes = ledger_wire_script_bytes};
	const int ret = link_create(c->base, &options, &events, c, &a->link);
	explicit_bzero(password, sizeof(password));
	return ret;
}

static uint32_t known_max(const struct config *config)
{
	const uint64_t most = config_line_count(config) * (config->sessions_max + config->left_max);
	return most < KNOWN_MAX ? (uint32_t)most : KNOWN_MAX;
}

static struct member_plan plan_of(const struct config *config, uint32_t worker_count)
{
	return (struct member_plan){.lines_max = MEMBER_LINES_MAX,
		.nodes_max = MEMBER_NODES_MAX,
		.workers_max = worker_count,
		.known_max = known_max(config)};
}

uint64_t appliance_bytes(const struct config *config, uint32_t worker_count)
{
	const struct member_plan plan = plan_of(config, worker_count);
	const uint64_t args = ARGS_MAX * (sizeof(char *) + sizeof(size_t)) + TEXT_MAX;
	return sizeof(struct appliance) + args + member_bytes(&plan) +
	       config_line_count(config) * conductor_node_bytes((uint32_t)config->left_max);
}

uint64_t appliance_link_bytes(void)
{
	return LINK_BATCH_BYTES_MAX + 2ull * LINK_REPLY_BYTES_MAX; // news come by another
}

static int make_member(struct control *c)
{
	struct appliance *a = c->appliance;
	struct member_seams seams = {.ctx = c,
		.answer = turn_seams.answer,
		.barrier_begin = seam_barrier_begin,
		.barrier_passed = turn_seams.barrier_passed,
		.session_id = turn_seams.session_id,
		.send = seam_send,
		.time = seam_time,
		.numbered = seam_numbered,
		.record = seam_record,
		.recorded = seam_recorded,
		.resynced = seam_resynced,
		.restore = seam_restore,
		.code = appliance_code,
		.code_answered = appliance_code_answered,
		.offer = seam_offer,
		.offered = seam_offered,
		.gathered = appliance_draws_gathered,
		.drawn_before = appliance_draws_before};
	struct member_plan plan = plan_of(c->started, c->worker_count);
	plan.incarnation = turn_seams.session_id(c);
	plan.appliance = a->note.number;
	plan.heard_ms = note_heard_until(&a->note);
	plan.peers = a->note.peers;
	plan.sync_ms = (uint32_t)c->started->cluster->sync_ms;
	plan.seed = turn_seams.session_id(c);
	snprintf(plan.name, sizeof(plan.name), "%s", c->started->cluster->appliance);
	const struct member_sets sets = {c->words.ended, c->words.left};
	a->member = member_create(&plan, &sets, &seams, clock_now_ms(&c->clock));
	return a->member ? 0 : -ENOMEM;
}

int appliance_create(struct control *c)
{
	const struct shared_seams seams = {.ctx = c,
		.put = seam_put,
		.keys = seam_keys,
		.room = seam_room,
		.release = seam_release,
		.draw = appliance_draws_told,
		.say = seam_say};
	const struct config_cluster *cluster = c->started->cluster;
	char error[SEAL_TEXT_BYTES] = "no memory";
	struct appliance *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	c->appliance = a;
	c->engine = &appliance_engine;
	a->note = note_read(
		state_path(c->state, STATE_APPLIANCE), cluster->appliance, clock_now_ms(&c->clock));
	a->is_joining = true;
	snprintf(a->prefix, sizeof(a->prefix), "sluice:{%s}:", cluster->name);
	snprintf(a->channel, sizeof(a->channel), "%snews", a->prefix);
	int ret = seal_create(cluster->key_file, &a->seal, error);
	if (ret < 0) {
		log_error("%s", error);
		return ret;
	}
	a->shared = shared_create(a->seal, c->secrets, c->tickets, &seams);
	if (!a->shared || make_args(a) < 0)
		return -ENOMEM;
	if ((ret = make_member(c)) < 0)
		return ret;
	return make_link(c);
}

void appliance_leave(struct control *c)
{
	if (c->appliance->is_leaving)
		return;
	c->appliance->is_leaving = true;
	c->appliance->left_us = clock_monotonic_us();
	member_goodbye(c->appliance->member);
}

bool appliance_has_left(const struct control *c)
{
	const struct appliance *a = c->appliance;
	return a->status.is_gone || a->status.is_away ||
	       clock_monotonic_us() > a->left_us + LEAVE_MS * 1000ull;
}

void appliance_destroy(struct control *c)
{
	struct appliance *a = c->appliance;
	if (!a)
		return;
	link_destroy(a->link);
	member_destroy(a->member);
	shared_destroy(a->shared);
	seal_destroy(a->seal);
	free(a->args.argv);
	free(a->args.lengths);
	free(a->args.text);
	free(a);
	c->appliance = NULL;
}
