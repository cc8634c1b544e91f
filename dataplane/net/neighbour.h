// Who has which MAC address on our links: gateways, which are asked for at the start and kept
// fresh, and hosts that asked for us, which are remembered for a while.
//
// Worker 0 owns the table. What the others need of it is published: that a neighbour was seen at
// another MAC address than before, a router that failed over. Whoever still sends to the old one
// then follows (neighbour_follow()), without a lock.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/net.h"

#define NEIGHBOUR_FRESH_US 30000000u // a gateway is asked again after so long
#define NEIGHBOUR_RETRY_US 1000000u // RFC 4861 10: RETRANS_TIMER
#define NEIGHBOUR_TRIES 3u // MAX_UNICAST_SOLICIT; after these it counts as silent
#define NEIGHBOUR_SILENT_US 5000000u // between asking one that is silent
#define NEIGHBOUR_KEEP_US 1200000000u // a host that says nothing is forgotten after so long
#define NEIGHBOUR_WAYS 8u // of which the one unheard longest makes room
#define NEIGHBOUR_MOVES_MAX 16u // published at once; newer ones replace the oldest

struct neighbours;

// Who took over from whom; a hop in one word.
struct neighbour_moves {
	_Atomic uint32_t count; // written: worker 0; read: all. So are the slots
	struct {
		_Atomic uint64_t from, to;
	} slots[NEIGHBOUR_MOVES_MAX];
};

// What was learnt by hearing of one.
enum neighbour_news {
	NEIGHBOUR_IS_KNOWN, // or not worth knowing
	NEIGHBOUR_IS_NEW,
	NEIGHBOUR_IS_NEW_FOR_OLD, // and another, heard of within NEIGHBOUR_KEEP_US, was forgotten
	NEIGHBOUR_HAS_MOVED,
};

// A question to be asked: who has `ip`?
struct neighbour_question {
	uint8_t ip[16];
	uint8_t mac[6]; // whom to ask, if is_known; else all
	bool is_known, is_newly_silent;
	uint16_t port; // index
};

// Make the table of a plan: its gateways, asked for at once, and neighbours_max hosts. Returns NULL
// when out of memory.
struct neighbours *neighbour_create(const struct net_plan *plan);
void neighbour_destroy(struct neighbours *neighbours);
uint64_t neighbour_bytes(const struct net_plan *plan);

// A neighbour was heard of. Worker 0 only.
//   asked_us  it asked for us: remember it though it is no gateway
//   overrides its word counts even if another MAC address is known (RFC 4861 7.2.5)
enum neighbour_news neighbour_heard(struct neighbours *neighbours, uint16_t port,
	const uint8_t ip[16], const uint8_t mac[6], bool asked_us, bool overrides, uint64_t now_us);

// A gateway answered without saying its MAC address: it is still there. Worker 0 only.
void neighbour_confirmed(
	struct neighbours *neighbours, uint16_t port, const uint8_t ip[16], uint64_t now_us);

// The next question that is due; false: none. Worker 0 only.
bool neighbour_due(
	struct neighbours *neighbours, uint64_t now_us, struct neighbour_question *question);

// What is published. Lives as long as the table.
const struct neighbour_moves *neighbour_moves(const struct neighbours *neighbours);

// The MAC address to send to for a hop: its own, or the one of who took over. Any thread.
struct tcp_hop neighbour_follow(const struct neighbour_moves *moves, struct tcp_hop hop);
