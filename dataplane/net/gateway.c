// A few, in an array that is walked.
//
// A move is published in a slot by clearing `from`, storing `to`, storing `from`: a reader that
// finds the same `from` before and after has read the `to` that belongs to it.

#include "dataplane/net/gateway.h"

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

struct gateways {
	struct gateway_moves moves;
	unsigned count;
	struct gateway gateways[ETHDEV_PORTS_MAX * NET_GATEWAYS_MAX];
};

static void publish(
	struct gateway_moves *moves, uint16_t port, const uint8_t from[6], const uint8_t to[6]);

struct gateways *gateway_create(const struct net_plan *plan)
{
	struct gateways *table = calloc(1, sizeof(*table)); // COLD: at start
	if (!table)
		return NULL;
	for (uint16_t port = 0; port < plan->port_count; port++) {
		for (unsigned i = 0; i < plan->ports[port].gateway_count; i++) {
			struct gateway *gateway = &table->gateways[table->count++];
			gateway->port = port;
			memcpy(gateway->ip, plan->ports[port].gateways[i], sizeof(gateway->ip));
		}
	}
	return table;
}

void gateway_destroy(struct gateways *table)
{
	free(table);
}

const struct gateway_moves *gateway_moves(const struct gateways *table)
{
	return &table->moves;
}

static struct gateway *find(struct gateways *table, uint16_t port, const uint8_t ip[16])
{
	for (unsigned i = 0; i < table->count; i++)
		if (table->gateways[i].port == port && memcmp(table->gateways[i].ip, ip, 16) == 0)
			return &table->gateways[i];
	return NULL;
}

static void freshen(struct gateway *gateway, uint64_t now_us)
{
	gateway->tries = 0;
	gateway->ask_at_us = now_us + GATEWAY_FRESH_US;
}

bool gateway_heard(struct gateways *table, uint16_t port, const uint8_t ip[16],
	const uint8_t mac[6], bool overrides, uint64_t now_us)
{
	struct gateway *gateway = find(table, port, ip);
	if (!gateway)
		return false;
	bool has_moved = gateway->has_mac && memcmp(gateway->mac, mac, sizeof(gateway->mac)) != 0;
	if (has_moved && !overrides)
		return false;
	freshen(gateway, now_us);
	if (has_moved)
		publish(&table->moves, port, gateway->mac, mac);
	memcpy(gateway->mac, mac, sizeof(gateway->mac));
	gateway->has_mac = true;
	return has_moved;
}

void gateway_confirmed(struct gateways *table, uint16_t port, const uint8_t ip[16], uint64_t now_us)
{
	struct gateway *gateway = find(table, port, ip);
	if (gateway && gateway->has_mac)
		freshen(gateway, now_us);
}

bool gateway_due(struct gateways *table, uint64_t now_us, struct gateway_question *question)
{
	for (unsigned i = 0; i < table->count; i++) {
		struct gateway *gateway = &table->gateways[i];
		if (gateway->ask_at_us > now_us)
			continue;
		bool is_silent = gateway->tries >= GATEWAY_TRIES;
		*question = (struct gateway_question){.port = gateway->port,
			.is_known = gateway->has_mac && !is_silent,
			.is_newly_silent = gateway->tries == GATEWAY_TRIES};
		memcpy(question->ip, gateway->ip, sizeof(question->ip));
		memcpy(question->mac, gateway->mac, sizeof(question->mac));
		gateway->tries += gateway->tries <= GATEWAY_TRIES;
		gateway->ask_at_us = now_us + (is_silent ? GATEWAY_SILENT_US : GATEWAY_RETRY_US);
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
	struct gateway_moves *moves, uint16_t port, const uint8_t from[6], const uint8_t to[6])
{
	uint64_t old = word_of(port, from), new = word_of(port, to);
	uint32_t count = moves->count;
	for (unsigned i = 0; i < GATEWAY_MOVES_MAX; i++) {
		if (moves->slots[i].from == new) // somebody is there again
			moves->slots[i].from = 0;
		if (moves->slots[i].to == old) // who took over has been succeeded, too
			moves->slots[i].to = new;
	}
	unsigned slot = count % GATEWAY_MOVES_MAX;
	moves->slots[slot].from = 0;
	moves->slots[slot].to = new;
	moves->slots[slot].from = old;
	moves->count = count + 1;
}

static uint64_t successor(const struct gateway_moves *moves, uint64_t word)
{
	for (unsigned i = 0; i < GATEWAY_MOVES_MAX; i++) {
		if (moves->slots[i].from != word)
			continue;
		uint64_t to = moves->slots[i].to;
		if (moves->slots[i].from == word)
			return to;
	}
	return word;
}

struct tcp_hop gateway_follow(const struct gateway_moves *moves, struct tcp_hop hop)
{
	if (atomic_load_explicit(&moves->count, memory_order_relaxed) == 0)
		return hop;
	uint64_t word = successor(moves, word_of(hop.port, hop.mac));
	memcpy(hop.mac, &word, sizeof(hop.mac));
	return hop;
}
