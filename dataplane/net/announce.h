// Telling the neighbours which addresses we have: at the start, when a link comes up, and when
// another host uses one of ours. Worker 0 only.
//
// Gratuitous ARP and unsolicited advertisements, three rounds a second apart, so that switches and
// routers send to us at once and not when their caches age out. The first round of a start also
// probes whether another host has the address.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/inside.h"

#define ANNOUNCE_ROUNDS 3u // RFC 4861 10: MAX_NEIGHBOR_ADVERTISEMENT
#define ANNOUNCE_ROUND_US 1000000u
#define ANNOUNCE_DEFEND_US 10000000u // RFC 5227 1.1: DEFEND_INTERVAL

// All addresses of a port, from now on.
//   probes  whether another host has them is asked, too
void announce_port(struct net *n, uint16_t port, bool probes);

// Another host uses one of a port's addresses: tell them once more, not more often than each
// ANNOUNCE_DEFEND_US.
void announce_defend(struct net *n, uint16_t port);

// What is due: one address of each port.
void announce_due(struct net *n);
