// Doors. Each turn, for each room that has any: where in its schedule it is, what its configuration
// is therefore, what is to be drawn, and whether workers must hear of it.

#include "controlplane/doors.h"

#include "controlplane/appliance/appliance.h"
#include "controlplane/engine.h"
#include "controlplane/log.h"
#include "controlplane/reload.h"
#include "controlplane/rooms.h"
#include "controlplane/schedule/wishes.h"
#include "controlplane/turn.h"
#include "dataplane/gate/place.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void seam_random(void *ctx, uint8_t *bytes, uint32_t count)
{
	(void)ctx;
	while (getrandom(bytes, count, 0) != (ssize_t)count)
		;
}

static void seam_say(void *ctx, uint32_t line_id, const char *text)
{
	const struct control_room *room = rooms_find_line(ctx, line_id);
	log_info("room %s: %s", room ? room->config->name : "?", text);
}

// Lines of rooms that are gone stay in the file of places as long as any ticket of theirs may be
// good (rooms_give_back()), and their draws with them.
static bool is_line_known(void *ctx, uint32_t line_id)
{
	const struct control *c = ctx;
	const struct place_line *line;
	for (uint32_t next = 0; (line = place_file_next(c->places, &next));)
		if (line->line_id == line_id)
			return true;
	return false;
}

int doors_create(struct control *c)
{
	const struct draws_plan plan = {.folder = c->started->state};
	const struct draws_seams seams = {.ctx = c,
		.barrier_begin = turn_seams.barrier_begin,
		.barrier_passed = turn_seams.barrier_passed,
		.random = seam_random,
		.say = seam_say};
	int ret = draws_create(&plan, c->store, &seams, &c->draws);
	if (ret == 0 && c->appliance)
		appliance_share_draws(c);
	else if (ret == 0)
		draws_forget_others(c->draws, is_line_known, c);
	return ret;
}

static int by_opening(const void *a, const void *b)
{
	const struct config_event *x = *(const struct config_event *const *)a;
	const struct config_event *y = *(const struct config_event *const *)b;
	return (x->opens_s > y->opens_s) - (x->opens_s < y->opens_s);
}

static struct schedule_event event_of(uint64_t opens_s, uint64_t closes_s, uint64_t prequeue_s)
{
	uint64_t before_s = prequeue_s < opens_s ? prequeue_s : opens_s;
	return (struct schedule_event){.gathers_ms = (opens_s - before_s) * 1000,
		.opens_ms = opens_s * 1000,
		.closes_ms = closes_s * 1000};
}

int doors_set(struct control_room *room)
{
	const struct config_room *config = room->config;
	bool has_own = config->opens_s || config->closes_s;
	uint32_t count = config->events.count ? config->events.count : has_own;
	room->events = calloc(count + 1, sizeof(*room->events));
	room->event_configs = calloc(count + 1, sizeof(*room->event_configs));
	room->event = NULL;
	room->in_force = *config;
	if (!room->events || !room->event_configs) {
		doors_free(room);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < config->events.count; i++)
		room->event_configs[i] = &config->events.at[i];
	qsort(room->event_configs, config->events.count, sizeof(*room->event_configs), by_opening);
	for (uint32_t i = 0; i < config->events.count; i++) {
		const struct config_event *event = room->event_configs[i];
		room->events[i] = event_of(event->opens_s, event->closes_s, event->prequeue_s);
	}
	if (!config->events.count && has_own)
		room->events[0] = event_of(config->opens_s, config->closes_s, config->prequeue_s);
	schedule_set(&room->schedule, room->events, count);
	return 0;
}

void doors_free(struct control_room *room)
{
	free(room->events);
	free(room->event_configs);
	room->events = NULL;
	room->event_configs = NULL;
	schedule_set(&room->schedule, NULL, 0);
}

static void load_doors(void *context, const struct store_record *record)
{
	struct control_room *room = context;
	const struct store_doors *doors = &record->doors;
	if (doors->line_id != room->line_id)
		return;
	room->schedule.opened_ms = doors->opened_ms;
	room->schedule.opened_at_ms = doors->opened_at_ms;
	memcpy(room->salt, doors->salt, sizeof(room->salt));
	room->salt_bytes = doors->salt_bytes;
}

void doors_restore(struct control *c, struct control_room *room)
{
	store_load(c->store, STORE_DOORS, CLAIMS_RESTORE_MAX, load_doors, room);
	room->draws = c->draws ? draws_take(c->draws, room->line_id, room->line,
					 config_room_gathers(room->config))
			       : NULL;
}

static void save_doors(struct control *c, const struct control_room *room)
{
	struct store_record record = {.kind = STORE_DOORS,
		.doors = {.line_id = room->line_id,
			.opened_ms = room->schedule.opened_ms,
			.opened_at_ms = room->schedule.opened_at_ms,
			.salt_bytes = room->salt_bytes}};
	memcpy(record.doors.salt, room->salt, sizeof(record.doors.salt));
	if (!store_put(c->store, &record))
		log_error("room %s: the store took no record of its doors", room->config->name);
}

static uint8_t hex_digit(char digit)
{
	return (uint8_t)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
}

// Bytes of hex that has been checked.
static uint8_t read_salt(const char *hex, uint8_t salt[DRAW_SALT_BYTES_MAX])
{
	size_t bytes = hex ? strlen(hex) / 2 : 0;
	memset(salt, 0, DRAW_SALT_BYTES_MAX);
	for (size_t i = 0; i < bytes; i++)
		salt[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
	return (uint8_t)bytes;
}

static const char *put_salt(const uint8_t *salt, uint8_t bytes)
{
	static char hex[2 * DRAW_SALT_BYTES_MAX + 1];
	for (uint8_t i = 0; i < bytes; i++)
		snprintf(&hex[2 * (size_t)i], 3, "%02x", salt[i]);
	return hex;
}

// The salt that stands for those who gather in a room or one of its lanes, if it is another one.
//   bytes  of `than`; 0: any is another
static const char *named_salt(struct control *c, const struct control_room *room, bool by_doors,
	const uint8_t *than, uint8_t bytes)
{
	for (uint32_t i = 0; i < c->room_count; i++) {
		const struct control_room *r = &c->rooms[i];
		struct draws_view view = {0};
		if ((r == room || r->room == room) && r->draws)
			draws_look(r->draws, &view);
		const bool is_same =
			bytes == view.salt_bytes && bytes && memcmp(than, view.salt, bytes) == 0;
		if (view.salt_bytes > 0 && !is_same &&
			(!by_doors || wishes_is_of_doors(view.epoch)))
			return put_salt(view.salt, view.salt_bytes);
	}
	return NULL;
}

const char *doors_named_salt(void *context, const char *name, uint64_t *now_s)
{
	struct control *c = context;
	const struct control_room *room = rooms_find(c, name);
	*now_s = clock_now_ms(&c->clock) / 1000;
	return room && room->salt_bytes == 0 ? named_salt(c, room, true, NULL, 0) : NULL;
}

int doors_salt(struct control *c, struct control_room *room, const char *hex, const char **named)
{
	uint8_t salt[DRAW_SALT_BYTES_MAX];
	size_t len = strlen(hex);
	if (len == 0 || len % 2 || len > 2 * DRAW_SALT_BYTES_MAX ||
		hex[strspn(hex, "0123456789abcdefABCDEF")])
		return -EINVAL;
	if (!room->draws)
		return -ENOENT;
	const uint8_t bytes = read_salt(hex, salt);
	*named = named_salt(c, room, false, salt, bytes);
	if (*named)
		return -EEXIST;
	memcpy(room->salt, salt, sizeof(room->salt));
	room->salt_bytes = bytes;
	save_doors(c, room);
	return 0;
}

// What is wished for a room's next draw. Returns how many bytes there are.
static uint8_t wished_salt(const struct control_room *room, uint8_t salt[DRAW_SALT_BYTES_MAX])
{
	const struct control_room *whole = room->room ? room->room : room;
	if (whole->salt_bytes == 0)
		return read_salt(room->in_force.salt, salt);
	memcpy(salt, whole->salt, sizeof(whole->salt));
	return whole->salt_bytes;
}

const char *doors_salt_now(const struct control_room *room)
{
	uint8_t salt[DRAW_SALT_BYTES_MAX];
	struct draws_view view = {0};
	if (room->draws)
		draws_look(room->draws, &view);
	if (view.salt_bytes > 0)
		return put_salt(view.salt, view.salt_bytes);
	const uint8_t bytes = wished_salt(room, salt);
	return bytes ? put_salt(salt, bytes) : NULL;
}

bool doors_open(struct control *c, struct control_room *room)
{
	uint64_t now_ms = clock_now_ms(&c->clock);
	if (!schedule_open(&room->schedule, now_ms))
		return false;
	save_doors(c, room);
	return true;
}

// --- each turn

static const struct config_event *event_now(const struct control_room *room)
{
	bool is_on = room->doors.event >= 0 && (room->doors.doors == SCHEDULE_OPEN ||
						       room->doors.doors == SCHEDULE_GATHERING);
	return is_on ? room->event_configs[room->doors.event] : NULL;
}

static const struct schedule_event *coming(const struct control_room *room)
{
	return room->doors.event >= 0 ? &room->events[room->doors.event] : NULL;
}

// How the line stands, if that is asked.
static const struct controller_view *line_of(struct control *c, const struct control_room *room,
	const struct draws_view *view, uint64_t now_ms)
{
	static struct controller_view now;
	now = (struct controller_view){0};
	if (view->joined > 0 && room->in_force.window.people > 0)
		c->engine->look(c, room, now_ms, &now);
	return &now;
}

static struct wishes_input input_of(struct control *c, const struct control_room *room,
	const struct draws_view *view, uint64_t now_ms)
{
	return (struct wishes_input){.config = &room->in_force,
		.may_gather = config_room_gathers(room->config),
		.event = coming(room),
		.doors = room->doors,
		.draws = view,
		.line = line_of(c, room, view, now_ms),
		.gathered_max = c->config->gathered_max,
		.now_ms = now_ms};
}

static void wish(const struct control_room *room, struct wishes_input *in)
{
	uint8_t salt[DRAW_SALT_BYTES_MAX];
	in->salt_bytes = wished_salt(room, salt);
	in->salt = salt;
	const struct draws_wish wish = wishes_make(in);
	draws_wish(room->draws, &wish, in->now_ms);
}

// What workers must know of the doors. Returns whether it is something else than before.
static bool update_state(struct control_room *room, const struct wishes_input *in)
{
	uint8_t state = wishes_state(in);
	uint32_t opens_s = 0, gathers_s = 0;
	if (state == GATE_BEFORE && in->event) {
		uint64_t at_ms = room->doors.doors == SCHEDULE_OPEN ? room->schedule.opened_at_ms
								    : in->event->opens_ms;
		if (room->doors.doors == SCHEDULE_OPEN && wishes_is_stale(in))
			at_ms = in->now_ms + 1000; // nobody is to stand before those who wait
		opens_s = (uint32_t)(at_ms / 1000);
		gathers_s = (uint32_t)(in->event->gathers_ms / 1000);
	}
	bool has_changed = state != room->doors_state || opens_s != room->opens_s ||
			   gathers_s != room->gathers_s;
	room->doors_state = state;
	room->opens_s = opens_s;
	room->gathers_s = gathers_s;
	return has_changed;
}

void doors_look(struct control *c, struct control_room *room, uint64_t now_ms)
{
	struct draws_view view = {0};
	if (room->draws)
		draws_look(room->draws, &view);
	room->doors = schedule_look(&room->schedule, now_ms);
	room->event = event_now(room);
	room->in_force = config_room_during(room->config, room->event);
	const struct wishes_input in = input_of(c, room, &view, now_ms);
	update_state(room, &in);
}

static bool update_event(struct control_room *room)
{
	const struct config_event *event = event_now(room);
	if (event == room->event)
		return false;
	room->event = event;
	room->in_force = config_room_during(room->config, event);
	return true;
}

// Returns whether workers must hear of it.
static bool look_at_draws(struct control *c, struct control_room *room, uint64_t now_ms)
{
	struct draws_view view;
	draws_look(room->draws, &view);
	if (view.draws_total == room->draws_total)
		return false;
	room->draws_total = view.draws_total;
	controller_forget_told(room->controller, now_ms);
	if (room->salt_bytes == 0 || !draws_had_salt(room->draws, room->salt, room->salt_bytes))
		return false;
	room->salt_bytes = 0; // it was for this one
	save_doors(c, room);
	if (c->appliance)
		appliance_salt_used(c, room);
	return true;
}

static bool key_of_left(void *ctx, uint64_t number, uint64_t visitor, uint64_t *key)
{
	return draws_key(ctx, number, visitor, key);
}

// Returns whether workers must hear of it.
static bool turn_room(struct control *c, struct control_room *room, uint64_t now_ms)
{
	struct draws_view view = {0};
	uint64_t opened_ms = room->schedule.opened_ms;
	uint8_t state = rooms_state(room);
	bool has_changed = room->draws && look_at_draws(c, room, now_ms);
	if (room->room) { // a lane's doors are its room's
		room->schedule.opened_ms = room->room->schedule.opened_ms;
		room->schedule.opened_at_ms = room->room->schedule.opened_at_ms;
		opened_ms = room->schedule.opened_ms;
	}
	room->doors = schedule_look(&room->schedule, now_ms);
	if (room->schedule.opened_ms != opened_ms)
		save_doors(c, room);
	if (room->draws)
		draws_look(room->draws, &view);
	if (room->draws)
		controller_drawn(room->controller, key_of_left, room->draws);
	uint64_t key = wishes_lapsed(&room->schedule, &room->doors, &view);
	if (atomic_load(&room->line->floor) < key)
		c->engine->lapse(c, room, key, now_ms);
	has_changed |= update_event(room);
	struct wishes_input in = input_of(c, room, &view, now_ms);
	if (room->draws)
		wish(room, &in);
	has_changed |= update_state(room, &in);
	if (!has_changed)
		return false;
	rooms_apply(c, room);
	if (rooms_state(room) != state)
		log_info("room %s: %s", room->config->name, rooms_state_names[rooms_state(room)]);
	return true;
}

void doors_turn(struct control *c, uint64_t now_ms)
{
	bool has_changed = false;
	if (c->appliance)
		appliance_see_draws(c);
	draws_turn(c->draws, now_ms);
	for (uint32_t i = 0; i < c->room_count; i++)
		if (c->rooms[i].schedule.count > 0 || c->rooms[i].draws)
			has_changed |= turn_room(c, &c->rooms[i], now_ms);
	if (has_changed)
		reload_snapshot(c);
}
