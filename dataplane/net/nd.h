// Neighbour discovery (RFC 4861) and duplicate address detection (RFC 4862 5.4). Worker 0 only.
//
// Our addresses serve from the first moment on: waiting for a probe's second would keep a site away
// after each restart. Still the probe is sent: whoever has the address says so, which is counted
// (address_conflict), and we announce ours again. We do not go silent: the owner of the site gave
// us the address. What another host's probe asks for we defend.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/net/inside.h"

// Take a solicitation or an advertisement, its checksum good.
//   frame    FRAME_IS_ICMP6, of type ND_SOLICITATION or ND_ADVERTISEMENT
//   segment  whence and whither
enum net_fate nd_input(struct net *n, const struct frame *frame, const struct tcp_segment *segment);

#define ND_SOLICITATION 135
#define ND_ADVERTISEMENT 136

// Ask who has an address.
//   mac  whom to ask; NULL: its solicited-node group
void nd_ask(struct net *n, uint16_t port, const uint8_t ip[16], const uint8_t *mac);

// Ask whether another has an address of ours (RFC 4862 5.4.2).
void nd_probe(struct net *n, uint16_t port, const uint8_t ip[16]);

// Tell all nodes that we have an address of ours (RFC 4861 7.2.6).
void nd_announce(struct net *n, uint16_t port, const uint8_t ip[16]);
