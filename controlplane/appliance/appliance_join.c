// The start: until the ledger has said who this is, what time it is and what is shared, and then
// until it knows the rooms. The loop runs, and nothing else does but the member and the conductor's
// part.

#include "controlplane/appliance/inside.h"

#include "controlplane/log.h"
#include "controlplane/rooms.h"

#include <errno.h>

#define STILL_WAITING_MS 10000u // between lines in the log that say so

// Nothing but the member runs yet.
static void on_join_tick(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct control *c = context;
	member_turn(c->appliance->member, clock_now_ms(&c->clock));
	appliance_look(c);
	if (c->appliance->status.office.is_in_office)
		appliance_second(c, clock_now_ms(&c->clock));
}

const char *appliance_awaits(struct control *c)
{
	const struct appliance *a = c->appliance;
	const struct link_status *link = link_status(a->link);
	if (a->status.is_name_taken)
		return "another appliance is alive under this name";
	if (a->status.is_full)
		return "there is no number left for it";
	if (a->status.is_recovering)
		return "it has lost writes, and is told by the others what it knew";
	if (a->failure[0])
		return a->failure;
	if (!link->is_ready)
		return link->error[0] ? link->error : "it is not there";
	return "it has not told all yet";
}

// Whether this start can go on without the ledger: by what was known.
static bool is_known(const struct control *c)
{
	struct secrets_view views[SECRETS_MAX];
	return c->appliance->note.number < LEDGER_MEMBERS_MAX &&
	       secrets_list(c->secrets, views) > 0;
}

static int wait_for_ledger(struct control *c)
{
	struct appliance *a = c->appliance;
	const uint64_t began_us = clock_monotonic_us();
	uint64_t said_us = began_us;
	bool is_name_said = false;
	while (!a->status.is_ready || !a->has_begun || !shared_is_ready(a->shared)) {
		const uint64_t now_us = clock_monotonic_us();
		if (shared_is_foreign(a->shared)) {
			log_error("cluster.key_file: %s is not the key of this cluster",
				c->started->cluster->key_file);
			return -EKEYREJECTED;
		}
		if (a->status.is_name_taken && !is_name_said) {
			is_name_said = true;
			log_warning("cluster.appliance: another process is, or was a moment ago, "
				    "%s in this cluster: waiting %u s for its end",
				c->started->cluster->appliance, APPLIANCE_NAME_MS / 1000);
		}
		if (a->status.is_name_taken && now_us - began_us > APPLIANCE_NAME_MS * 1000ull) {
			log_error("cluster.appliance: %s is the name of another appliance, "
				  "which is alive: end that, or give this one another name",
				c->started->cluster->appliance);
			return -EEXIST;
		}
		if (is_known(c) && !a->status.is_connected &&
			now_us - began_us > APPLIANCE_WAIT_MS * 1000ull) {
			log_warning("store: %s; starting with what is known, as %s",
				appliance_awaits(c), "`on_store_loss` says");
			return 0;
		}
		if (now_us - said_us > STILL_WAITING_MS * 1000ull) {
			log_warning("store: %s; waiting for it, nobody is served yet",
				appliance_awaits(c));
			said_us = now_us;
		}
		event_base_loop(c->base, EVLOOP_ONCE);
	}
	return 0;
}

// It was let in, and is not going to serve: nobody is to wait for it.
static void take_leave(struct control *c)
{
	appliance_leave(c);
	while (!appliance_has_left(c))
		event_base_loop(c->base, EVLOOP_ONCE);
}

// The caller's. NULL: memory is short.
static struct event *begin_ticks(struct control *c)
{
	const struct timeval every = {0, CONTROL_TICK_MS * 1000};
	struct event *tick = event_new(c->base, -1, EV_PERSIST, on_join_tick, c);
	if (!tick || event_add(tick, &every) == 0)
		return tick;
	event_free(tick);
	return NULL;
}

int appliance_join(struct control *c)
{
	struct appliance *a = c->appliance;
	struct event *tick = begin_ticks(c);
	if (!tick)
		return -ENOMEM;
	appliance_look(c);
	const int ret = wait_for_ledger(c);
	if (ret < 0 && !a->status.is_name_taken)
		take_leave(c);
	event_free(tick);
	if (!a->has_begun) // nobody knows better
		clock_init(&c->clock, c->clock.last_ms, clock_monotonic_us(), clock_system_ms());
	a->has_begun = true;
	a->is_joining = false;
	if (a->note.number < LEDGER_MEMBERS_MAX)
		atomic_store(&c->words.appliance, a->note.number);
	atomic_store(&c->words.clock_offset_ms, c->clock.offset_ms);
	return ret;
}

// Nobody is let into a line before the conductor has named it and said that it is open.
static bool is_settled(const struct control *c)
{
	const struct appliance *a = c->appliance;
	if (a->status.is_away || a->status.is_recovering)
		return true; // not soon
	for (uint32_t i = 0; i < c->room_count; i++) {
		const struct control_room *room = &c->rooms[i];
		const bool is_open = rooms_state(room) == GATE_OPEN && !rooms_is_still(room);
		struct member_line_view said;
		if (!member_look_line(a->member, room->line_id, &said) ||
			(is_open && !said.is.is_open && !said.is.is_conflict))
			return false;
	}
	return true;
}

int appliance_settle(struct control *c)
{
	const uint64_t began_us = clock_monotonic_us();
	struct event *tick = begin_ticks(c);
	if (!tick)
		return -ENOMEM;
	c->appliance->is_joining = true;
	while (!is_settled(c) && clock_monotonic_us() - began_us < APPLIANCE_SETTLE_MS * 1000ull)
		event_base_loop(c->base, EVLOOP_ONCE);
	c->appliance->is_joining = false;
	event_free(tick);
	return 0;
}
