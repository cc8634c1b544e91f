// The servers that a worker knows, found by id when the table changes and by their place in the
// table when a request comes. A server that is no longer listed stays until its last exchange has
// ended; its slot is taken by the next table that needs one.

#include "dataplane/origin/server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

int server_set_init(struct server_set *set, uint32_t max)
{
	*set = (struct server_set){.max = max};
	set->items = calloc(max, sizeof(*set->items)); // COLD: at start
	set->listed = calloc(max, sizeof(*set->listed)); // COLD: at start
	if (set->items && set->listed)
		return 0;
	server_set_fini(set);
	return -ENOMEM;
}

void server_set_fini(struct server_set *set)
{
	for (uint32_t i = 0; set->items && i < set->max; i++)
		peer_forget(&set->items[i].peer);
	free(set->items);
	free(set->listed);
	*set = (struct server_set){0};
}

static struct server *find(const struct server_set *set, uint64_t id)
{
	for (uint32_t i = 0; i < set->max; i++)
		if (set->items[i].id == id)
			return &set->items[i];
	return NULL;
}

void server_set_unlist(struct server_set *set, const struct origin_table *table)
{
	for (uint32_t i = 0; i < set->max; i++) {
		set->items[i].is_listed = false;
		set->items[i].tls = NULL; // it dies with the table before
	}
	for (uint32_t k = 0; k < table->server_count; k++) {
		struct server *server = find(set, table->servers[k].id);
		if (server)
			server->is_listed = true;
	}
}

static void set_aside_until(struct server *server, uint64_t until_us)
{
	atomic_store_explicit(&server->aside_until_us, until_us, memory_order_relaxed);
}

// A slot for a new server: free, or of one that nobody needs any more.
static struct server *take_slot(struct server_set *set)
{
	for (uint32_t i = 0; i < set->max; i++) {
		struct server *server = &set->items[i];
		if (!server->is_listed && server->exchanges == 0 && server->kept_count == 0)
			return server;
	}
	return NULL;
}

// Begin with a server. Its id comes last: what is read beside it is then its own.
static void take_in(struct server *server, const struct origin_table_server *listed)
{
	peer_forget(&server->peer);
	atomic_store_explicit(&server->peer.failures, 0, memory_order_relaxed);
	atomic_store_explicit(&server->peer.fault, 0, memory_order_relaxed);
	server->address = listed->address;
	TAILQ_INIT(&server->kept);
	server_answered(server);
	atomic_store_explicit(&server->id, listed->id, memory_order_release);
}

uint32_t server_set_list(struct server_set *set, const struct origin_table *table)
{
	uint32_t left_out = 0;
	set->table = table;
	for (uint32_t k = 0; k < table->server_count; k++) {
		const struct origin_table_server *listed = &table->servers[k];
		assert(listed->id != 0);
		struct server *server = k < set->max ? find(set, listed->id) : NULL;
		if (!server && k < set->max && (server = take_slot(set)))
			take_in(server, listed);
		if (server) {
			server->is_listed = true;
			server->tls = listed->tls;
		}
		if (k < set->max)
			atomic_store_explicit(&set->listed[k], server, memory_order_release);
		left_out += !server;
	}
	return left_out;
}

// The finaliser of splitmix64: every bit of the input moves every bit of the output.
static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

// How good a choice is; smaller is better.
struct rank {
	uint32_t health;
	uint64_t weight;
};

static struct rank rank_of(const struct server *server, uint64_t session, uint64_t now_us)
{
	bool is_aside = server->aside_us && now_us < server->aside_until_us;
	if (session)
		return (struct rank){is_aside, ~mix(session ^ mix(server->id))};
	// One whose time is up goes before the healthy: somebody has to try it.
	return (struct rank){is_aside ? 2 : server->aside_us == 0, server->exchanges};
}

static bool is_excepted(const struct server *server, const struct server *const *except)
{
	for (unsigned i = 0; i < SERVER_EXCEPT_MAX; i++)
		if (except[i] == server)
			return true;
	return false;
}

struct server *server_choose(struct server_set *set, const struct origin_table_origin *origin,
	uint64_t session, uint64_t now_us, const struct server *const *except)
{
	struct server *best = NULL;
	struct rank best_rank = {0};
	if (origin->balance != ORIGIN_TABLE_SESSION)
		session = 0;
	uint32_t at = set->rotation < origin->server_count ? set->rotation : 0;
	set->rotation = at + 1;
	for (uint32_t n = 0; n < origin->server_count; n++, at++) {
		if (at == origin->server_count)
			at = 0;
		uint32_t k = origin->server_first + at;
		struct server *server = k < set->max ? set->listed[k] : NULL;
		if (!server || is_excepted(server, except))
			continue;
		struct rank rank = rank_of(server, session, now_us);
		if (!best || rank.health < best_rank.health ||
			(rank.health == best_rank.health && rank.weight < best_rank.weight)) {
			best = server;
			best_rank = rank;
		}
	}
	if (best && best->aside_us && now_us >= best->aside_until_us) {
		// This request tries it; to all others it stays set aside.
		best->is_tried = true;
		set_aside_until(best, now_us + best->aside_us);
	}
	return best;
}

bool server_failed(struct server *server, bool is_hard, const struct origin_table_limits *limits,
	uint64_t now_us)
{
	if (server->aside_us == 0) {
		if (!is_hard && ++server->faults < limits->faults_max)
			return false;
		server->aside_us = limits->aside_us;
	} else if (server->is_tried) {
		uint64_t most_us = (uint64_t)limits->aside_us * SERVER_ASIDE_GROWTH;
		server->aside_us = server->aside_us * 2 < most_us ? server->aside_us * 2 : most_us;
	} else {
		return false; // one of many that were on their way when it was set aside
	}
	server->is_tried = false;
	set_aside_until(server, now_us + server->aside_us);
	return true;
}

void server_answered(struct server *server)
{
	server->faults = 0;
	server->aside_us = 0;
	set_aside_until(server, 0);
	server->is_tried = false;
}
