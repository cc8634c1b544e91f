// The table of moves. What we do moves down (FIN sent), what the peer does moves right:
//
//   ESTABLISHED ──FIN──▶ CLOSE_WAIT ──send_fin()──▶ LAST_ACK ──ACK──▶ free
//     │ send_fin()
//   FIN_WAIT_1 ──FIN──▶ CLOSING ──ACK──▶ free, TIME_WAIT
//     │ ACK
//   FIN_WAIT_2 ──FIN──▶ free, TIME_WAIT
//
// An ACK and a FIN in one segment make two moves. From every state a RST, a deadline or the worker
// leads to free.

#include "dataplane/net/tcp/state.h"

#define TO(state) (1u << (state))

static const uint8_t moves[] = {
	[TCP_FREE] = TO(TCP_ESTABLISHED),
	[TCP_ESTABLISHED] = TO(TCP_CLOSE_WAIT) | TO(TCP_FIN_WAIT_1) | TO(TCP_FREE),
	[TCP_CLOSE_WAIT] = TO(TCP_LAST_ACK) | TO(TCP_FREE),
	[TCP_LAST_ACK] = TO(TCP_FREE),
	[TCP_FIN_WAIT_1] = TO(TCP_FIN_WAIT_2) | TO(TCP_CLOSING) | TO(TCP_FREE),
	[TCP_FIN_WAIT_2] = TO(TCP_FREE),
	[TCP_CLOSING] = TO(TCP_FREE),
};

void state_set(struct tcp_conn *c, enum tcp_state to)
{
	assert(moves[c->state] & TO(to));
	c->state = to;
}
