// What an event makes of its room. A key that stands in both holds as the event has it.

#include "config/config.h"

#include <assert.h>
#include <stddef.h>

static void override_number(uint64_t *to, uint64_t from)
{
	if (from)
		*to = from;
}

static void override_text(const char **to, const char *from)
{
	if (from)
		*to = from;
}

static enum config_mode mode_during(const struct config_room *room, enum config_event_mode mode)
{
	static const enum config_mode modes[] = {[CONFIG_EVENT_MODE_AUTO] = CONFIG_MODE_AUTO,
		[CONFIG_EVENT_MODE_ALWAYS] = CONFIG_MODE_ALWAYS,
		[CONFIG_EVENT_MODE_OFF] = CONFIG_MODE_OFF,
		[CONFIG_EVENT_MODE_REJECT] = CONFIG_MODE_REJECT,
		[CONFIG_EVENT_MODE_PEAK] = CONFIG_MODE_PEAK};
	return mode == CONFIG_EVENT_MODE_ROOM ? room->mode : modes[mode];
}

struct config_room config_room_during(
	const struct config_room *room, const struct config_event *event)
{
	struct config_room all = *room;
	if (!event)
		return all;
	override_number(&all.capacity, event->capacity);
	override_number(&all.burst, event->burst);
	override_number(&all.session_s, event->session_s);
	override_text(&all.salt, event->salt);
	override_text(&all.pages, event->pages);
	override_text(&all.pages_language, event->pages_language);
	if (event->rate.count)
		all.rate = event->rate;
	if (event->order != CONFIG_EVENT_ORDER_ROOM)
		all.order = event->order == CONFIG_EVENT_ORDER_WINDOW ? CONFIG_ORDER_WINDOW
								      : CONFIG_ORDER_ARRIVAL;
	if (event->window.s || event->window.people)
		all.window = event->window;
	all.mode = mode_during(room, event->mode);
	return all;
}

struct config_room config_room_during_nth(const struct config_room *room, uint32_t nth)
{
	assert(nth <= room->events.count);
	return config_room_during(room, nth ? &room->events.at[nth - 1] : NULL);
}

bool config_room_gathers(const struct config_room *room)
{
	bool gathers = room->order == CONFIG_ORDER_WINDOW || (room->opens_s && room->prequeue_s);
	for (uint32_t i = 0; i < room->events.count; i++)
		gathers |= room->events.at[i].order == CONFIG_EVENT_ORDER_WINDOW ||
			   room->events.at[i].prequeue_s > 0;
	return gathers;
}
