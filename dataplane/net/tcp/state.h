// The states of a connection and the moves between them (RFC 9293 3.3.2, figure 5).
#pragma once

#include "dataplane/net/tcp/conn.h"

// Move to a state; asserts that the table of moves allows it. To TCP_FREE: tcp_end() alone.
void state_set(struct tcp_conn *c, enum tcp_state to);

// Whether the peer has not ended yet: text of its segments counts.
static inline bool state_receives(enum tcp_state state)
{
	return state == TCP_ESTABLISHED || state == TCP_FIN_WAIT_1 || state == TCP_FIN_WAIT_2;
}
