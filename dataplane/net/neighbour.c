// Gateways are an array, walked. Hosts are sets of NEIGHBOUR_WAYS by a hash of their address; on a
// link hosts choose their addresses, so somebody could fill one set, and would push out its other
// members: what is lost is that we follow them if they move.
//
// A move is published in a slot by clearing `from`, storing `to`, storing `from`: a reader that
// finds the same `from` before and after has read the `to` that belongs to it.

#include "dataplane/net/neighbour.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct gateway {
	uint8_t ip[16];
	uint8_t mac[6];
	uint16_t port;
	bool has_mac;
	unsigned tries; // questions without an answer
	uint64_t ask_at_us;
};

struct host {
	uint8_t ip[16];
	uint8_t mac[6];
	uint16_t port;
	uint64_t heard_us; // 0: nobody
};

struct neighbours {
	struct neighbour_moves moves;
	unsigned gateway_count;
	struct gateway gateways[ETHDEV_PORTS_MAX * NET_GATEWAYS_MAX];
	uint32_t set_count; // a power of two
	struct host *hosts;
};

static void publish(
	struct neighbour_moves *moves, uint16_t port, const uint8_t from[6], const uint8_t to[6]);

static uint32_t set_count(const struct net_plan *plan)
{
	uint32_t count = 1;
	while (count * NEIGHBOUR_WAYS < plan->neighbours_max)
		count *= 2;
	return count;
}

static size_t hosts_bytes(const struct net_plan *plan)
{
	return sizeof(struct host) * NEIGHBOUR_WAYS * set_count(plan);
}

struct neighbours *neighbour_create(const struct net_plan *plan)
{
	struct neighbours *table = calloc(1, sizeof(*table)); // COLD: at start
	if (!table)
		return NULL;
	table->set_count = set_count(plan);
	table->hosts = calloc(1, hosts_bytes(plan)); // COLD: at start
	if (!table->hosts) {
		free(table);
		return NULL;
	}
	for (uint16_t port = 0; port < plan->port_count; port++) {
		for (unsigned i = 0; i < plan->ports[port].gateway_count; i++) {
			struct gateway *gateway = &table->gateways[table->gateway_count++];
			gateway->port = port;
			memcpy(gateway->ip, plan->ports[port].gateways[i], sizeof(gateway->ip));
		}
	}
	return table;
}

void neighbour_destroy(struct neighbours *table)
{
	if (table)
		free(table->hosts);
	free(table);
}

uint64_t neighbour_bytes(const struct net_plan *plan)
{
	return sizeof(struct neighbours) + hosts_bytes(plan);
}

const struct neighbour_moves *neighbour_moves(const struct neighbours *table)
{
	return &table->moves;
}

static struct gateway *find_gateway(struct neighbours *table, uint16_t port, const uint8_t ip[16])
{
	for (unsigned i = 0; i < table->gateway_count; i++)
		if (table->gateways[i].port == port && memcmp(table->gateways[i].ip, ip, 16) == 0)
			return &table->gateways[i];
	return NULL;
}

static struct host *set_of(struct neighbours *table, uint16_t port, const uint8_t ip[16])
{
	uint64_t words[2];
	memcpy(words, ip, sizeof(words));
	uint64_t hash = (words[0] ^ words[1] ^ port) * UINT64_C(0x9e3779b97f4a7c15);
	return &table->hosts[(hash >> 32 & (table->set_count - 1)) * NEIGHBOUR_WAYS];
}

// The host's entry, or the one it would take.
static struct host *find_host(
	struct neighbours *table, uint16_t port, const uint8_t ip[16], bool *is_found)
{
	struct host *set = set_of(table, port, ip), *oldest = set;
	*is_found = true;
	for (struct host *host = set; host < set + NEIGHBOUR_WAYS; host++) {
		if (host->heard_us && host->port == port && memcmp(host->ip, ip, 16) == 0)
			return host;
		if (host->heard_us < oldest->heard_us)
			oldest = host;
	}
	*is_found = false;
	return oldest;
}

static enum neighbour_news host_heard(struct neighbours *table, uint16_t port, const uint8_t ip[16],
	const uint8_t mac[6], bool asked_us, bool overrides, uint64_t now_us)
{
	bool is_found;
	struct host *host = find_host(table, port, ip, &is_found);
	bool is_old = host->heard_us && now_us - host->heard_us < NEIGHBOUR_KEEP_US;
	if (!is_found) {
		if (!asked_us)
			return NEIGHBOUR_IS_KNOWN;
		*host = (struct host){.port = port, .heard_us = now_us};
		memcpy(host->ip, ip, sizeof(host->ip));
		memcpy(host->mac, mac, sizeof(host->mac));
		return is_old ? NEIGHBOUR_IS_NEW_FOR_OLD : NEIGHBOUR_IS_NEW;
	}
	bool is_same = memcmp(host->mac, mac, sizeof(host->mac)) == 0;
	if (!is_same && !overrides)
		return NEIGHBOUR_IS_KNOWN;
	host->heard_us = now_us;
	if (is_same)
		return NEIGHBOUR_IS_KNOWN;
	if (is_old)
		publish(&table->moves, port, host->mac, mac);
	memcpy(host->mac, mac, sizeof(host->mac));
	return is_old ? NEIGHBOUR_HAS_MOVED : NEIGHBOUR_IS_NEW;
}

enum neighbour_news neighbour_heard(struct neighbours *table, uint16_t port, const uint8_t ip[16],
	const uint8_t mac[6], bool asked_us, bool overrides, uint64_t now_us)
{
	assert(now_us > 0);
	struct gateway *gateway = find_gateway(table, port, ip);
	if (!gateway)
		return host_heard(table, port, ip, mac, asked_us, overrides, now_us);
	bool is_same = gateway->has_mac && memcmp(gateway->mac, mac, sizeof(gateway->mac)) == 0;
	bool has_moved = gateway->has_mac && !is_same;
	if (has_moved && !overrides)
		return NEIGHBOUR_IS_KNOWN;
	gateway->tries = 0;
	gateway->ask_at_us = now_us + NEIGHBOUR_FRESH_US;
	if (is_same)
		return NEIGHBOUR_IS_KNOWN;
	if (has_moved)
		publish(&table->moves, port, gateway->mac, mac);
	memcpy(gateway->mac, mac, sizeof(gateway->mac));
	gateway->has_mac = true;
	return has_moved ? NEIGHBOUR_HAS_MOVED : NEIGHBOUR_IS_NEW;
}

void neighbour_confirmed(
	struct neighbours *table, uint16_t port, const uint8_t ip[16], uint64_t now_us)
{
	struct gateway *gateway = find_gateway(table, port, ip);
	if (!gateway || !gateway->has_mac)
		return;
	gateway->tries = 0;
	gateway->ask_at_us = now_us + NEIGHBOUR_FRESH_US;
}

bool neighbour_due(struct neighbours *table, uint64_t now_us, struct neighbour_question *question)
{
	for (unsigned i = 0; i < table->gateway_count; i++) {
		struct gateway *gateway = &table->gateways[i];
		if (gateway->ask_at_us > now_us)
			continue;
		bool is_silent = gateway->tries >= NEIGHBOUR_TRIES;
		*question = (struct neighbour_question){.port = gateway->port,
			.is_known = gateway->has_mac && !is_silent,
			.is_newly_silent = gateway->tries == NEIGHBOUR_TRIES};
		memcpy(question->ip, gateway->ip, sizeof(question->ip));
		memcpy(question->mac, gateway->mac, sizeof(question->mac));
		gateway->tries += gateway->tries <= NEIGHBOUR_TRIES;
		gateway->ask_at_us =
			now_us + (is_silent ? NEIGHBOUR_SILENT_US : NEIGHBOUR_RETRY_US);
		return true;
	}
	return false;
}

static uint64_t word_of(uint16_t port, const uint8_t mac[6])
{
	uint64_t word = 0;
	memcpy(&word, mac, 6);
	return word | (uint64_t)(port + 1u) << 48; // never 0
}

static void publish(
	struct neighbour_moves *moves, uint16_t port, const uint8_t from[6], const uint8_t to[6])
{
	uint64_t old = word_of(port, from), new = word_of(port, to);
	uint32_t count = moves->count;
	for (unsigned i = 0; i < NEIGHBOUR_MOVES_MAX; i++) {
		if (moves->slots[i].from == new) // somebody is there again
			moves->slots[i].from = 0;
		if (moves->slots[i].to == old) // who took over has been succeeded, too
			moves->slots[i].to = new;
	}
	unsigned slot = count % NEIGHBOUR_MOVES_MAX;
	moves->slots[slot].from = 0;
	moves->slots[slot].to = new;
	moves->slots[slot].from = old;
	moves->count = count + 1;
}

static uint64_t successor(const struct neighbour_moves *moves, uint64_t word)
{
	for (unsigned i = 0; i < NEIGHBOUR_MOVES_MAX; i++) {
		if (moves->slots[i].from != word)
			continue;
		uint64_t to = moves->slots[i].to;
		if (moves->slots[i].from == word)
			return to;
	}
	return word;
}

struct tcp_hop neighbour_follow(const struct neighbour_moves *moves, struct tcp_hop hop)
{
	if (atomic_load_explicit(&moves->count, memory_order_relaxed) == 0)
		return hop;
	uint64_t word = successor(moves, word_of(hop.port, hop.mac));
	memcpy(hop.mac, &word, sizeof(hop.mac));
	return hop;
}
