// The gateways of our links: found at the start, kept fresh, and followed when they fail over.
//
// What is answered goes back to the MAC address that the peer's last segment came from, so nobody
// asks here where to send. What is published is that a gateway was seen at another MAC address than
// before: whoever would still send to the old one then sends to the new one, without a lock.
//
// Of other neighbours nothing is kept. A host that takes over from another one speaks first; and if
// it could make us follow it, one that had answered for others (proxy ARP) would take their traffic
// along.
//
// Worker 0 owns the table.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/net.h"

#define GATEWAY_FRESH_US 30000000u // it is asked again after so long
#define GATEWAY_RETRY_US 1000000u // RFC 4861 10: RETRANS_TIMER
#define GATEWAY_TRIES 3u // MAX_UNICAST_SOLICIT; after these it counts as silent
#define GATEWAY_SILENT_US 5000000u // between asking one that is silent
#define GATEWAY_MOVES_MAX 16u // published at once; newer ones replace the oldest

struct gateways;

// Who took over from whom; a hop in one word.
struct gateway_moves {
	_Atomic uint32_t count; // written: worker 0; read: all. So are the slots
	struct {
		_Atomic uint64_t from, to;
	} slots[GATEWAY_MOVES_MAX];
};

// A question to be asked: who has `ip`?
struct gateway_question {
	uint8_t ip[16];
	uint8_t mac[6]; // whom to ask, if is_known; else all
	bool is_known, is_newly_silent;
	uint16_t port; // index
};

// Make the table of a plan's gateways; they are asked for at once. Returns NULL when out of memory.
struct gateways *gateway_create(const struct net_plan *plan);
void gateway_destroy(struct gateways *gateways);

// A neighbour was heard of; nothing happens if it is no gateway. Worker 0 only.
//   overrides  its word counts even if another MAC address is known (RFC 4861 7.2.5)
// Returns true if it has moved.
bool gateway_heard(struct gateways *gateways, uint16_t port, const uint8_t ip[16],
	const uint8_t mac[6], bool overrides, uint64_t now_us);

// A neighbour answered without saying its MAC address: it is still there. Worker 0 only.
void gateway_confirmed(
	struct gateways *gateways, uint16_t port, const uint8_t ip[16], uint64_t now_us);

// The next question that is due; false: none. Worker 0 only.
bool gateway_due(struct gateways *gateways, uint64_t now_us, struct gateway_question *question);

// What is published. Lives as long as the table.
const struct gateway_moves *gateway_moves(const struct gateways *gateways);

// The hop to send to: itself, or who took over from it. Any thread.
struct tcp_hop gateway_follow(const struct gateway_moves *moves, struct tcp_hop hop);
