// What happens on visitors' streams, apart from the requests themselves. The worker's thread only.
#pragma once

#include "dataplane/inside.h"

// Take in an event of a visitor's stream.
void client_event(struct worker *w, const struct stream_event *event);
// End what has passed its deadline, at most DUE_MAX; the rest next turn.
void client_deadlines(struct worker *w);
// While draining: nobody waits for what an idle connection might still ask.
void client_close_idle(struct worker *w);
// Offer the kept bytes of connections whose exchange has ended in this turn. Returns whether there
// were any.
bool client_resumed(struct worker *w);
// Offer its kept bytes later in the turn: this may be in the middle of the driver's events.
void client_resume_later(struct worker *w, struct conn *conn);
// Set the time at which a connection's patience is over, from now on.
void client_set_deadline(struct worker *w, struct conn *conn, uint32_t after_ms);
// End a connection: its exchange, parked claim and deadline with it.
void client_close(struct worker *w, struct conn *conn, bool reset);
// After an answer of ours or the origin's is out: wait for the next request, or close.
void client_answered(struct worker *w, struct conn *conn);
// After an answer that leaves a body unread: shut our side and discard what comes, bounded.
void client_discard(struct worker *w, struct conn *conn);
// Keep the bytes after a request for later and stop reading. Closes the connection if they do not
// fit.
bool client_keep_rest(struct worker *w, struct conn *conn, struct span rest);
