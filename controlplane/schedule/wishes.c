// Wishes: doors before windows. A gathering for doors goes on until its list closes, whatever is
// configured meanwhile, so that nobody who has joined is drawn early. Only when its event is over,
// since nobody was there to open the doors, or when a window of an event was not drawn in time, it
// is drawn all the same, and its people lapse; the next event waits for that.

#include "controlplane/schedule/wishes.h"

#include "controlplane/controller/controller.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/rooms.h"

#include <string.h>

#define WINDOW (1ull << 62) // of an epoch: a window
#define BY_NUMBER (1ull << 61) // and one by number
#define EVENT_SHIFT 32u // above it, in a window's: when the doors of its event open, s
#define EVENT_MASK 0x1fffffffull

bool wishes_is_of_doors(uint64_t epoch)
{
	return epoch != 0 && !(epoch & WINDOW);
}

// Whether somebody gathered for the doors whose place is not drawn yet.
static bool waits_for_draw(const struct draws_view *draws)
{
	return (draws->is_gathering && wishes_is_of_doors(draws->epoch)) ||
	       wishes_is_of_doors(draws->closing_epoch);
}

// Whether those who gathered did so for an event that is over.
static bool is_over(const struct schedule_view *doors, uint64_t epoch)
{
	const uint64_t opens_s = epoch >> EVENT_SHIFT & EVENT_MASK;
	if (epoch == 0 || doors->over_ms == 0)
		return false;
	if (wishes_is_of_doors(epoch))
		return epoch <= doors->over_ms;
	return opens_s > 0 && ((doors->over_ms / 1000 - opens_s) & EVENT_MASK) <= EVENT_MASK / 2;
}

bool wishes_is_stale(const struct wishes_input *in)
{
	return (in->draws->is_gathering && is_over(&in->doors, in->draws->epoch)) ||
	       is_over(&in->doors, in->draws->closing_epoch);
}

uint8_t wishes_state(const struct wishes_input *in)
{
	switch ((enum schedule_doors)in->doors.doors) {
	case SCHEDULE_OPEN:
		return waits_for_draw(in->draws) || wishes_is_stale(in) || in->draws->is_unknown
			       ? GATE_BEFORE
			       : GATE_OPEN;
	case SCHEDULE_CLOSED:
		return GATE_CLOSED;
	case SCHEDULE_BEFORE:
	case SCHEDULE_GATHERING:
		break;
	}
	return GATE_BEFORE;
}

// Whether a window by number is to close: it is full, or old, or a slot is free and nobody is left
// before it.
static bool is_window_over(const struct wishes_input *in)
{
	const struct controller_view *now = in->line;
	if (in->draws->joined == 0)
		return false;
	if (in->draws->joined >= in->config->window.people ||
		in->now_ms >= in->draws->began_ms + in->config->window_max_s * 1000)
		return true;
	return now->called == 0 && now->waiting <= in->draws->joined &&
	       (!in->config->capacity || now->sessions < in->config->capacity);
}

static void wish_window(const struct wishes_input *in, struct draws_wish *wish)
{
	const struct config_window *window = &in->config->window;
	const uint64_t opens_s = in->event ? in->event->opens_ms / 1000 : 0;
	const uint64_t kind =
		WINDOW | (window->s ? 0 : BY_NUMBER) | (opens_s & EVENT_MASK) << EVENT_SHIFT;
	const bool is_on =
		in->draws->is_gathering && in->draws->epoch >> EVENT_SHIFT == kind >> EVENT_SHIFT;
	wish->gathers = true;
	wish->keeps_empty = is_on || !in->draws->is_gathering;
	if (window->s) {
		const uint64_t which = in->now_ms / (window->s * 1000);
		wish->epoch = kind | (uint32_t)which;
		wish->closes_s = (which + 1) * window->s;
		return;
	}
	wish->epoch = is_on ? in->draws->epoch + is_window_over(in) : kind;
	wish->full_at = window->people;
}

uint64_t wishes_lapsed(const struct schedule *schedule, const struct schedule_view *doors,
	const struct draws_view *draws)
{
	uint64_t closed_ms = 0, slot = 0;
	for (uint32_t i = 0; i < schedule->count; i++) {
		const struct schedule_event *event = &schedule->events[i];
		if (event->closes_ms > 0 && event->closes_ms <= schedule->now_ms &&
			event->opens_ms <= schedule->opened_ms)
			closed_ms = event->closes_ms;
	}
	if (closed_ms > 0) // nobody drew a place since, but by a worker that did not know yet
		slot = (closed_ms + SCHEDULE_KNOWN_MS) / PLACE_SLOT_MS;
	if (is_over(doors, draws->drawn_epoch) && draws->drawn_end > slot)
		slot = draws->drawn_end; // its list was closed later
	return place_key(slot, 0, 0);
}

// When the list that is joined closes by the clock.
static uint64_t closes_ms(const struct wishes_input *in)
{
	const uint64_t epoch = in->draws->epoch;
	if (!in->draws->is_gathering || epoch & BY_NUMBER)
		return 0;
	if (wishes_is_of_doors(epoch))
		return in->doors.list_closes_ms;
	return ((uint64_t)(uint32_t)epoch + 1) * in->config->window.s * 1000;
}

struct draws_wish wishes_make(const struct wishes_input *in)
{
	struct draws_wish wish = {.gathered_max = in->gathered_max,
		.prepares = in->may_gather && in->doors.doors != SCHEDULE_CLOSED,
		.salt_bytes = in->salt_bytes};
	bool is_joined = in->draws->is_gathering && wishes_is_of_doors(in->draws->epoch);
	bool is_open = in->doors.doors == SCHEDULE_OPEN;
	wish.is_shut = true;
	memcpy(wish.salt, in->salt, in->salt_bytes);
	if (wishes_is_stale(in))
		return wish;
	if (is_joined && (!is_open || in->doors.list_is_open)) {
		wish.gathers = true;
		wish.epoch = in->draws->epoch;
	} else if (in->doors.doors == SCHEDULE_GATHERING) {
		wish.gathers = true;
		wish.epoch = in->event->opens_ms;
	} else if (is_open && in->config->order == CONFIG_ORDER_WINDOW) {
		wish_window(in, &wish);
	}
	wish.is_shut = !is_open && !wish.gathers;
	wish.closes_ms = closes_ms(in);
	wish.stops = is_joined && is_open && !in->doors.list_is_open;
	return wish;
}
