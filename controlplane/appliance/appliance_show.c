// `show cluster`: the cluster as this appliance last heard of it.

#include "controlplane/appliance/inside.h"

#include "controlplane/rooms.h"

#include <stdlib.h>
#include <string.h>

static void set(json_t *object, const char *name, json_t *value)
{
	if (!value || json_object_set_new(object, name, value) < 0)
		abort(); // control without memory for a figure: nothing can go on
}

static void append(json_t *list, json_t *value)
{
	if (!value || json_array_append_new(list, value) < 0)
		abort();
}

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

// A time; 0: none.
static json_t *seconds(uint64_t ms)
{
	return ms ? number(ms / 1000) : json_null();
}

static json_t *name_of(const struct member_status *status, uint8_t appliance)
{
	for (uint32_t i = 0; i < status->member_count; i++)
		if (status->members[i].number == appliance)
			return json_string(status->members[i].name);
	return json_null();
}

static json_t *show_store_link(struct control *c)
{
	struct appliance *a = c->appliance;
	const struct link_status *link = link_status(a->link);
	json_t *store = json_object();
	json_t *warnings = json_array();
	for (uint32_t i = 0; i < link->warnings.count; i++)
		append(warnings, json_string(link->warnings.texts[i]));
	set(store, "state",
		json_string(!a->status.is_away        ? "there"
			    : a->status.is_recovering ? "recovering"
						      : "away"));
	set(store, "away_since", seconds(a->status.away_since_ms));
	set(store, "primary", link->primary[0] ? json_string(link->primary) : json_null());
	set(store, "version",
		link->server.version[0] ? json_string(link->server.version) : json_null());
	set(store, "replicas", number(link->server.replicas));
	set(store, "news", json_boolean(link->has_news));
	set(store, "connected", number(link->ready_total));
	set(store, "lost", number(link->lost_total));
	set(store, "round_trip_ms", number(a->status.round_trip_ms));
	set(store, "error",
		a->failure[0]    ? json_string(a->failure)
		: link->error[0] ? json_string(link->error)
				 : json_null());
	set(store, "failures", number(a->failures));
	set(store, "warnings", warnings);
	return store;
}

static const char *state_of(const struct ledger_member *member)
{
	return member->is_live ? "live" : member->has_left ? "left" : "unheard of";
}

static json_t *show_members(const struct appliance *a)
{
	const struct member_status *status = &a->status;
	json_t *list = json_array();
	for (uint32_t i = 0; i < status->member_count; i++) {
		const struct ledger_member *member = &status->members[i];
		json_t *line = json_object();
		set(line, "appliance", json_string(member->name));
		set(line, "number", number(member->number));
		set(line, "state", json_string(state_of(member)));
		set(line, "conductor", json_boolean(member->number == status->conductor));
		set(line, "this", json_boolean(member->number == status->appliance));
		set(line, "behind",
			number(status->newest > member->applied ? status->newest - member->applied
								: 0));
		append(list, line);
	}
	return list;
}

static json_t *show_lines(struct control *c, uint64_t *over)
{
	static const char *const losses[] = {[CONFIG_ON_STORE_LOSS_HOLD] = "hold",
		[CONFIG_ON_STORE_LOSS_SHARE] = "share",
		[CONFIG_ON_STORE_LOSS_OPEN] = "open",
		[CONFIG_ON_STORE_LOSS_REJECT] = "reject"};
	json_t *list = json_array();
	for (uint32_t i = 0; i < c->room_count; i++) {
		const struct control_room *room = &c->rooms[i];
		struct member_line_view said = {0};
		member_look_line(c->appliance->member, room->line_id, &said);
		if (said.admitted_over_max > *over)
			*over = said.admitted_over_max;
		json_t *line = json_object();
		set(line, "room", json_string(room->name));
		set(line, "on_store_loss", json_string(losses[room->config->on_store_loss]));
		const uint8_t loss = room->config->on_store_loss;
		const bool is_away = appliance_is_away(c, room);
		const bool is_loose =
			loss == CONFIG_ON_STORE_LOSS_SHARE || loss == CONFIG_ON_STORE_LOSS_OPEN;
		set(line, "in_force", json_boolean(is_away));
		set(line, "outside_bound", json_boolean(is_away && is_loose));
		set(line, "conflict", json_boolean(said.is.is_conflict));
		set(line, "sessions", number(said.is.taken));
		set(line, "over_admitted_max", number(said.admitted_over_max));
		set(line, "lost", number(said.is.lost));
		append(list, line);
	}
	return list;
}

// Rooms about which appliances differ, whoever asks; and who has them otherwise.
static void set_conflicts(json_t *cluster, struct control *c)
{
	json_t *names = json_array(), *list = json_array();
	for (uint32_t i = 0; i < c->room_count; i++) {
		const struct control_room *room = &c->rooms[i];
		if (room->otherwise == 0)
			continue;
		json_t *line = json_object(), *who = json_array();
		for (uint8_t n = 0; n < LEDGER_MEMBERS_MAX; n++)
			if (room->otherwise >> n & 1)
				append(who, name_of(&c->appliance->status, n));
		set(line, "room", json_string(room->name));
		set(line, "otherwise", who);
		set(line, "here",
			json_boolean(room->otherwise >> c->appliance->status.appliance & 1));
		append(list, line);
		append(names, json_string(room->name));
	}
	set(cluster, "conflicts", names);
	set(cluster, "conflicting", list);
}

json_t *appliance_show(struct control *c)
{
	struct appliance *a = c->appliance;
	member_status(a->member, &a->status);
	const struct member_status *status = &a->status;
	const uint64_t now_ms = clock_now_ms(&c->clock);
	uint64_t live = 0, over = 0;
	for (uint32_t i = 0; i < status->member_count; i++)
		live += status->members[i].is_live;
	json_t *cluster = json_object(), *rooms = show_lines(c, &over);
	set(cluster, "appliances", number(live));
	set(cluster, "appliance", json_string(c->started->cluster->appliance));
	set(cluster, "number",
		status->appliance < LEDGER_MEMBERS_MAX ? number(status->appliance) : json_null());
	set(cluster, "name_taken", json_boolean(status->is_name_taken));
	set(cluster, "conductor", name_of(status, status->conductor));
	set(cluster, "fence", number(status->fence));
	set(cluster, "epoch", number(status->epoch));
	set(cluster, "recovering", json_boolean(status->is_recovering));
	set(cluster, "resyncing", json_boolean(status->is_resyncing));
	set(cluster, "over_admitted_max", number(over));
	set(cluster, "now", number(now_ms / 1000));
	set(cluster, "started", number(c->started_ms / 1000));
	set(cluster, "skew_ms", json_integer(status->skew_ms));
	set(cluster, "skewed", json_boolean(status->is_skewed));
	set(cluster, "skew_max_ms", number(a->skew_max_ms));
	if (status->propagation_count > 0) {
		set(cluster, "propagation_p50_ms", number(status->propagation_p50_ms));
		set(cluster, "propagation_p99_ms", number(status->propagation_p99_ms));
	}
	set(cluster, "news_behind",
		number(status->newest > status->applied ? status->newest - status->applied : 0));
	set(cluster, "remembered", number(status->known_count));
	set(cluster, "unsaid", number(status->unsaid_count));
	set(cluster, "secret_waits_for", name_of(status, shared_awaited(a->shared)));
	set(cluster, "floor_held", json_boolean(status->office.is_floor_held));
	set_conflicts(cluster, c);
	set(cluster, "store", show_store_link(c));
	set(cluster, "members", show_members(a));
	set(cluster, "rooms", rooms);
	return cluster;
}

void appliance_add_counters(struct control *c, json_t *list,
	void (*add)(
		json_t *list, const char *part, const char *name, const char *text, uint64_t value))
{
	const struct member_counters *counters = member_counters(c->appliance->member);
	const struct link_status *link = link_status(c->appliance->link);
#define X(name, text) add(list, "cluster", #name, text, counters->name);
	MEMBER_COUNTERS(X)
#undef X
	add(list, "link", "tries", "tries to connect to the store", link->tries_total);
	add(list, "link", "ready", "of these, those that came through", link->ready_total);
	add(list, "link", "lost", "connections lost", link->lost_total);
	add(list, "link", "batches", "batches sent", link->batches_total);
	add(list, "link", "reloads", "batches sent again with the script", link->reloads_total);
	add(list, "link", "news", "messages of the channel", link->news_total);
	add(list, "link", "news_lost", "losses of the connection for news", link->news_lost_total);
}
