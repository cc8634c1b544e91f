// ARP (RFC 826), with the announcements and the defence of addresses of RFC 5227. Worker 0 only.
#pragma once

#include <stdint.h>

#include "dataplane/net/inside.h"

// Take an ARP message: answer what asks for an address of ours, learn of gateways.
//   frame  read by frame_read(): FRAME_IS_ARP
enum net_fate arp_input(struct net *n, const struct frame *frame, const struct tcp_hop *hop);

// Ask who has an address, IPv4 mapped.
//   mac  whom to ask; NULL: all
void arp_ask(struct net *n, uint16_t port, const uint8_t ip[16], const uint8_t *mac);

// Tell all that we have an address of ours (RFC 5227 2.3).
void arp_announce(struct net *n, uint16_t port, const uint8_t ip[16]);
