// Multicast listener reports (RFC 3810): switches that snoop learn from them to let the questions
// for our addresses through (RFC 4861 7.2.1). Worker 0 only.
#pragma once

#include "dataplane/net/inside.h"

#define MLD_QUERY 130
#define MLD_DELAY_US 1000000u // a report follows a query within this, or sooner if it asks for it

// Take a query, its checksum good: a report is due soon.
//   frame    FRAME_IS_ICMP6, of type MLD_QUERY
//   segment  whence and whither
enum net_fate mld_input(
	struct net *n, const struct frame *frame, const struct tcp_segment *segment);

// Report the groups of a port: those of the solicited nodes that its addresses are.
void mld_report(struct net *n, uint16_t port);

// Reports that are due.
void mld_due(struct net *n);
