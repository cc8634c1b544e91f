// Wishes: doors before windows. A gathering for doors goes on until its list closes, whatever is
// configured meanwhile, so that nobody who has joined is drawn early; unless its event is over,
// since nobody was there to open the doors. Then they are drawn, and doors.c has them lapse.

#include "controlplane/schedule/wishes.h"

#include "controlplane/controller/controller.h"
#include "dataplane/gate/rooms.h"

#include <string.h>

#define WINDOW (1ull << 62) // of an epoch: a window
#define BY_NUMBER (1ull << 61) // and one by number

static bool is_of_doors(uint64_t epoch)
{
	return epoch != 0 && !(epoch & WINDOW);
}

// Whether somebody gathered for the doors whose place is not drawn yet.
static bool waits_for_draw(const struct draws_view *draws)
{
	return (draws->is_gathering && is_of_doors(draws->epoch)) ||
	       is_of_doors(draws->closing_epoch);
}

uint8_t wishes_state(const struct wishes_input *in)
{
	switch ((enum schedule_doors)in->doors.doors) {
	case SCHEDULE_OPEN:
		return waits_for_draw(in->draws) ? GATE_BEFORE : GATE_OPEN;
	case SCHEDULE_CLOSED:
		return GATE_CLOSED;
	case SCHEDULE_BEFORE:
	case SCHEDULE_GATHERING:
		break;
	}
	return GATE_BEFORE;
}

bool wishes_is_over(const struct schedule_view *doors, uint64_t epoch)
{
	return is_of_doors(epoch) && epoch <= doors->over_ms;
}

// Whether a window by number is to close: it is full, or old, or a slot is free and nobody is left
// before it.
static bool is_window_over(const struct wishes_input *in)
{
	struct controller_view now;
	if (in->draws->joined == 0)
		return false;
	if (in->draws->joined >= in->config->window.people ||
		in->now_ms >= in->draws->began_ms + in->config->window_max_s * 1000)
		return true;
	controller_look(in->controller, in->now_ms, &now);
	return now.called == 0 && now.waiting <= in->draws->joined &&
	       (!in->config->capacity || now.sessions < in->config->capacity);
}

static void wish_window(const struct wishes_input *in, struct draws_wish *wish)
{
	const struct config_window *window = &in->config->window;
	wish->gathers = wish->keeps_empty = true;
	if (window->s) {
		wish->epoch = WINDOW | in->now_ms / (window->s * 1000);
		wish->closes_s = ((wish->epoch & ~WINDOW) + 1) * window->s;
		return;
	}
	bool is_on = in->draws->is_gathering && (in->draws->epoch & (WINDOW | BY_NUMBER)) > WINDOW;
	wish->epoch =
		is_on ? in->draws->epoch + is_window_over(in) : WINDOW | BY_NUMBER | in->now_ms;
	wish->full_at = window->people;
}

struct draws_wish wishes_make(const struct wishes_input *in)
{
	struct draws_wish wish = {.gathered_max = in->gathered_max,
		.prepares = in->may_gather && in->doors.doors != SCHEDULE_CLOSED,
		.salt_bytes = in->salt_bytes};
	bool is_joined = in->draws->is_gathering && is_of_doors(in->draws->epoch);
	bool is_open = in->doors.doors == SCHEDULE_OPEN;
	memcpy(wish.salt, in->salt, in->salt_bytes);
	if (wishes_is_over(&in->doors, in->draws->epoch))
		is_joined = false;
	if (is_joined && (!is_open || in->doors.list_is_open)) {
		wish.gathers = true;
		wish.epoch = in->draws->epoch;
	} else if (in->doors.doors == SCHEDULE_GATHERING) {
		wish.gathers = true;
		wish.epoch = in->event->opens_ms;
	} else if (is_open && in->config->order == CONFIG_ORDER_WINDOW) {
		wish_window(in, &wish);
	}
	return wish;
}
