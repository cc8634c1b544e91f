// One `name` for each distinct host of the configuration; a table is put together from them when
// asked for.

#include "controlplane/resolve.h"

#include "controlplane/log.h"

#include <event2/dns.h>
#include <event2/util.h>
#include <xxhash.h>

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
	struct name *next;
	char *host;
	struct resolve *owner;
	struct evdns_getaddrinfo_request *request; // under way, or NULL
	bool is_literal, is_wanted, is_failing;
	unsigned address_count;
	uint8_t addresses[RESOLVE_ADDRESSES_MAX][16]; // sorted
};

struct resolve {
	struct event_base *base;
	struct evdns_base *dns;
	struct event *timer, *tell;
	void (*changed)(void *context);
	void *context;
	const struct config *config;
	struct trusts *trusts;
	struct name *names;
	uint64_t generation;
};

static void ask(struct name *name);

// The hosts file may have changed since it was read.
static void load_hosts(struct resolve *resolve)
{
	evdns_base_clear_host_addresses(resolve->dns);
	evdns_base_load_hosts(resolve->dns, "/etc/hosts");
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	struct resolve *resolve = context;
	load_hosts(resolve);
	for (struct name *name = resolve->names; name; name = name->next)
		if (name->is_wanted && !name->is_literal && !name->request)
			ask(name);
}

static void on_tell(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	struct resolve *resolve = context;
	resolve->changed(resolve->context);
}

int resolve_create(struct event_base *base, void (*changed)(void *context), void *context,
	struct resolve **resolve)
{
	struct resolve *r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct resolve){.base = base, .changed = changed, .context = context};
	// No resolver configured is no failure: names of the hosts file still resolve.
	r->dns = evdns_base_new(base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
	if (!r->dns)
		r->dns = evdns_base_new(base, 0);
	r->timer = event_new(base, -1, EV_PERSIST, on_timer, r);
	r->tell = event_new(base, -1, 0, on_tell, r);
	struct timeval every = {RESOLVE_EVERY_S, 0};
	if (!r->dns || !r->timer || !r->tell || event_add(r->timer, &every) < 0) {
		resolve_destroy(r);
		return -ENOMEM;
	}
	*resolve = r;
	return 0;
}

void resolve_destroy(struct resolve *resolve)
{
	if (!resolve)
		return;
	if (resolve->timer)
		event_free(resolve->timer);
	if (resolve->tell)
		event_free(resolve->tell);
	for (struct name *name = resolve->names; name; name = name->next)
		if (name->request)
			evdns_getaddrinfo_cancel(name->request);
	if (resolve->dns)
		evdns_base_free(resolve->dns, 1);
	event_base_loop(resolve->base, EVLOOP_NONBLOCK); // cancelled requests come back here
	for (struct name *name = resolve->names, *next; name; name = next) {
		next = name->next;
		free(name->host);
		free(name);
	}
	trusts_free(resolve->trusts);
	free(resolve);
}

static int compare_addresses(const void *a, const void *b)
{
	return memcmp(a, b, 16);
}

static void map_ipv4(const struct in_addr *from, uint8_t ip[16])
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + 12, from, 4);
}

static unsigned copy_addresses(const struct evutil_addrinfo *info, uint8_t (*to)[16])
{
	unsigned count = 0;
	for (; info && count < RESOLVE_ADDRESSES_MAX; info = info->ai_next) {
		if (info->ai_family == AF_INET)
			map_ipv4(&((struct sockaddr_in *)info->ai_addr)->sin_addr, to[count++]);
		else if (info->ai_family == AF_INET6)
			memcpy(to[count++], &((struct sockaddr_in6 *)info->ai_addr)->sin6_addr, 16);
	}
	qsort(to, count, 16, compare_addresses);
	return count;
}

static void on_answer(int error, struct evutil_addrinfo *info, void *context)
{
	struct name *name = context;
	name->request = NULL;
	uint8_t found[RESOLVE_ADDRESSES_MAX][16];
	unsigned count = error ? 0 : copy_addresses(info, found);
	if (info)
		evutil_freeaddrinfo(info);
	if (error == EVUTIL_EAI_CANCEL)
		return;
	if (count == 0) {
		if (!name->is_failing)
			log_warning("origin server %s does not resolve: %s", name->host,
				error ? evutil_gai_strerror(error) : "no address");
		name->is_failing = true;
		return;
	}
	name->is_failing = false;
	if (count == name->address_count && memcmp(found, name->addresses, count * 16) == 0)
		return;
	memcpy(name->addresses, found, count * 16);
	name->address_count = count;
	struct timeval now = {0, 0};
	event_add(name->owner->tell, &now);
}

static void ask(struct name *name)
{
	struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	// May answer before it returns, with no request to remember then.
	struct evdns_getaddrinfo_request *request =
		evdns_getaddrinfo(name->owner->dns, name->host, NULL, &hints, on_answer, name);
	if (request)
		name->request = request;
}

static struct name *find(struct resolve *resolve, const char *host)
{
	struct name *name = resolve->names;
	while (name && strcmp(name->host, host) != 0)
		name = name->next;
	return name;
}

static void add_name(struct resolve *resolve, const char *host)
{
	struct name *name = find(resolve, host);
	if (!name) {
		name = calloc(1, sizeof(*name));
		if (!name || !(name->host = strdup(host)))
			abort(); // control without memory for a name: nothing can go on
		name->owner = resolve;
		name->next = resolve->names;
		resolve->names = name;
		struct in_addr ipv4;
		name->is_literal = true;
		if (inet_pton(AF_INET, host, &ipv4) == 1)
			map_ipv4(&ipv4, name->addresses[0]);
		else if (inet_pton(AF_INET6, host, name->addresses[0]) != 1)
			name->is_literal = false;
		name->address_count = name->is_literal;
	}
	name->is_wanted = true;
	if (!name->is_literal && !name->request)
		ask(name);
}

void resolve_set_config(struct resolve *resolve, const struct config *config, struct trusts *trusts)
{
	trusts_free(resolve->trusts);
	resolve->trusts = trusts;
	resolve->config = config;
	load_hosts(resolve);
	for (struct name *name = resolve->names; name; name = name->next)
		name->is_wanted = false;
	for (uint32_t i = 0; i < config->sites.count; i++) {
		const struct config_servers *servers = &config->sites.at[i].origin->servers;
		for (uint32_t j = 0; j < servers->count; j++)
			add_name(resolve, servers->at[j].host);
	}
}

// A table, its arrays and texts in one allocation.
struct whole {
	struct origin_table table;
	struct origin_table_limits *limits; // one an origin
	struct origin_table_origin *origins;
	struct origin_table_server *servers;
	struct tls_target *targets; // of configured servers; each holds its trust
	uint32_t target_count;
};

static struct whole *allocate(const struct config *config)
{
	uint32_t server_max = 0;
	for (uint32_t i = 0; i < config->sites.count; i++)
		server_max += config->sites.at[i].origin->servers.count;
	struct whole *whole = calloc(1, sizeof(*whole));
	if (!whole)
		return NULL;
	whole->origins = calloc(config->sites.count, sizeof(*whole->origins));
	whole->servers = calloc(server_max * RESOLVE_ADDRESSES_MAX, sizeof(*whole->servers));
	whole->targets = calloc(server_max, sizeof(*whole->targets));
	whole->limits = calloc(config->sites.count, sizeof(*whole->limits));
	if (!whole->origins || !whole->servers || !whole->targets || !whole->limits) {
		resolve_free_table(&whole->table);
		return NULL;
	}
	whole->table.origins = whole->origins;
	whole->table.servers = whole->servers;
	return whole;
}

static struct span copy_text(const char *text)
{
	char *copy = strdup(text);
	return (struct span){copy, copy ? strlen(copy) : 0};
}

// What is asked of a server's certificate; NULL: it speaks no TLS.
static const struct tls_target *add_target(struct whole *whole, struct trust *trust,
	const struct config_tls *tls, const struct config_server *server)
{
	if (!trust)
		return NULL;
	struct tls_target *target = &whole->targets[whole->target_count++];
	target->trust = trust_hold(trust);
	target->name = strdup(tls->name ? tls->name : server->host);
	if (!target->name)
		abort(); // control without memory for a name: nothing can go on
	return target;
}

// A server whose certificate is verified otherwise is another one: what was known of it is not to
// be relied on.
static uint64_t mix_target(uint64_t hash, const struct tls_target *target)
{
	if (!target)
		return hash;
	return XXH3_64bits_withSeed(
		target->name, strlen(target->name), hash ^ trust_hash(target->trust));
}

static void add_server(struct whole *whole, const struct config_server *server,
	const struct tls_target *target, const struct name *name, unsigned address)
{
	struct origin_table_server *to = &whole->servers[whole->table.server_count++];
	memcpy(to->address.ip, name->addresses[address], 16);
	to->address.port = server->port;
	to->name = copy_text(server->text);
	to->tls = target;
	uint64_t hash = XXH3_64bits(server->text, strlen(server->text));
	hash = XXH3_64bits_withSeed(to->address.ip, 16, hash ^ server->port);
	hash = mix_target(hash, target);
	to->id = hash ? hash : 1;
}

static struct origin_table_limits limits_of(const struct config_origin *from)
{
	return (struct origin_table_limits){
		.connect_us = (uint32_t)(from->connect_timeout_ms * 1000),
		.answer_us = (uint32_t)(from->answer_timeout_ms * 1000),
		.idle_us = (uint32_t)(from->idle_timeout_ms * 1000),
		.idle_max = from->idle_timeout_ms ? (uint32_t)from->idle_max : 0,
		.faults_max = (uint32_t)from->fails,
		.aside_us = (uint32_t)(from->retry_ms * 1000)};
}

struct origin_table *resolve_table(struct resolve *resolve)
{
	const struct config *config = resolve->config;
	struct whole *whole = allocate(config);
	if (!whole)
		return NULL;
	whole->table.generation = ++resolve->generation;
	for (uint32_t i = 0; i < config->sites.count; i++) {
		const struct config_site *site = &config->sites.at[i];
		struct origin_table_origin *origin = &whole->origins[whole->table.origin_count++];
		whole->limits[i] = limits_of(site->origin);
		origin->limits = &whole->limits[i];
		origin->id = XXH3_64bits(site->name, strlen(site->name));
		origin->name = copy_text(site->name);
		origin->balance = site->origin->balance == CONFIG_BALANCE_SESSION
					  ? ORIGIN_TABLE_SESSION
					  : ORIGIN_TABLE_LEAST;
		origin->server_first = whole->table.server_count;
		for (uint32_t j = 0; j < site->origin->servers.count; j++) {
			const struct config_server *server = &site->origin->servers.at[j];
			const struct name *name = find(resolve, server->host);
			assert(name);
			const struct tls_target *target = add_target(
				whole, trusts_of(resolve->trusts, i), site->origin->tls, server);
			for (unsigned k = 0; k < name->address_count; k++)
				add_server(whole, server, target, name, k);
		}
		origin->server_count = whole->table.server_count - origin->server_first;
	}
	return &whole->table;
}

void resolve_free_table(const struct origin_table *table)
{
	if (!table)
		return;
	struct whole *whole = (struct whole *)(uintptr_t)table;
	for (uint32_t i = 0; i < table->origin_count; i++)
		free((char *)(uintptr_t)whole->origins[i].name.at);
	for (uint32_t i = 0; i < table->server_count; i++)
		free((char *)(uintptr_t)whole->servers[i].name.at);
	for (uint32_t i = 0; i < whole->target_count; i++) {
		trust_give((struct trust *)(uintptr_t)whole->targets[i].trust);
		free((char *)(uintptr_t)whole->targets[i].name);
	}
	free(whole->targets);
	free(whole->limits);
	free(whole->origins);
	free(whole->servers);
	free(whole);
}

unsigned resolve_missing(const struct resolve *resolve)
{
	unsigned missing = 0;
	for (const struct name *name = resolve->names; name; name = name->next)
		missing += name->is_wanted && name->address_count == 0;
	return missing;
}
