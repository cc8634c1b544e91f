// The engine of one appliance of several: claims go to the member, and what is to be known of a
// line is what the ledger last said of it.

#include "controlplane/appliance/inside.h"

#include "controlplane/log.h"
#include "controlplane/reload.h"
#include "controlplane/rooms.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint32_t room_for_claims(struct control *c)
{
	const uint32_t room = member_room(c->appliance->member);
	return room < CLAIMS_TURN_MAX ? room : CLAIMS_TURN_MAX;
}

static void turn_shared(struct appliance *a, uint64_t now_ms)
{
	const struct shared_view view = {.is_conductor = a->status.office.is_in_office,
		.is_away = a->status.is_away,
		.cursor = a->status.cursor,
		.members = a->status.members,
		.member_count = a->status.member_count};
	a->shared_us = clock_monotonic_us();
	shared_turn(a->shared, &view, now_ms / 1000);
}

// A secret that is on its way, and one that is revoked by it, waits for nothing but the others.
static void hurry_secret(struct appliance *a, uint64_t now_ms)
{
	uint32_t known, all;
	if (shared_told(a->shared, &known, &all) &&
		clock_monotonic_us() - a->shared_us > APPLIANCE_HURRY_MS * 1000ull)
		turn_shared(a, now_ms);
}

// The own store has what commands said, for a start while the ledger is away: nobody waits for it.
static void take_turn(
	struct control *c, const struct claim *claims, uint32_t count, uint64_t now_ms)
{
	static struct claim others[CLAIMS_TURN_MAX];
	struct appliance *a = c->appliance;
	const uint32_t room = member_room(a->member);
	appliance_code_look(c, now_ms);
	count = appliance_take_links(
		c, claims, count, others, room < CLAIMS_TURN_MAX ? room : CLAIMS_TURN_MAX, now_ms);
	if (count > 0)
		member_claims(a->member, others, count, now_ms);
	member_turn(a->member, now_ms);
	member_status(a->member, &a->status);
	hurry_secret(a, now_ms);
	if (a->is_snapshot_due) {
		a->is_snapshot_due = false;
		reload_snapshot(c);
	}
	if (!store_poll(c->store, now_ms)->is_pending)
		store_begin(c->store, now_ms);
}

static void take_refused(struct control *c, const struct worker_refused *refused, uint64_t now_ms)
{
	member_refused(
		c->appliance->member, refused->line_id, refused->key, refused->poll_after, now_ms);
}

static bool is_busy(const struct control *c)
{
	return c->store->status.is_pending;
}

static void look(struct control *c, const struct control_room *room, uint64_t now_ms,
	struct controller_view *view)
{
	struct member_line_view said;
	(void)now_ms;
	*view = (struct controller_view){.threshold = atomic_load(&room->line->threshold),
		.floor = atomic_load(&room->line->floor),
		.batch_left = UINT32_MAX,
		.inflow_left = UINT32_MAX,
		.slot_ms = (uint32_t)atomic_load(&room->line->stride) * PLACE_SLOT_MS};
	if (!member_look_line(c->appliance->member, room->line_id, &said))
		return;
	const struct ledger_view *is = &said.is;
	appliance_count(is, atomic_load(&room->line->left_waiting), view);
	view->present = is->present;
	view->sessions = is->taken;
	view->sessions_max_seen = is->taken;
	view->admitted_total = is->admitted_total;
	view->direct_total = is->direct_total;
	view->undone_total = is->undone_total;
	view->ended_total = is->ended_total;
	view->expired_total = is->expired_total;
	view->batch_left = is->all_left;
	view->inflow_left = is->direct_left;
	view->admit_rate = room->admit_rate;
}

static uint64_t passed(const struct control *c, const struct control_room *room)
{
	struct member_line_view said;
	return member_look_line(c->appliance->member, room->line_id, &said) ? said.passed : 0;
}

// By record, whoever is the conductor: here too.
static bool release(struct control *c, struct control_room *room, uint64_t people, uint64_t now_ms)
{
	return appliance_can_share(c) &&
	       shared_put_release(c->appliance->shared, room->line_id, people, now_ms);
}

static void lapse(struct control *c, struct control_room *room, uint64_t key, uint64_t now_ms)
{
	(void)now_ms;
	member_lapse(c->appliance->member, room->line_id, key);
}

static bool share(struct control *c, const struct control_room *room)
{
	struct shared_room said = {.line_id = room->line_id,
		.state = room->state_override,
		.mode = room->mode_override,
		.opened_ms = room->schedule.opened_ms,
		.opened_at_ms = room->schedule.opened_at_ms,
		.salt_bytes = room->salt_bytes};
	memcpy(said.salt, room->salt, sizeof(said.salt));
	memcpy(said.message, room->message, sizeof(said.message));
	return appliance_can_share(c) && shared_put_room(c->appliance->shared, &said);
}

const struct engine appliance_engine = {.room = room_for_claims,
	.turn = take_turn,
	.refused = take_refused,
	.changed = appliance_set_lines,
	.begin = appliance_begin_line,
	.end = appliance_end_line,
	.share = share,
	.is_busy = is_busy,
	.look = look,
	.passed = passed,
	.release = release,
	.lapse = lapse};

// --- once a second

// Admissions of the last TALLY_SECONDS, by what the views of then and now say.
static void measure(struct control *c, struct control_room *room, uint64_t now_ms)
{
	struct member_line_view said;
	if (!member_look_line(c->appliance->member, room->line_id, &said))
		return;
	const uint64_t total = said.is.admitted_total, at = now_ms / 1000 % TALLY_SECONDS;
	if (room->admitted_at[at] > 0 && total >= room->admitted_at[at])
		room->admit_rate = (double)(total - room->admitted_at[at]) / TALLY_SECONDS;
	room->admitted_at[at] = total;
}

static void say_changes(struct control *c, uint64_t now_ms)
{
	struct appliance *a = c->appliance;
	if (a->status.is_away && !a->was_away)
		log_error("the cluster's store is away: each room goes by its `on_store_loss`");
	else if (!a->status.is_away && a->was_away)
		log_info("the cluster's store is back");
	a->was_away = a->status.is_away;
	if (a->status.conductor != a->conductor_seen && a->status.conductor < LEDGER_MEMBERS_MAX)
		log_info("appliance %u is the conductor%s", a->status.conductor,
			a->status.office.is_in_office ? ": this one" : "");
	a->conductor_seen = a->status.conductor;
	if (a->status.is_name_taken && now_ms / 1000 % 10 == 0)
		log_error("another appliance has the name %s: this one admits nobody",
			c->started->cluster->appliance);
}

static const char *name_of(const struct member_status *status, uint8_t number)
{
	for (uint32_t i = 0; i < status->member_count; i++)
		if (status->members[i].number == number)
			return status->members[i].name;
	return "?";
}

// "a1, a2", as many as there is room for.
static void write_names(const struct appliance *a, uint64_t bits, char *text, size_t size)
{
	size_t len = 0;
	text[0] = '\0';
	for (uint8_t n = 0; n < LEDGER_MEMBERS_MAX; n++)
		if (bits >> n & 1 && len < size)
			len += (size_t)snprintf(text + len, size - len, "%s%s", len ? ", " : "",
				name_of(&a->status, n));
}

static void say_conflict(const struct appliance *a, const struct control_room *room)
{
	char names[256];
	write_names(a, room->otherwise, names, sizeof(names));
	if (room->otherwise == 0)
		log_info("room %s: all appliances have it configured alike again", room->name);
	else if (room->otherwise >> a->status.appliance & 1)
		log_error("room %s: configured otherwise here than what is in force in the "
			  "cluster (%s): nobody is admitted to it here",
			room->name, names);
	else
		log_warning("room %s: configured otherwise on %s: nobody is admitted to it there",
			room->name, names);
}

// Rooms about which appliances differ: once, when that changes and is so at the next look too (who
// has just begun, or reloaded, has not said yet what is configured there).
static void look_at_conflicts(struct control *c)
{
	struct appliance *a = c->appliance;
	for (uint32_t i = 0; i < c->room_count && !a->status.is_away; i++) {
		struct control_room *room = &c->rooms[i];
		struct member_line_view said;
		if (room->lane || !member_look_line(a->member, room->line_id, &said))
			continue;
		const bool is_again = said.is.otherwise == room->otherwise_seen;
		room->otherwise_seen = said.is.otherwise;
		if (said.is.otherwise == room->otherwise || !is_again)
			continue;
		room->otherwise = said.is.otherwise;
		say_conflict(a, room);
	}
}

// Rooms that turn newcomers away while the store is.
static void look_at_losses(struct control *c)
{
	bool has_changed = false;
	for (uint32_t i = 0; i < c->room_count; i++) {
		struct control_room *room = &c->rooms[i];
		const bool is_away = appliance_is_away(c, room);
		has_changed |= is_away != room->was_away;
		room->was_away = is_away;
	}
	if (has_changed)
		reload_snapshot(c);
}

// What commands said of rooms before there was a cluster.
static void give_rooms(struct control *c)
{
	for (uint32_t i = 0; i < c->room_count; i++) {
		const struct control_room *room = &c->rooms[i];
		const bool is_said = room->state_override != STORE_AS_CONFIGURED ||
				     room->mode_override != STORE_AS_CONFIGURED ||
				     room->message[0] || room->salt_bytes;
		if (!room->lane && is_said && !shared_has_room(c->appliance->shared, room->line_id))
			share(c, room);
	}
}

void appliance_second(struct control *c, uint64_t now_ms)
{
	struct appliance *a = c->appliance;
	turn_shared(a, now_ms);
	if (a->is_joining)
		return;
	if (a->status.office.is_in_office && shared_is_ready(a->shared))
		give_rooms(c);
	for (uint32_t i = 0; i < c->room_count; i++)
		measure(c, &c->rooms[i], now_ms);
	look_at_losses(c);
	look_at_conflicts(c);
	say_changes(c, now_ms);
}

bool appliance_is_away(const struct control *c, const struct control_room *room)
{
	return c->appliance && member_line_is_away(c->appliance->member, room->line_id);
}

bool appliance_can_share(const struct control *c)
{
	return c->appliance->status.is_connected && !c->appliance->status.is_away;
}

int appliance_shared(const struct control *c, uint64_t began_us)
{
	const struct appliance *a = c->appliance;
	if (a->full_us >= began_us)
		return -ENOSPC;
	if (!member_has_records(a->member))
		return 0;
	return clock_monotonic_us() - began_us < APPLIANCE_TAKEN_MS * 1000ull ? -EAGAIN
									      : -ETIMEDOUT;
}

int appliance_rotate(struct control *c, uint64_t ttl_s, uint64_t now_s)
{
	return !appliance_can_share(c) ? -EAGAIN
				       : shared_rotate(c->appliance->shared, ttl_s, now_s);
}

uint8_t appliance_told(
	const struct control *c, uint32_t *known, uint32_t *all, const char **awaited)
{
	const struct appliance *a = c->appliance;
	*awaited = name_of(&a->status, shared_awaited(a->shared));
	return shared_told(a->shared, known, all);
}

int appliance_revoke(struct control *c, uint8_t id, uint64_t now_s)
{
	return !appliance_can_share(c) ? -EAGAIN : shared_revoke(c->appliance->shared, id, now_s);
}
