// The schedule: find the event of the moment, then where in it the moment lies.

#include "controlplane/schedule/schedule.h"

#include <assert.h>

static bool has_opened(const struct schedule *s, const struct schedule_event *event)
{
	return event->opens_ms <= s->opened_ms || event->opens_ms <= s->now_ms;
}

// Whether the event before is over, and everybody knows.
static bool is_free(const struct schedule *s, uint32_t index)
{
	return index == 0 || s->events[index - 1].closes_ms + SCHEDULE_GAP_MS <= s->now_ms;
}

// The last event that has begun, or the first of all; -1 if there is none.
static int find(const struct schedule *s)
{
	int found = s->count > 0 ? 0 : -1;
	for (uint32_t i = 0; i < s->count; i++)
		if (is_free(s, i) &&
			(s->events[i].gathers_ms <= s->now_ms || has_opened(s, &s->events[i])))
			found = (int)i;
	return found;
}

static bool is_over(const struct schedule *s, const struct schedule_event *event)
{
	return event->closes_ms > 0 && event->closes_ms <= s->now_ms;
}

static void open_doors(struct schedule *s, const struct schedule_event *event, uint64_t at_ms)
{
	if (event->opens_ms <= s->opened_ms)
		return;
	s->opened_ms = event->opens_ms;
	s->opened_at_ms = at_ms;
}

static uint64_t last_over(const struct schedule *s)
{
	uint64_t over_ms = 0;
	for (uint32_t i = 0; i < s->count; i++)
		if (is_over(s, &s->events[i]))
			over_ms = s->events[i].opens_ms;
	return over_ms;
}

struct schedule_view schedule_look(struct schedule *s, uint64_t now_ms)
{
	if (now_ms > s->now_ms)
		s->now_ms = now_ms;
	int found = find(s);
	bool is_next =
		found >= 0 && is_over(s, &s->events[found]) && (uint32_t)found + 1 < s->count;
	found += is_next; // which has not begun
	if (found < 0)
		return (struct schedule_view){.doors = SCHEDULE_OPEN, .event = -1};
	const struct schedule_event *event = &s->events[found];
	struct schedule_view view = {.event = found, .over_ms = last_over(s)};
	if (is_next) {
		view.doors = SCHEDULE_BEFORE;
	} else if (is_over(s, event)) {
		view.doors = SCHEDULE_CLOSED;
	} else if (has_opened(s, event)) {
		open_doors(s, event, event->opens_ms);
		view.doors = SCHEDULE_OPEN;
		view.list_closes_ms = s->opened_at_ms + SCHEDULE_LIST_MS;
		view.list_is_open = s->now_ms < view.list_closes_ms;
	} else if (event->gathers_ms <= s->now_ms) {
		view.doors = SCHEDULE_GATHERING;
		view.list_is_open = true;
	} else {
		view.doors = SCHEDULE_BEFORE;
	}
	return view;
}

bool schedule_open(struct schedule *s, uint64_t now_ms)
{
	const struct schedule_view view = schedule_look(s, now_ms);
	if (view.doors != SCHEDULE_BEFORE && view.doors != SCHEDULE_GATHERING)
		return false;
	assert(view.event >= 0);
	open_doors(s, &s->events[view.event], s->now_ms);
	return true;
}

void schedule_set(struct schedule *s, const struct schedule_event *events, uint32_t count)
{
	s->events = events;
	s->count = count;
	for (uint32_t i = 1; i < count; i++)
		assert(events[i - 1].closes_ms > 0 &&
			events[i - 1].closes_ms <= events[i].gathers_ms);
}
