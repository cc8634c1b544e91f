// Rooms: each has a line in the places file and a controller. What commands change (state, mode,
// message) is kept in the store and stands over the configuration until a command says otherwise.

#include "controlplane/rooms.h"

#include "controlplane/doors.h"
#include "controlplane/engine.h"
#include "controlplane/log.h"
#include "controlplane/pools.h"
#include "controlplane/reload.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define LATER_MAX 4096u // claims put off at once, a room

static int compare_rooms(const void *a, const void *b)
{
	const struct control_room *x = a, *y = b;
	if (!x->lane != !y->lane)
		return x->lane ? 1 : -1;
	return strcmp(x->name, y->name);
}

const char *const rooms_mode_names[] = {[GATE_MODE_AUTO] = "auto",
	[GATE_MODE_ALWAYS] = "always",
	[GATE_MODE_OFF] = "off",
	[GATE_MODE_REJECT] = "reject",
	[GATE_MODE_PEAK] = "peak"};

const char *const rooms_state_names[] = {[GATE_OPEN] = "open",
	[GATE_PAUSED] = "paused",
	[GATE_CLOSED] = "closed",
	[GATE_BEFORE] = "before"};

uint8_t rooms_state(const struct control_room *room)
{
	room = room->room ? room->room : room;
	return room->state_override == STORE_AS_CONFIGURED ? room->doors_state
							   : room->state_override;
}

const struct config_room *rooms_config(const struct control_room *room)
{
	return &room->in_force;
}

uint8_t rooms_mode(const struct control_room *room)
{
	static const uint8_t modes[] = {[CONFIG_MODE_AUTO] = GATE_MODE_AUTO,
		[CONFIG_MODE_ALWAYS] = GATE_MODE_ALWAYS,
		[CONFIG_MODE_OFF] = GATE_MODE_OFF,
		[CONFIG_MODE_REJECT] = GATE_MODE_REJECT,
		[CONFIG_MODE_PEAK] = GATE_MODE_PEAK};
	room = room->room ? room->room : room;
	const uint8_t said = room->mode_override;
	const struct config_room *config = rooms_config(room);
	const bool holds =
		said != STORE_AS_CONFIGURED && (said != GATE_MODE_PEAK || config->inflow.count > 0);
	return holds ? said : modes[config->mode];
}

struct controller_limits rooms_limits(const struct control_room *room)
{
	const uint8_t mode = rooms_mode(room);
	const struct config_room *config = rooms_config(room);
	struct controller_limits limits = {.capacity = (uint32_t)config->capacity,
		.rate_count = (uint32_t)config->rate.count,
		.rate_period_ms = (uint32_t)config->rate.period_ms,
		.burst = (uint32_t)config->burst,
		.session_s = (uint32_t)config->session_s,
		.claim_s = (uint32_t)config->claim_s,
		.sliding = config->sliding,
		.direct = mode == GATE_MODE_AUTO || mode == GATE_MODE_PEAK};
	if (config->batch_spread) {
		limits.rate_count = (uint32_t)config->batch.count;
		limits.rate_period_ms = (uint32_t)config->batch.period_ms;
		limits.burst = 1;
	} else {
		limits.batch_count = (uint32_t)config->batch.count;
		limits.batch_period_ms = (uint32_t)config->batch.period_ms;
	}
	if (mode == GATE_MODE_PEAK)
		limits.inflow = (uint32_t)config->inflow.count;
	// Where nothing else says how fast the line moves, it is let in from the inflow, and first.
	if (limits.inflow > 0 && limits.rate_count == 0 && limits.batch_count == 0) {
		limits.batch_count = limits.inflow;
		limits.batch_period_ms = (uint32_t)config->inflow.period_ms;
	}
	return limits;
}

// Lines of a room with lanes share what the room has (pools.c).
struct controller_limits rooms_line_limits(const struct control_room *room)
{
	struct controller_limits limits = rooms_limits(room);
	if (room->config->lanes.count > 0) {
		limits.capacity = limits.rate_count = limits.batch_count = limits.inflow = 0;
		limits.burst = 1;
	}
	return limits;
}

bool rooms_is_still(const struct control_room *room)
{
	return rooms_mode(room) == GATE_MODE_OFF || rooms_mode(room) == GATE_MODE_REJECT;
}

// For hash tables whose keys come from outside.
static uint64_t random_seed(void)
{
	uint64_t seed;
	return getrandom(&seed, sizeof(seed), 0) == sizeof(seed) ? seed : (uint64_t)getpid();
}

static struct control_room *find_line(struct control_room *rooms, uint32_t count, uint32_t line_id)
{
	for (uint32_t i = 0; i < count; i++)
		if (rooms[i].line_id == line_id)
			return &rooms[i];
	return NULL;
}

struct control_room *rooms_find_line(struct control *c, uint32_t line_id)
{
	return find_line(c->rooms, c->room_count, line_id);
}

struct control_room *rooms_find(struct control *c, const char *name)
{
	for (uint32_t i = 0; i < c->room_count; i++)
		if (strcmp(c->rooms[i].name, name) == 0)
			return &c->rooms[i];
	return NULL;
}

// A room of a new configuration, or a lane of it: as it was, or fresh. One that stays keeps its
// controller.
static struct control_room room_of(
	struct control *c, const struct config_room *config, const struct config_lane *lane)
{
	const uint32_t line_id = lane ? lane->line_id : config->line_id;
	struct control_room *before = rooms_find_line(c, line_id);
	struct control_room room = {.line_id = line_id,
		.state_override = STORE_AS_CONFIGURED,
		.mode_override = STORE_AS_CONFIGURED};
	if (before)
		room = *before;
	room.config = config;
	room.lane = lane;
	room.name = lane ? lane->full_name : config->name;
	if (doors_set(&room) < 0)
		abort(); // control without memory for a few events: nothing can go on
	return room;
}

static void keep(struct control_room *room, uint64_t now_ms)
{
	const struct config_room *config = room->config;
	uint64_t life_s =
		config->ticket_ttl_s > config->session_s ? config->ticket_ttl_s : config->session_s;
	atomic_store(&room->line->kept_until_ms, now_ms + life_s * 1000);
}

void rooms_keep(struct control *c, uint64_t now_ms)
{
	for (uint32_t i = 0; i < c->room_count; i++)
		keep(&c->rooms[i], now_ms);
}

static bool has_line(const struct config_room *room, uint32_t line_id)
{
	for (uint32_t i = 0; i < room->lanes.count; i++)
		if (room->lanes.at[i].line_id == line_id)
			return true;
	return room->line_id == line_id;
}

// Whether nothing of the line can be good any more. One that does not say is kept as long as what
// the store knows of such rooms.
static bool line_is_over(struct control *c, struct place_line *line, uint64_t now_ms)
{
	for (uint32_t i = 0; i < c->config->sites.count; i++)
		for (uint32_t j = 0; j < c->config->sites.at[i].rooms.count; j++)
			if (has_line(&c->config->sites.at[i].rooms.at[j], line->line_id))
				return false;
	if (line->kept_until_ms == 0)
		line->kept_until_ms = now_ms + CLAIMS_KEEP_S * 1000ull;
	return line->kept_until_ms <= now_ms;
}

void rooms_give_back(struct control *c)
{
	const uint64_t now_ms = clock_now_ms(&c->clock);
	const uint64_t key = place_key_of_ms(now_ms);
	struct place_line *line;
	for (uint32_t next = 0; (line = place_file_next(c->places, &next));)
		if (line_is_over(c, line, now_ms) &&
			!store_put(c->store, &(struct store_record){.kind = STORE_LINE,
						     .line = {line->line_id, key, key}}))
			return; // the next start will
	store_begin(c->store, now_ms);
	const struct store_status *status = store_poll(c->store, now_ms);
	if (status->is_pending || status->is_unsaved)
		return;
	for (uint32_t next = 0; (line = place_file_next(c->places, &next));) {
		uint32_t line_id = line->line_id;
		if (line_is_over(c, line, now_ms) && place_file_give_back(c->places, line) == 0)
			log_info(
				"line %08x given back: its room is gone, its tickets too", line_id);
	}
}

// Give a fresh room its line and controller. Returns 0 or -errno.
static int begin_room(struct control *c, struct control_room *room)
{
	uint64_t now_ms = clock_now_ms(&c->clock);
	struct controller_limits limits = rooms_line_limits(room);
	struct controller_bounds bounds = {.sessions_max = (uint32_t)c->started->sessions_max,
		.present_max = (uint32_t)c->started->present_max,
		.left_max = (uint32_t)c->started->left_max,
		.later_max = LATER_MAX,
		.seed = random_seed()};
	room->line = place_file_line(c->places, room->line_id);
	if (!room->line)
		return -ENOSPC;
	int ret = c->engine->begin(c, room);
	if (ret < 0)
		return ret;
	doors_restore(c, room);
	place_begin(room->line, now_ms / PLACE_SLOT_MS);
	keep(room, now_ms);
	room->controller = controller_create(&limits, &bounds, room->line, now_ms);
	return room->controller ? 0 : -ENOMEM;
}

static void end_room(struct control *c, struct control_room *room)
{
	controller_destroy(room->controller);
	c->engine->end(room);
}

// Tell the claims of rooms and, behind them, of those of `also` that are not among them.
static void tell_claims(struct control *c, struct control_room *rooms, uint32_t count,
	const struct control_room *also, uint32_t also_count)
{
	static struct claims_room told[ROOMS_AT_ONCE];
	uint32_t told_count = 0;
	for (uint32_t i = 0; i < count + also_count; i++) {
		const struct control_room *room = i < count ? &rooms[i] : &also[i - count];
		if (i >= count && find_line(rooms, count, room->line_id))
			continue;
		told[told_count++] = (struct claims_room){.line_id = room->line_id,
			.session_s = (uint32_t)rooms_config(room)->session_s,
			.state = rooms_state(room),
			.is_still = rooms_is_still(room),
			.controller = room->controller,
			.line = room->line};
	}
	claims_set_rooms(c->claims, told, told_count);
}

// Destroy the controllers of those rooms that are not among `kept`, and free the list.
static void let_go(struct control *c, struct control_room *rooms, uint32_t count,
	struct control_room *kept, uint32_t kept_count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!find_line(kept, kept_count, rooms[i].line_id))
			end_room(c, &rooms[i]);
		doors_free(&rooms[i]);
	}
	free(rooms);
}

// Lanes know their rooms, once all have their places.
static void link_lanes(struct control_room *rooms, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		rooms[i].room =
			rooms[i].lane ? find_line(rooms, count, rooms[i].config->line_id) : NULL;
}

// The rooms of the configuration, sorted by name, then their lanes; NULL when memory is short.
static struct control_room *list_rooms(struct control *c, uint32_t *count)
{
	const struct config_sites *sites = &c->config->sites;
	uint32_t at = 0;
	*count = (uint32_t)config_line_count(c->config);
	struct control_room *rooms = calloc(*count + 1, sizeof(*rooms));
	for (uint32_t i = 0; rooms && i < sites->count; i++)
		for (uint32_t j = 0; j < sites->at[i].rooms.count; j++) {
			const struct config_room *config = &sites->at[i].rooms.at[j];
			rooms[at++] = room_of(c, config, NULL);
			for (uint32_t k = 0; k < config->lanes.count; k++)
				rooms[at++] = room_of(c, config, &config->lanes.at[k]);
		}
	if (!rooms)
		return NULL;
	qsort(rooms, *count, sizeof(*rooms), compare_rooms);
	link_lanes(rooms, *count);
	return rooms;
}

// Rooms of a new configuration, and the control whose rooms are in force.
struct loading {
	struct control *c;
	struct control_room *rooms;
	uint32_t count;
};

// What commands said of a new room before it was away. Those in force know better than the store.
static void load_one(void *context, const struct store_record *record)
{
	const struct loading *loading = context;
	const struct store_room *said = &record->room;
	struct control_room *room = find_line(loading->rooms, loading->count, said->line_id);
	if (!room || rooms_find_line(loading->c, said->line_id))
		return;
	room->state_override = said->state;
	room->mode_override = said->mode;
	snprintf(room->message, sizeof(room->message), "%s", said->message);
}

// The line of a new room, to be raised to what the store knows.
static struct place_line *new_line(void *context, uint32_t line_id)
{
	const struct loading *loading = context;
	const struct control_room *room = find_line(loading->rooms, loading->count, line_id);
	return room && !room->controller ? place_file_line(loading->c->places, line_id) : NULL;
}

// Make what is new among `rooms` and restore what the store knows of it, beside the rooms in force,
// which the claims are not to forget until nothing can fail any more.
static int begin_rooms(struct control *c, struct control_room *rooms, uint32_t count)
{
	struct loading loading = {c, rooms, count};
	int ret = claims_restore_lines(c->store, new_line, &loading);
	for (uint32_t i = 0; i < count && ret == 0; i++)
		if (!rooms[i].controller)
			ret = begin_room(c, &rooms[i]);
	if (ret == 0)
		ret = store_load(c->store, STORE_ROOM, CLAIMS_RESTORE_MAX, load_one, &loading);
	if (ret < 0)
		return ret;
	tell_claims(c, rooms, count, c->rooms, c->room_count);
	ret = claims_restore(c->claims, clock_now_ms(&c->clock));
	if (ret < 0)
		tell_claims(c, c->rooms, c->room_count, NULL, 0);
	return ret;
}

int rooms_set(struct control *c)
{
	uint32_t count, before_count = c->room_count;
	struct control_room *rooms = list_rooms(c, &count), *before = c->rooms;
	struct pools_next pools;
	if (!rooms)
		return -ENOMEM;
	int ret = pools_make(c, &pools);
	if (ret == 0 && (ret = begin_rooms(c, rooms, count)) < 0)
		pools_drop(c, &pools);
	if (ret < 0) {
		let_go(c, rooms, count, before, before_count);
		return ret;
	}
	uint64_t now_ms = clock_now_ms(&c->clock);
	for (uint32_t i = 0; i < count; i++) {
		if (!rooms[i].draws)
			doors_restore(c, &rooms[i]);
		doors_look(c, &rooms[i], now_ms);
		struct controller_limits limits = rooms_line_limits(&rooms[i]);
		controller_set_limits(rooms[i].controller, &limits, now_ms);
	}
	c->rooms = rooms;
	c->room_count = count;
	tell_claims(c, rooms, count, NULL, 0);
	let_go(c, before, before_count, rooms, count);
	pools_take(c, &pools);
	c->engine->changed(c);
	return 0;
}

// What its room allows now.
static void tell_line(struct control *c, struct control_room *room)
{
	struct controller_limits limits = rooms_line_limits(room);
	controller_set_limits(room->controller, &limits, clock_now_ms(&c->clock));
	claims_set_state(c->claims, room->line_id, rooms_state(room), rooms_is_still(room));
	claims_set_session(c->claims, room->line_id, limits.session_s);
}

void rooms_changed(struct control *c, struct control_room *room)
{
	struct store_record record = {.kind = STORE_ROOM,
		.room = {.line_id = room->line_id,
			.state = room->state_override,
			.mode = room->mode_override,
			.message = room->message}};
	if (!store_put(c->store, &record))
		log_error("room %s: the command is in force, but the store took no record of it",
			room->config->name);
	if (!c->engine->share(c, room))
		log_error("room %s: the command is in force here; the others do not know of it",
			room->config->name);
	rooms_apply(c, room);
	reload_snapshot(c);
}

void rooms_apply(struct control *c, struct control_room *room)
{
	room = room->room ? room->room : room;
	for (uint32_t i = 0; i < c->room_count; i++)
		if (&c->rooms[i] == room || c->rooms[i].room == room)
			tell_line(c, &c->rooms[i]);
	pools_changed(c, room);
	c->engine->changed(c);
}

void rooms_destroy(struct control *c)
{
	for (uint32_t i = 0; i < c->room_count; i++) {
		end_room(c, &c->rooms[i]);
		doors_free(&c->rooms[i]);
	}
	free(c->rooms);
	c->rooms = NULL;
	c->room_count = 0;
	pools_destroy(c);
}
