// The rules: one function each, run over the whole, over each site or over each room.
//
// They also run when values could not be read, so that one report says all. What is required and
// missing is NULL then; anything else has its default.

#include "config/check.h"

#include "config/key.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DESCRIPTORS_SPARE 256 // listeners, rings, store, log, admin clients and their like
#define SOCKET_NAME "/admin.socket"
#define SOCKET_PATH_MAX 107 // sun_path less its NUL

// One text that must be the only one of its kind.
struct name {
	const char *text;
	const void *base;
	const char *key;
	uint32_t index; // of an element, or READING_WHOLE
	uint32_t order; // in which it was collected: that of the file
};

struct names {
	struct name *at;
	uint32_t count;
};

static struct names take_names(struct reading *r, uint32_t max)
{
	return (struct names){.at = arena_take(r->scratch, max * sizeof(struct name))};
}

static void add_name(
	struct names *names, const char *text, const void *base, const char *key, uint32_t index)
{
	if (!text)
		return;
	names->at[names->count] = (struct name){text, base, key, index, names->count};
	names->count++;
}

static int by_text(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int order = strcmp(x->text, y->text);
	if (order)
		return order;
	return x->order < y->order ? -1 : 1;
}

// Report all but the first of those that are equal.
static void check_twins(struct reading *r, struct names *names, const char *what)
{
	const struct name *first = names->at;
	qsort(names->at, names->count, sizeof(names->at[0]), by_text);
	for (const struct name *name = names->at; name < names->at + names->count; name++) {
		if (strcmp(name->text, first->text) != 0)
			first = name;
		else if (name != first)
			reading_fail(r, name->base, name->key, name->index,
				"%s, first on line %u; allowed: once", what,
				reading_line(r, first->base, first->key, first->index));
	}
}

// The whole.

// The cores that this process may run on, as in "0-3, 8".
static const char *print_cores(struct reading *r)
{
	const size_t bytes = 256;
	char *text = arena_take(r->scratch, bytes);
	size_t len = 0;
	for (int first = 0, next; first < CPU_SETSIZE; first = next) {
		const bool is_there = CPU_ISSET(first, &r->machine->cores);
		for (next = first + 1;
			next < CPU_SETSIZE && CPU_ISSET(next, &r->machine->cores) == is_there;)
			next++;
		if (is_there && len + 32 < bytes) // enough to see how they are numbered
			len += (size_t)snprintf(text + len, bytes - len,
				next > first + 1 ? "%s%d-%d" : "%s%d", len ? ", " : "", first,
				next - 1);
	}
	return text;
}

static void check_worker_cores(struct reading *r)
{
	const char *cores = print_cores(r);
	const struct config_cores *workers = &r->config->workers;
	struct names names = take_names(r, workers->count);
	for (uint32_t i = 0; i < workers->count; i++) {
		char *text = arena_take(r->scratch, 32);
		snprintf(text, 32, "%lu", workers->at[i]);
		add_name(&names, text, r->config, "workers", i);
		if (!CPU_ISSET(workers->at[i], &r->machine->cores))
			reading_fail(r, r->config, "workers", i,
				"is not a core that this process may run on; allowed: %s", cores);
	}
	check_twins(r, &names, "is named twice");
}

static void check_descriptors(struct reading *r)
{
	const struct config *config = r->config;
	uint64_t spare = config->origin_connections + DESCRIPTORS_SPARE;
	uint64_t needed = config->connections + spare;
	if (config->driver == CONFIG_DRIVER_SOCKETS && needed > r->machine->descriptors)
		reading_fail(r, config, "connections", READING_WHOLE,
			"and origin_connections need %lu descriptors; allowed here: %lu", needed,
			r->machine->descriptors);
	if (config->driver == CONFIG_DRIVER_DPDK && spare > r->machine->descriptors)
		reading_fail(r, config, "origin_connections", READING_WHOLE,
			"needs %lu descriptors; allowed here: %lu", spare, r->machine->descriptors);
}

static void check_memory(struct reading *r)
{
	const struct config_bill *bill = &r->machine->bill;
	uint64_t needed =
		config_bill_total(r->config, bill, config_worker_count(r->config, r->machine));
	if (needed > r->machine->memory_bytes)
		reading_fail(r, r->config, "connections", READING_WHOLE,
			"and the other limits need %lu bytes; allowed here: %lu", needed,
			r->machine->memory_bytes);
}

static void check_per_source(struct reading *r)
{
	if (r->config->connections_per_source > r->config->connections)
		reading_fail(r, r->config, "connections_per_source", READING_WHOLE,
			"is above connections; allowed: up to %lu", r->config->connections);
}

static void check_tls_connections(struct reading *r)
{
	if (r->config->tls_connections > r->config->connections)
		reading_fail(r, r->config, "tls_connections", READING_WHOLE,
			"is above connections; allowed: up to %lu", r->config->connections);
}

static void check_state(struct reading *r)
{
	size_t max = SOCKET_PATH_MAX - strlen(SOCKET_NAME);
	if (strlen(r->config->state) > max)
		reading_fail(r, r->config, "state", READING_WHOLE,
			"is too long for the socket in it; allowed: %zu bytes", max);
}

static void check_user(struct reading *r)
{
	if (r->config->user && !r->machine->has_user(r->config->user))
		reading_fail(r, r->config, "user", READING_WHOLE,
			"is not a user of this machine; allowed: one that `getent passwd` lists");
}

static void check_listen(struct reading *r)
{
	const struct config_listens *listens = &r->config->listen;
	struct names names = take_names(r, listens->count);
	for (uint32_t i = 0; i < listens->count; i++) {
		const struct config_address *address = &listens->at[i].address;
		char *text = arena_take(r->scratch, INET6_ADDRSTRLEN + 8);
		inet_ntop(AF_INET6, address->ip, text, INET6_ADDRSTRLEN);
		snprintf(text + strlen(text), 8, " %u", address->port);
		add_name(&names, address->text ? text : NULL, &listens->at[i], "address",
			READING_WHOLE);
	}
	check_twins(r, &names, "is listened on twice");
}

static void check_certificate(struct reading *r, const struct config_certificate *files)
{
	struct config_fault fault;
	if (!files->certificate || !files->key || !r->machine->certificate_fault ||
		!r->machine->certificate_fault(files, &fault))
		return;
	if (fault.is_warning)
		reading_warn(r, files, fault.key, READING_WHOLE, "%s", fault.text);
	else
		reading_fail(r, files, fault.key, READING_WHOLE,
			"is no use: %s; allowed: a file as `sluice keys` says of it", fault.text);
}

static void check_certificates(struct reading *r)
{
	for (uint32_t i = 0; i < r->config->listen.count; i++)
		for (uint32_t j = 0; j < r->config->listen.at[i].tls.count; j++)
			check_certificate(r, &r->config->listen.at[i].tls.at[j]);
}

static void check_head_limits(struct reading *r)
{
	const struct config_http *http = r->config->http;
	uint64_t buffer_bytes = r->config->buffers->size_bytes;
	if (http->head_bytes > buffer_bytes)
		reading_fail(r, http, "head_max", READING_WHOLE,
			"is above buffers.size; allowed: up to %lu", buffer_bytes);
	if (http->line_bytes > http->head_bytes)
		reading_fail(r, http, "line_max", READING_WHOLE,
			"is above http.head_max; allowed: up to %lu", http->head_bytes);
}

static void check_site_names(struct reading *r)
{
	const struct config_sites *sites = &r->config->sites;
	struct names names = take_names(r, sites->count);
	for (uint32_t i = 0; i < sites->count; i++)
		add_name(&names, sites->at[i].name, &sites->at[i], "name", READING_WHOLE);
	check_twins(r, &names, "names two sites");
}

static void check_hosts(struct reading *r)
{
	const struct config_sites *sites = &r->config->sites;
	uint32_t count = 0;
	for (uint32_t i = 0; i < sites->count; i++)
		count += sites->at[i].hosts.count;
	if (count > CONFIG_HOSTS_MAX)
		reading_fail(r, r->config, "sites", READING_WHOLE,
			"have %u hosts; allowed: %u together", count, CONFIG_HOSTS_MAX);

	struct names names = take_names(r, count);
	for (uint32_t i = 0; i < sites->count; i++)
		for (uint32_t j = 0; j < sites->at[i].hosts.count; j++)
			add_name(&names, sites->at[i].hosts.at[j], &sites->at[i], "hosts", j);
	check_twins(r, &names, "is a host twice");
}

static uint32_t count_rooms(const struct config *config)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < config->sites.count; i++)
		count += config->sites.at[i].rooms.count;
	return count;
}

static void check_room_count(struct reading *r)
{
	uint32_t rooms = count_rooms(r->config);
	uint64_t lines = config_line_count(r->config);
	if (rooms > CONFIG_ROOMS_MAX)
		reading_fail(r, r->config, "sites", READING_WHOLE,
			"have %u rooms; allowed: %u together", rooms, CONFIG_ROOMS_MAX);
	else if (lines > CONFIG_ROOMS_MAX)
		reading_fail(r, r->config, "sites", READING_WHOLE,
			"have %lu rooms and lanes; allowed: %u together", lines, CONFIG_ROOMS_MAX);
}

static void check_room_names(struct reading *r)
{
	const struct config_sites *sites = &r->config->sites;
	struct names names = take_names(r, count_rooms(r->config));
	for (uint32_t i = 0; i < sites->count; i++) {
		const struct config_rooms *rooms = &sites->at[i].rooms;
		for (uint32_t j = 0; j < rooms->count; j++)
			add_name(&names, rooms->at[j].name, &rooms->at[j], "name", READING_WHOLE);
	}
	check_twins(r, &names, "names two rooms");
}

// A line's id as a text, and behind its end the name.
static void add_line(struct reading *r, struct names *names, const char *name, uint32_t line_id,
	const void *base)
{
	char *text = arena_take(r->scratch, 160);
	snprintf(text, 160, "%08x%c%s", line_id, '\0', name ? name : "");
	add_name(names, name ? text : NULL, base, "name", READING_WHOLE);
}

// Rooms and lanes with one line id would take each other's tickets. Equal names are another rule's.
static void check_line_ids(struct reading *r)
{
	const struct config_sites *sites = &r->config->sites;
	struct names names = take_names(r, (uint32_t)config_line_count(r->config));
	for (uint32_t i = 0; i < sites->count; i++) {
		const struct config_rooms *rooms = &sites->at[i].rooms;
		for (uint32_t j = 0; j < rooms->count; j++) {
			const struct config_room *room = &rooms->at[j];
			add_line(r, &names, room->name, room->line_id, room);
			for (uint32_t k = 0; k < room->lanes.count; k++) {
				const struct config_lane *lane = &room->lanes.at[k];
				add_line(r, &names, lane->full_name, lane->line_id, lane);
			}
		}
	}
	qsort(names.at, names.count, sizeof(names.at[0]), by_text);
	for (uint32_t i = 1; i < names.count; i++) {
		const char *a = names.at[i - 1].text, *b = names.at[i].text;
		if (strcmp(a, b) == 0 && strcmp(a + 9, b + 9) != 0)
			reading_fail(r, names.at[i].base, "name", READING_WHOLE,
				"has the same line id as '%s'; allowed: any other name", a + 9);
	}
}

// Each site.

static void check_servers(struct reading *r, const struct config_site *site)
{
	if (!site->origin)
		return;
	const struct config_servers *servers = &site->origin->servers;
	struct names names = take_names(r, servers->count);
	for (uint32_t i = 0; i < servers->count; i++)
		add_name(&names, servers->at[i].text, site->origin, "servers", i);
	check_twins(r, &names, "is a server twice");
}

// An origin that is sluice itself would go round until connections are exhausted.
static void check_origin_loop(struct reading *r, const struct config_site *site)
{
	const struct config_listens *listens = &r->config->listen;
	for (uint32_t i = 0; site->origin && i < site->origin->servers.count; i++)
		for (uint32_t j = 0; j < listens->count; j++) {
			const char *server = site->origin->servers.at[i].text;
			const char *address = listens->at[j].address.text;
			if (server && address && strcmp(server, address) == 0)
				reading_fail(r, site->origin, "servers", i,
					"is an address that sluice itself listens on");
		}
}

static void check_ca(struct reading *r, const struct config_site *site)
{
	const struct config_tls *tls = site->origin ? site->origin->tls : NULL;
	const char *error = tls && r->machine->ca_error ? r->machine->ca_error(tls->ca) : NULL;
	if (error)
		reading_fail(r, tls, "ca", READING_WHOLE,
			"is no use: %s; allowed: a file of certificates in PEM", error);
}

static bool domain_covers(const char *domain, const char *host)
{
	const char *name = strncmp(host, "*.", 2) == 0 ? host + 2 : host;
	size_t domain_len = strlen(domain), len = strlen(name);
	if (len < domain_len || strcmp(name + len - domain_len, domain) != 0)
		return false;
	return len == domain_len || name[len - domain_len - 1] == '.';
}

// RFC 6265 5.3: a browser drops a cookie whose Domain does not cover the host; and one for a
// top-level domain or an address.
static void check_cookie_domain(struct reading *r, const struct config_site *site)
{
	const char *domain = site->cookie_domain;
	struct in_addr address;
	if (!domain)
		return;
	if (!strchr(domain, '.') || inet_pton(AF_INET, domain, &address) == 1)
		reading_fail(r, site, "cookie_domain", READING_WHOLE,
			"is none that browsers take; allowed: a name with a dot");
	for (uint32_t i = 0; i < site->hosts.count; i++)
		if (site->hosts.at[i] && !domain_covers(domain, site->hosts.at[i]))
			reading_fail(r, site, "cookie_domain", READING_WHOLE,
				"does not cover the host '%s'; allowed: a parent of all hosts",
				site->hosts.at[i]);
}

static char *lowered(struct reading *r, const char *text)
{
	char *copy = arena_copy(r->scratch, text, strlen(text));
	for (char *c = copy; *c; c++)
		if (*c >= 'A' && *c <= 'Z')
			*c |= 0x20;
	return copy;
}

static void check_paths_differ(struct reading *r, const struct config_site *site)
{
	struct names names = take_names(r, site->rooms.count);
	for (uint32_t i = 0; i < site->rooms.count; i++) {
		const struct config_room *room = &site->rooms.at[i];
		const char *path = room->path;
		if (path && !site->case_sensitive)
			path = lowered(r, path);
		add_name(&names, path, room, "path", READING_WHOLE);
	}
	check_twins(r, &names, "is the path of two rooms of the site");
}

// Each room.

static void check_path_start(struct reading *r, const struct config_room *room)
{
	if (room->path && room->path[0] != '/')
		reading_fail(r, room, "path", READING_WHOLE, "must begin with '/'");
}

// The gate compares a path as sent, decoded and resolved; a prefix that these readings can never
// have would guard nothing.
static void check_path_chars(struct reading *r, const struct config_room *room)
{
	const char *bad = room->path ? strpbrk(room->path, "%?#\\") : NULL;
	if (bad)
		reading_fail(r, room, "path", READING_WHOLE,
			"must not contain '%c'; allowed: a path as it is once decoded", *bad);
}

static void check_path_segments(struct reading *r, const struct config_room *room)
{
	for (const char *at = room->path; at && *at;) {
		size_t len = strcspn(++at, "/");
		bool is_dots = (len == 1 || len == 2) && strspn(at, ".") >= len;
		if (is_dots || (len == 0 && *at)) {
			reading_fail(r, room, "path", READING_WHOLE,
				"must not contain '//' nor a segment '.' or '..'");
			return;
		}
		at += len;
	}
}

static void check_path_reserved(struct reading *r, const struct config_room *room)
{
	if (room->path && strncasecmp(room->path, "/.sluice", 8) == 0)
		reading_fail(r, room, "path", READING_WHOLE,
			"begins with /.sluice, which is sluice's own; allowed: any other path");
}

static void check_capacity(struct reading *r, const struct config_room *room)
{
	if (room->capacity > r->config->sessions_max)
		reading_fail(r, room, "capacity", READING_WHOLE,
			"is above sessions_max; allowed: up to %lu", r->config->sessions_max);
}

// Without a capacity, as many sessions run at once as the rate lets in during one.
static void check_rate(struct reading *r, const struct config_room *room)
{
	if (room->capacity || !room->rate.count)
		return;
	uint64_t sessions = room->rate.count * room->session_s * 1000 / room->rate.period_ms;
	if (sessions > r->config->sessions_max)
		reading_fail(r, room, "rate", READING_WHOLE,
			"lets %lu people in within one session; allowed: up to sessions_max, %lu",
			sessions, r->config->sessions_max);
}

static void check_ticket_ttl(struct reading *r, const struct config_room *room)
{
	if (room->ticket_ttl_s < room->claim_s)
		reading_fail(r, room, "ticket_ttl", READING_WHOLE,
			"is shorter than claim; allowed: from %lus", room->claim_s);
}

static void (*const rules[])(struct reading *) = {
	check_worker_cores,
	check_descriptors,
	check_codes, // how much they take
	check_memory,
	check_per_source,
	check_tls_connections,
	check_state,
	check_user,
	check_listen,
	check_certificates,
	check_head_limits,
	check_site_names,
	check_hosts,
	check_room_count,
	check_room_names,
	check_line_ids,
	check_ports,
	check_pages,
	check_pools,
	check_cluster,
};

static void (*const site_rules[])(struct reading *, const struct config_site *) = {
	check_servers,
	check_origin_loop,
	check_ca,
	check_cookie_domain,
	check_paths_differ,
};

static void (*const room_rules[])(struct reading *, const struct config_room *) = {
	check_path_start,
	check_path_chars,
	check_path_segments,
	check_path_reserved,
	check_capacity,
	check_rate,
	check_ticket_ttl,
	check_doors,
};

#define COUNT_OF(array) (sizeof(array) / sizeof(array[0]))

static void check_site(struct reading *r, const struct config_site *site)
{
	for (size_t i = 0; i < COUNT_OF(site_rules); i++)
		site_rules[i](r, site);
	for (uint32_t j = 0; j < site->rooms.count; j++)
		for (size_t i = 0; i < COUNT_OF(room_rules); i++)
			room_rules[i](r, &site->rooms.at[j]);
}

void check_run(struct reading *r)
{
	for (size_t i = 0; i < COUNT_OF(rules); i++)
		rules[i](r);
	for (uint32_t i = 0; i < r->config->sites.count; i++)
		check_site(r, &r->config->sites.at[i]);
}
