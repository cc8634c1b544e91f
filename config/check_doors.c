// The rules of doors, events and windows.
//
// A room has its times itself, or a list of events. Each is a stretch of time, from when people
// gather to when it closes; stretches of one room do not meet, so at any moment at most one event
// says what holds.

#include "config/check.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

// Of one event, or of the room itself.
struct stretch {
	const void *base; // whose keys they are
	uint64_t opens_s, closes_s, prequeue_s;
	uint32_t order;
};

static uint64_t begin_of(const struct stretch *s)
{
	return s->opens_s > s->prequeue_s ? s->opens_s - s->prequeue_s : 0;
}

static void check_stretch(struct reading *r, const struct stretch *s)
{
	if (s->closes_s && s->opens_s && s->closes_s <= s->opens_s)
		reading_fail(r, s->base, "closes", READING_WHOLE,
			"is not after opens; allowed: a later moment");
}

static int by_opening(const void *a, const void *b)
{
	const struct stretch *x = a, *y = b;
	if (x->opens_s != y->opens_s)
		return x->opens_s < y->opens_s ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

// Each against the one that opens before it.
static void check_order(struct reading *r, struct stretch *stretches, uint32_t count)
{
	qsort(stretches, count, sizeof(*stretches), by_opening);
	for (uint32_t i = 1; i < count; i++) {
		const struct stretch *before = &stretches[i - 1], *s = &stretches[i];
		uint32_t line = reading_line(r, before->base, "opens", READING_WHOLE);
		if (!s->opens_s || !before->opens_s)
			continue; // could not be read, and was reported
		if (!before->closes_s)
			reading_fail(r, s->base, "opens", READING_WHOLE,
				"follows an event that never closes, on line %u; allowed: after "
				"its closes",
				line);
		else if (begin_of(s) < before->closes_s)
			reading_fail(r, s->base, "opens", READING_WHOLE,
				"overlaps the event on line %u, the time of gathering included; "
				"allowed: after it has closed",
				line);
	}
}

// What an event overrides, with what it leaves to its room.
static void check_event(
	struct reading *r, const struct config_room *room, const struct config_event *event)
{
	const struct config_room all = config_room_during(room, event);
	if (event->order == CONFIG_EVENT_ORDER_WINDOW && !all.window.s && !all.window.people)
		reading_fail(
			r, event, "order", READING_WHOLE, "needs a window; allowed: with window");
	if (event->window.people > r->config->gathered_max)
		reading_fail(r, event, "window", READING_WHOLE,
			"is above gathered_max; allowed: up to %lu", r->config->gathered_max);
	if (event->capacity > r->config->sessions_max)
		reading_fail(r, event, "capacity", READING_WHOLE,
			"is above sessions_max; allowed: up to %lu", r->config->sessions_max);
	if (event->rate.count && all.batch_spread)
		reading_fail(r, event, "rate", READING_WHOLE,
			"is that of the room's batch; allowed: without `batch_spread`");
	if (event->mode != CONFIG_EVENT_MODE_ROOM && all.mode == CONFIG_MODE_PEAK &&
		!all.inflow.count)
		reading_fail(r, event, "mode", READING_WHOLE,
			"needs an inflow; allowed: with `inflow` of the room");
}

// A room that is closed for good when it starts is seldom meant.
static void warn_of_past(struct reading *r, const struct config_room *room)
{
	const uint64_t now_s = r->machine->now_s;
	const uint32_t count = room->events.count;
	uint32_t over = 0;
	for (uint32_t i = 0; i < count; i++)
		over += room->events.at[i].closes_s && room->events.at[i].closes_s <= now_s;
	if (count > 0 && over == count)
		reading_warn(r, &room->events.at[count - 1], "closes", READING_WHOLE,
			"is past, as of all events of the room: it is closed");
	if (count == 0 && room->closes_s && room->closes_s <= now_s)
		reading_warn(r, room, "closes", READING_WHOLE, "is past: the room is closed");
}

static void check_events(struct reading *r, const struct config_room *room)
{
	uint32_t count = room->events.count;
	struct stretch *stretches = arena_take(r->scratch, (count + 1) * sizeof(*stretches));
	for (uint32_t i = 0; i < count; i++) {
		const struct config_event *event = &room->events.at[i];
		stretches[i] = (struct stretch){
			event, event->opens_s, event->closes_s, event->prequeue_s, i};
		check_stretch(r, &stretches[i]);
		check_event(r, room, event);
	}
	check_order(r, stretches, count);
}

static void check_own_times(struct reading *r, const struct config_room *room)
{
	const struct stretch own = {room, room->opens_s, room->closes_s, room->prequeue_s, 0};
	check_stretch(r, &own);
	if (room->prequeue_s && !room->opens_s && !room->events.count)
		reading_fail(r, room, "prequeue", READING_WHOLE,
			"has no doors to open; allowed: with opens");
	if (room->events.count && (room->opens_s || room->closes_s))
		reading_fail(r, room, room->opens_s ? "opens" : "closes", READING_WHOLE,
			"stands beside events; allowed: one or the other");
}

static void check_window(struct reading *r, const struct config_room *room)
{
	bool has_window = room->window.s || room->window.people;
	if (room->order == CONFIG_ORDER_WINDOW && !has_window)
		reading_fail(
			r, room, "order", READING_WHOLE, "needs a window; allowed: with window");
	if (room->window.people > r->config->gathered_max)
		reading_fail(r, room, "window", READING_WHOLE,
			"is above gathered_max; allowed: up to %lu", r->config->gathered_max);
}

// The event that is under way or comes next; NULL: none.
static const struct config_event *event_at(const struct config_room *room, uint64_t now_s)
{
	const struct config_event *found = NULL;
	for (uint32_t i = 0; i < room->events.count; i++) {
		const struct config_event *event = &room->events.at[i];
		const bool is_over = event->closes_s && event->closes_s <= now_s;
		if (!is_over && (!found || event->opens_s < found->opens_s))
			found = event;
	}
	return found;
}

// Who has seen a salt before the draw is drawn with it. A process that runs knows of those.
static void check_named_salt(struct reading *r, const struct config_room *room)
{
	const struct config_machine *machine = r->machine;
	uint64_t now_s;
	const char *named =
		machine->named_salt && room->name
			? machine->named_salt(machine->named_salt_context, room->name, &now_s)
			: NULL;
	if (!named)
		return;
	const struct config_event *event = event_at(room, now_s);
	const struct config_room now = config_room_during(room, event);
	if (!now.salt || strcasecmp(now.salt, named) != 0)
		reading_fail(r, event && event->salt ? (const void *)event : room, "salt",
			READING_WHOLE,
			"is not what was named for those who gather in room %s: that stands "
			"until they are drawn; allowed: %s",
			room->name, named);
}

void check_doors(struct reading *r, const struct config_room *room)
{
	check_named_salt(r, room);
	warn_of_past(r, room);
	check_own_times(r, room);
	check_events(r, room);
	check_window(r, room);
}
