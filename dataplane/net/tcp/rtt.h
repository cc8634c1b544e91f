// Round-trip times and the retransmission timeout (RFC 6298).
#pragma once

#include "dataplane/net/tcp/conn.h"

#define RTT_RTO_FIRST_US 1000000u // before any sample: RFC 6298 2.1

// A sample: of a segment that was sent once, or by its timestamp (RFC 7323 4.1). Ends the back-off.
void rtt_sample(struct tcp_conn *c, uint32_t rtt_us);

// The timeout now, us: backed off, within the plan's bounds.
uint32_t rtt_timeout_us(const struct tcp *t, const struct tcp_conn *c);

// It has passed: the next is twice as long (5.5).
void rtt_back_off(struct tcp_conn *c);
