// A segment meets its connection, or what TIME_WAIT remembers of one (RFC 9293 3.10.7.4).
#pragma once

#include "dataplane/net/tcp/conn.h"

#define INPUT_EVENTS_MAX 3u // of one segment: OPENED DATA EOF, WRITABLE DATA EOF, DATA EOF CLOSED

// Deal with a segment for a connection: it may answer, move its state, end it.
void input_segment(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment);

// The peer's FIN has been reached in order and EOF told: move the state, perhaps to its end.
void input_fin(struct tcp *t, struct tcp_conn *c);

// Deal with a segment for a connection in TIME_WAIT. Returns true if it may begin a new one
// (RFC 6191): it is then for listen_segment().
bool input_wait(struct tcp *t, struct tcp_wait_entry *entry, const struct tcp_segment *segment);

// It began no new one: acknowledge what it brings once more.
void input_again(
	struct tcp *t, const struct tcp_wait_entry *entry, const struct tcp_segment *segment);
