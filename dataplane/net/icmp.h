// ICMP (RFC 792) and ICMPv6 (RFC 4443): echo answered, at a limited rate; "too big" handed to TCP
// (RFC 1191, RFC 8201), validated (RFC 5927). Neighbour discovery is passed to nd.h, queries for
// listeners to mld.h; all else is not for sluice.
#pragma once

#include "dataplane/net/inside.h"

#define ICMP_ECHO_US 1000u // between echo answers, on average: 1,000 a second
#define ICMP_ECHO_BURST 100u // at once
#define ICMP6_MTU_MIN 1280u // RFC 8201 4: less is not believed
#define ICMP4_MTU_MIN 68u // RFC 791: every link takes so much

// Take an ICMP message.
//   frame    FRAME_IS_ICMP or FRAME_IS_ICMP6
//   segment  whence and whither
//   hops     workers that were asked before for the flow that it quotes
enum net_fate icmp_input(
	struct net *n, const struct frame *frame, const struct tcp_segment *segment, unsigned hops);
