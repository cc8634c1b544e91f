// The list of a draw as text: an answer of ours that may be megabytes long, sent piece by piece.
// The worker's thread only.
#pragma once

#include "dataplane/inside.h"

#define LISTING_LATER_S 5u // Retry-After of that
#define LISTING_TURN_LINES 1024u // written at once
#define LISTING_TURN_MS 2u // between such
#define LISTING_STALL_MS 30000u // a peer that takes nothing for so long is left

// Whether one more list may be sent.
static inline bool listing_may_begin(const struct worker *w)
{
	return w->listing_count < LISTING_MAX;
}

// The head of the answer is out: send the lines, from the next turn on. The connection is in HEAD.
void listing_begin(struct worker *w, struct conn *conn, struct draw_list *list);

// Its deadline has passed: send more, if the peer has taken what was sent.
void listing_go_on(struct worker *w, struct conn *conn);

// The connection ends, or is done: let go of the list.
void listing_end(struct worker *w, struct conn *conn);
