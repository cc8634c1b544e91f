// Puts the figures of control and workers together as JSON.

#include "controlplane/show.h"

#include "controlplane/appliance/appliance.h"
#include "controlplane/codes/codes.h"
#include "controlplane/codes/codes_lists.h"
#include "controlplane/control.h"
#include "controlplane/controller/pool.h"
#include "controlplane/doors.h"
#include "controlplane/engine.h"
#include "controlplane/log.h"
#include "controlplane/rooms.h"
#include "dataplane/gate/token.h"
#include "dataplane/tls/fault.h"
#include "dataplane/tls/tls.h"
#include "drivers/proxy/proxy.h"
#include "drivers/sockets/sockets.h"

#include <stdlib.h>
#include <string.h>

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

// UINT32_MAX: there is none.
static json_t *limit(uint32_t value)
{
	return value == UINT32_MAX ? json_null() : number(value);
}

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

static const char *state_name(const struct control_room *room)
{
	return rooms_state_names[rooms_state(room)];
}

// What fits a line of `show rooms`.
static json_t *room_line(
	struct control *c, const struct control_room *room, const struct controller_view *view)
{
	(void)c;
	json_t *line = json_object();
	set(line, "room", json_string(room->name));
	set(line, "state", json_string(state_name(room)));
	set(line, "mode", json_string(rooms_mode_names[rooms_mode(room)]));
	set(line, "waiting", number(view->waiting));
	set(line, "called", number(view->called));
	set(line, "present", number(view->present));
	set(line, "sessions", number(view->sessions));
	set(line, "capacity",
		rooms_config(room)->capacity ? number(rooms_config(room)->capacity) : json_null());
	set(line, "pool", room->config->pool ? json_string(room->config->pool) : json_null());
	set(line, "admitted", number(view->admitted_total));
	set(line, "admit_rate", json_real(view->admit_rate));
	return line;
}

json_t *show_rooms(struct control *c)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < c->room_count; i++) {
		struct controller_view view;
		c->engine->look(c, &c->rooms[i], clock_now_ms(&c->clock), &view);
		append(list, room_line(c, &c->rooms[i], &view));
	}
	return list;
}

json_t *show_pools(struct control *c)
{
	json_t *list = json_array();
	for (uint32_t i = 0; i < c->pool_count; i++) {
		if (c->pools[i].is_of_room)
			continue;
		const struct pool *pool = c->pools[i].pool;
		json_t *line = json_object();
		uint32_t rooms = 0;
		for (uint32_t j = 0; j < c->room_count; j++) {
			const char *name = c->rooms[j].config->pool;
			rooms += name && !c->rooms[j].lane && strcmp(name, c->pools[i].name) == 0;
		}
		set(line, "pool", json_string(c->pools[i].name));
		set(line, "rooms", number(rooms));
		set(line, "sessions", number(pool->taken));
		set(line, "capacity",
			pool->limits.capacity ? number(pool->limits.capacity) : json_null());
		set(line, "admit_rate", json_real(pool_admit_rate(pool, clock_now_ms(&c->clock))));
		append(list, line);
	}
	return list;
}

static void set_key(json_t *object, const char *name, uint64_t key)
{
	char hex[17];
	snprintf(hex, sizeof(hex), "%016llx", (unsigned long long)key);
	set(object, name, json_string(hex));
}

// When the doors open or close next, and the draws of the room.
static void set_doors(json_t *all, const struct control_room *room)
{
	const struct schedule_event *event =
		room->doors.event >= 0 ? &room->events[room->doors.event] : NULL;
	struct draws_view view = {0};
	if (room->draws)
		draws_look(room->draws, &view);
	set(all, "event",
		room->event && room->event->name ? json_string(room->event->name) : json_null());
	set(all, "gathers", event ? number(event->gathers_ms / 1000) : json_null());
	set(all, "opens", event ? number(event->opens_ms / 1000) : json_null());
	set(all, "closes",
		event && event->closes_ms ? number(event->closes_ms / 1000) : json_null());
	const bool has_windows = rooms_config(room)->order == CONFIG_ORDER_WINDOW;
	set(all, "order", json_string(has_windows ? "window" : "arrival"));
	const char *salt = doors_salt_now(room);
	set(all, "salt", salt ? json_string(salt) : json_null());
	set(all, "gathering", json_boolean(view.is_gathering));
	set(all, "gathered", number(view.joined));
	set(all, "drawn_waiting", number(view.drawn));
	set(all, "draws", number(view.draws_total));
	set(all, "drawn", number(view.drawn_total));
	set(all, "draw_longest_ms", number(view.longest_ms));
}

// The list of a lane, and what was used, of codes that are in it no more too.
static void set_codes(json_t *all, const struct control *c, const struct control_room *lane)
{
	const struct codes_list *list = codes_lists_of(c->codes_lists, lane->lane);
	struct codes_view used = codes_look(c->codes, lane->line_id);
	if (c->appliance)
		used = (struct codes_view){(uint32_t)lane->codes_used, lane->code_uses};
	set(all, "codes", list ? number(codes_list_count(list)) : json_null());
	set(all, "code_uses", list ? number(codes_list_uses_total(list)) : json_null());
	set(all, "codes_used", number(used.codes));
	set(all, "code_uses_made", number(used.uses));
}

json_t *show_code(
	struct control *c, const struct control_room *lane, const struct code_digest *code)
{
	const struct codes_list *list = codes_lists_of(c->codes_lists, lane->lane);
	const uint32_t uses = list ? codes_list_uses(list, code) : 0;
	json_t *all = json_object();
	set(all, "lane", json_string(lane->name));
	set(all, "listed", json_boolean(uses > 0));
	set(all, "uses", number(uses));
	set(all, "used", number(codes_used(c->codes, lane->line_id, code)));
	return all;
}

json_t *show_room(struct control *c, struct control_room *room)
{
	struct controller_view view;
	c->engine->look(c, room, clock_now_ms(&c->clock), &view);
	json_t *all = room_line(c, room, &view);
	set(all, "path", json_string(room->config->path));
	const struct config_lane *lane = room->lane;
	set(all, "priority", number(lane ? lane->priority : room->config->priority));
	set(all, "weight", number(lane ? lane->weight : room->config->weight));
	if (lane)
		set_codes(all, c, room);
	set_doors(all, room);
	set(all, "message", room->message[0] ? json_string(room->message) : json_null());
	set_key(all, "threshold", view.threshold);
	set_key(all, "floor", view.floor);
	set(all, "reserved", number(view.reserved));
	set(all, "sessions_max_seen", number(view.sessions_max_seen));
	set(all, "direct", number(view.direct_total));
	set(all, "undone", number(view.undone_total));
	set(all, "lapsed", number(view.lapsed_total));
	set(all, "left", number(view.left_total));
	set(all, "ended", number(view.ended_total));
	set(all, "expired", number(view.expired_total));
	set(all, "overtakes", number(view.overtakes_total));
	set(all, "passed_uncounted", number(c->engine->passed(c, room)));
	set(all, "batch_left", limit(view.batch_left));
	set(all, "inflow_left", limit(view.inflow_left));
	set(all, "yield", json_real(view.yield));
	set(all, "outflow", json_real(view.outflow));
	set(all, "slot_ms", number(view.slot_ms));
	uint64_t quiet_ms = claims_quiet_until(c->claims, room->line_id);
	set(all, "quiet_until", quiet_ms ? number(quiet_ms / 1000) : json_null());
	set(all, "store", show_store(c));
	return all;
}

json_t *show_workers(struct control *c)
{
	json_t *list = json_array();
	for (unsigned i = 0; i < c->worker_count; i++) {
		const struct worker *worker = c->workers[i];
		const struct counters *counters = worker_counters(worker);
		json_t *line = json_object();
		set(line, "worker", number(i));
		set(line, "core", number(worker_cpu(worker)));
		set(line, "state", json_string(c->watch[i].stands_still ? "stands still" : "runs"));
		set(line, "connections", number(worker_connections(worker)));
		set(line, "busy", number(worker_busy(worker)));
		set(line, "requests", number(counters_get(counters, COUNTER_requests)));
		set(line, "turns", number(counters_get(counters, COUNTER_turns)));
		append(list, line);
	}
	return list;
}

static void add_counter(
	json_t *list, const char *part, const char *name, const char *text, uint64_t value)
{
	json_t *line = json_object();
	set(line, "part", json_string(part));
	set(line, "counter", json_string(name));
	set(line, "value", number(value));
	set(line, "text", json_string(text));
	append(list, line);
}

static void add_worker_counters(struct control *c, json_t *list)
{
	for (int which = 0; which < COUNTER_COUNT; which++) {
		uint64_t sum = 0;
		for (unsigned i = 0; i < c->worker_count; i++)
			sum += counters_get(worker_counters(c->workers[i]), (enum counter)which);
		add_counter(list, "worker", counters_names[which], counters_texts[which], sum);
	}
}

static void add_socket_counters(struct control *c, json_t *list)
{
	for (int which = 0; which < SOCKETS_COUNTERS_COUNT; which++) {
		uint64_t sum = 0;
		for (unsigned i = 0; i < c->worker_count; i++)
			sum += sockets_stats(proxy_inner(worker_outer(c->workers[i])))
				       ->counters[which];
		add_counter(list, "sockets", sockets_counter_name((enum sockets_counter)which),
			sockets_counter_text((enum sockets_counter)which), sum);
	}
}

static void add_proxy_counters(struct control *c, json_t *list)
{
	for (int which = 0; which < PROXY_COUNTERS_COUNT; which++) {
		enum proxy_counter counter = (enum proxy_counter)which;
		uint64_t sum = 0;
		for (unsigned i = 0; i < c->worker_count; i++)
			sum += proxy_counted(worker_driver(c->workers[i]), counter);
		add_counter(list, "proxy", proxy_counter_name(counter), proxy_counter_text(counter),
			sum);
	}
}

// Those of the ports, the network and TCP, with `driver: dpdk`.
static void add_port_counters(struct control *c, json_t *list)
{
#define ADD(part, PART, stats_of) \
	for (int which = 0; which < PART##_COUNTERS_COUNT; which++) { \
		uint64_t sum = 0; \
		for (unsigned i = 0; i < c->worker_count; i++) \
			sum += (stats_of)->counters[which]; \
		add_counter( \
			list, #part, part##_counter_name(which), part##_counter_text(which), sum); \
	}
	if (c->started->driver != CONFIG_DRIVER_DPDK)
		return;
	ADD(ethdev, ETHDEV, ethdev_stats(ethdev_worker(c->ports.devices, i)))
	ADD(net, NET, net_stats(proxy_inner(worker_driver(c->workers[i]))))
	ADD(tcp, TCP, net_tcp_stats(proxy_inner(worker_driver(c->workers[i]))))
#undef ADD
}

static void add_origin_counters(struct control *c, json_t *list)
{
	struct origin_counters sum = {0};
	for (unsigned i = 0; i < c->worker_count; i++) {
		const struct origin_counters *of = origin_counters(worker_origin(c->workers[i]));
#define X(name, text) sum.name += of->name;
		ORIGIN_COUNTERS(X)
#undef X
	}
#define X(name, text) add_counter(list, "origin", #name, text, sum.name);
	ORIGIN_COUNTERS(X)
#undef X
}

static void add_tls_counters(struct control *c, json_t *list, const char *part,
	const struct stream_driver *(*driver)(const struct worker *worker))
{
	struct tls_counters sum = {0};
	for (unsigned i = 0; i < c->worker_count; i++) {
		const struct tls_counters *of = tls_counters(driver(c->workers[i]));
#define X(name, text) sum.name += of->name;
		TLS_COUNTERS(X)
#undef X
	}
#define X(name, text) add_counter(list, part, #name, text, sum.name);
	TLS_COUNTERS(X)
#undef X
}

json_t *show_counters(struct control *c)
{
	json_t *list = json_array();
	const struct claims_counters *claims = claims_counters(c->claims);
	add_worker_counters(c, list);
	add_socket_counters(c, list);
	add_proxy_counters(c, list);
	add_port_counters(c, list);
	add_origin_counters(c, list);
	add_tls_counters(c, list, "tls", worker_tls);
	add_tls_counters(c, list, "visitor_tls", worker_visitor_tls);
#define X(name, text) add_counter(list, "claims", #name, text, claims->name);
	CLAIMS_COUNTERS(X)
#undef X
	if (c->appliance)
		appliance_add_counters(c, list, add_counter);
	const struct store_status *store = store_poll(c->store, clock_now_ms(&c->clock));
	add_counter(list, "store", "commits", "transactions written", store->commits_total);
	add_counter(list, "store", "failures", "transactions that failed", store->failures_total);
	add_counter(list, "store", "unsaved", "records that could not be written yet",
		store->unsaved_count);
	add_counter(list, "control", "ended", "sessions in the set of those that ended early",
		ended_count(c->words.ended));
	add_counter(list, "control", "left", "tickets in the set of those that were given back",
		ended_count(c->words.left));
	add_counter(list, "control", "stalls", "times that a worker stood still", c->stalls_total);
	add_counter(list, "control", "log_lost", "log lines lost: stderr could not take them",
		log_lost());
	return list;
}

json_t *show_store(struct control *c)
{
	const struct store_status *status = store_poll(c->store, clock_now_ms(&c->clock));
	json_t *store = json_object();
	set(store, "state", json_string(status->is_unsaved ? "unsaved" : "saved"));
	set(store, "unsaved", number(status->unsaved_count));
	set(store, "since",
		status->is_unsaved ? number(status->unsaved_since_ms / 1000) : json_null());
	set(store, "error", status->error[0] ? json_string(status->error) : json_null());
	return store;
}

// What all workers together have to do with the server at `index` of the table.
static struct origin_server_stat server_figures(
	struct control *c, const struct origin_table *table, uint32_t index)
{
	struct origin_server_stat sum = {0}, one;
	uint64_t now_us = clock_monotonic_us();
	for (unsigned i = 0; i < c->worker_count; i++) {
		const struct origin *origin = worker_origin(c->workers[i]);
		if (!origin_server_stat(origin, index, table->servers[index].id, now_us, &one))
			continue;
		sum.exchanges += one.exchanges;
		sum.kept += one.kept;
		if (one.aside_us > sum.aside_us)
			sum.aside_us = one.aside_us;
		if (one.tls_fault)
			sum.tls_fault = one.tls_fault;
	}
	return sum;
}

static void add_server(struct control *c, json_t *list, const struct origin_table *table,
	const struct origin_table_origin *origin, uint32_t index)
{
	const struct origin_table_server *server = &table->servers[index];
	struct origin_server_stat figures = server_figures(c, table, index);
	const char *tls = !server->tls        ? "no"
			  : figures.tls_fault ? fault_text(figures.tls_fault)
					      : "yes";
	json_t *line = json_object();
	set(line, "site", json_stringn(origin->name.at, origin->name.len));
	set(line, "server", json_stringn(server->name.at, server->name.len));
	set(line, "requests", number(figures.exchanges));
	set(line, "kept", number(figures.kept));
	set(line, "state", json_string(figures.aside_us ? "set aside" : "in use"));
	set(line, "tls", json_string(tls));
	append(list, line);
}

json_t *show_origin(struct control *c)
{
	json_t *list = json_array();
	const struct snapshot *snapshot = atomic_load(&c->words.current);
	const struct origin_table *table = snapshot->origins;
	for (uint32_t i = 0; i < table->origin_count; i++) {
		const struct origin_table_origin *origin = &table->origins[i];
		for (uint32_t j = 0; j < origin->server_count; j++)
			add_server(c, list, table, origin, origin->server_first + j);
	}
	return list;
}

// Of a cluster: by how many of all appliances a secret is known, and who is waited for.
static void set_known(json_t *line, struct control *c, const struct secrets_view *secret)
{
	uint32_t known, all;
	const char *awaited;
	const bool is_told = appliance_told(c, &known, &all, &awaited) == secret->id &&
			     secret->state == SECRETS_TOLD;
	set(line, "known_by", is_told ? number(known) : json_null());
	set(line, "of", is_told ? number(all) : json_null());
	set(line, "waits_for", is_told && known < all ? json_string(awaited) : json_null());
}

json_t *show_secrets(struct control *c)
{
	static const char *const states[] = {[SECRETS_NEXT] = "next",
		[SECRETS_CURRENT] = "current",
		[SECRETS_OLD] = "old",
		[SECRETS_TOLD] = "told"};
	struct secrets_view views[SECRETS_MAX];
	uint32_t count = secrets_list(c->secrets, views);
	json_t *list = json_array();
	for (uint32_t i = 0; i < count; i++) {
		json_t *line = json_object();
		set(line, "secret", number(views[i].id));
		set(line, "state", json_string(states[views[i].state]));
		set(line, "created", number(views[i].created_s));
		set(line, "retires",
			views[i].state == SECRETS_OLD ? number(views[i].retire_s) : json_null());
		if (c->appliance)
			set_known(line, c, &views[i]);
		append(list, line);
	}
	return list;
}

json_t *show_cluster(struct control *c)
{
	if (c->appliance)
		return appliance_show(c);
	json_t *cluster = json_object();
	set(cluster, "appliances", number(1));
	set(cluster, "now", number(clock_now_ms(&c->clock) / 1000));
	set(cluster, "started", number(c->started_ms / 1000));
	set(cluster, "system_clock_ahead_ms", json_integer(c->clock.behind_ms));
	set(cluster, "store", show_store(c));
	return cluster;
}

// Where the holder of a ticket stands, by the words of its line, as a worker would see it.
static void set_place(json_t *all, const struct place_line *line, uint64_t key, bool is_left)
{
	uint64_t rank;
	bool exact = place_rank(line, key, &rank);
	uint64_t threshold = atomic_load(&line->threshold), floor = atomic_load(&line->floor);
	uint64_t before = atomic_load(&line->threshold_rank);
	const char *stands = key < floor       ? "lapsed or used"
			     : is_left         ? "given back"
			     : key < threshold ? "called"
					       : "waiting";
	set(all, "stands", json_string(stands));
	set(all, "position", rank == PLACE_UNKNOWN ? json_null() : number(rank + 1));
	set(all, "ahead",
		key < threshold || rank < before ? number(0)
		: rank == PLACE_UNKNOWN          ? json_null()
						 : number(rank - before));
	set(all, "exact", json_boolean(exact));
}

json_t *show_token(struct control *c, const struct token *token, bool is_signed)
{
	const struct control_room *room = rooms_find_line(c, token->line_id);
	json_t *all = json_object();
	static const char *const kinds[] = {[TOKEN_TICKET] = "ticket",
		[TOKEN_PASS] = "pass",
		[TOKEN_INVITATION] = "invitation"};
	set(all, "kind", json_string(kinds[token->kind]));
	set(all, "signed", json_boolean(is_signed));
	set(all, "secret", number(token->secret_id));
	set(all, "room", room ? json_string(room->name) : json_null());
	set_key(all, token->kind == TOKEN_PASS ? "session" : "key", token->key);
	set_key(all, "visitor", token->visitor);
	set(all, "issued", number(token->issued));
	if (token->kind == TOKEN_TICKET) {
		set(all, "slot_ms", number(place_slot(token->key) * PLACE_SLOT_MS));
		if (room)
			set_place(all, room->line, token->key,
				ended_has(c->words.left, token->visitor));
		return all;
	}
	set(all, "expires", token->expires ? number(token->expires) : json_null());
	if (token->kind == TOKEN_INVITATION)
		return all;
	const char *stands = token->expires <= clock_now_ms(&c->clock) / 1000 ? "run out"
			     : ended_has(c->words.ended, token->key)          ? "ended"
									      : "inside";
	set(all, "stands", json_string(stands));
	return all;
}
