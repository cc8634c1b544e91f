// RFC 6298 in microseconds, in the whole numbers that its gains of 1/8 and 1/4 allow.
//
// The floor of the timeout is the plan's, 200 ms: below the RFC's second, as all large stacks have
// it, and above the delayed acknowledgements of all of them.

#include "dataplane/net/tcp/rtt.h"

#define BACKOFF_MAX 16u // doublings that are counted; the plan's ceiling holds long before

void rtt_sample(struct tcp_conn *c, uint32_t rtt_us)
{
	if (rtt_us == 0)
		rtt_us = 1; // 0 is: none yet
	if (c->srtt_us == 0) { // 2.2
		c->srtt_us = rtt_us;
		c->rttvar_us = rtt_us / 2;
	} else { // 2.3
		const uint32_t off =
			rtt_us > c->srtt_us ? rtt_us - c->srtt_us : c->srtt_us - rtt_us;
		c->rttvar_us = (uint32_t)((3ull * c->rttvar_us + off) / 4);
		c->srtt_us = (uint32_t)((7ull * c->srtt_us + rtt_us) / 8);
		if (c->srtt_us == 0)
			c->srtt_us = 1;
	}
	c->rto_backoff = 0;
}

uint32_t rtt_timeout_us(const struct tcp *t, const struct tcp_conn *c)
{
	uint64_t timeout = c->srtt_us ? c->srtt_us + 4ull * c->rttvar_us : RTT_RTO_FIRST_US;
	if (timeout < t->plan.rto_min_us)
		timeout = t->plan.rto_min_us;
	timeout <<= c->rto_backoff;
	return timeout < t->plan.rto_max_us ? (uint32_t)timeout : t->plan.rto_max_us;
}

void rtt_back_off(struct tcp_conn *c)
{
	if (c->rto_backoff < BACKOFF_MAX)
		c->rto_backoff++;
}
