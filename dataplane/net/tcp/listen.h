// Segments that belong to no connection: SYNs are answered, cookies become connections, the rest is
// told that nobody is here.
#pragma once

#include "dataplane/net/tcp/conn.h"

// The index of the listener of an address; TCP_LISTENERS_MAX: none.
unsigned listen_find(const struct tcp *t, const struct stream_address *local);

// Deal with such a segment.
//   hash  of its addresses
//   wait  what is remembered of a connection between them; NULL: nothing
// May open a connection: then its text and FIN are taken too.
void listen_segment(struct tcp *t, uint64_t hash, struct tcp_wait_entry *wait,
	const struct tcp_segment *segment);

// An echo has come, and nothing was sent yet that could be echoed but the SYN-ACK: read what it
// tells of the peer's options.
void listen_settle_scale(struct tcp *t, struct tcp_conn *c, const struct tcp_segment *segment);
