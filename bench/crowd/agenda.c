// A heap that knows where each id stands in it.

#include "bench/crowd/agenda.h"

#include <stdlib.h>

bool agenda_init(struct agenda *agenda, uint32_t ids)
{
	agenda->heap = calloc(ids, sizeof(*agenda->heap));
	agenda->places = calloc(ids, sizeof(*agenda->places));
	agenda->times_us = calloc(ids, sizeof(*agenda->times_us));
	agenda->count = 0;
	return agenda->heap && agenda->places && agenda->times_us;
}

void agenda_fini(struct agenda *agenda)
{
	free(agenda->heap);
	free(agenda->places);
	free(agenda->times_us);
}

static void put(struct agenda *agenda, uint32_t place, uint32_t id)
{
	agenda->heap[place] = id;
	agenda->places[id] = place + 1;
}

static int64_t time_at(const struct agenda *agenda, uint32_t place)
{
	return agenda->times_us[agenda->heap[place]];
}

static void rise(struct agenda *agenda, uint32_t place, uint32_t id)
{
	const int64_t time_us = agenda->times_us[id];
	while (place > 0 && time_at(agenda, (place - 1) / 2) > time_us) {
		put(agenda, place, agenda->heap[(place - 1) / 2]);
		place = (place - 1) / 2;
	}
	put(agenda, place, id);
}

static void sink(struct agenda *agenda, uint32_t place, uint32_t id)
{
	const int64_t time_us = agenda->times_us[id];
	for (;;) {
		uint32_t child = 2 * place + 1;
		if (child + 1 < agenda->count &&
			time_at(agenda, child + 1) < time_at(agenda, child))
			child++;
		if (child >= agenda->count || time_at(agenda, child) >= time_us)
			break;
		put(agenda, place, agenda->heap[child]);
		place = child;
	}
	put(agenda, place, id);
}

void agenda_set(struct agenda *agenda, uint32_t id, int64_t time_us)
{
	agenda_remove(agenda, id);
	agenda->times_us[id] = time_us;
	rise(agenda, agenda->count++, id);
}

void agenda_remove(struct agenda *agenda, uint32_t id)
{
	if (agenda->places[id] == 0)
		return;
	const uint32_t place = agenda->places[id] - 1;
	agenda->places[id] = 0;
	const uint32_t last = agenda->heap[--agenda->count];
	if (last == id)
		return;
	if (place > 0 && time_at(agenda, (place - 1) / 2) > agenda->times_us[last])
		rise(agenda, place, last);
	else
		sink(agenda, place, last);
}

int64_t agenda_next_us(const struct agenda *agenda)
{
	return agenda->count ? time_at(agenda, 0) : INT64_MAX;
}

bool agenda_take(struct agenda *agenda, int64_t now_us, uint32_t *id)
{
	if (agenda_next_us(agenda) > now_us)
		return false;
	*id = agenda->heap[0];
	agenda_remove(agenda, *id);
	return true;
}
