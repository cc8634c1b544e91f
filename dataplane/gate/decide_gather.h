// Decisions in rooms where people gather (gather.h): which ticket counts, joining, and what is told
// while places are not drawn. Any worker.
#pragma once

#include "dataplane/gate/decide_view.h"

// Choose among all tickets carried, those of gatherings by the keys that they stand for now.
void decide_gather_choose(struct decide_view *v);

// How many stand before the holder of a ticket with a key; whether that is exact. As place_rank(),
// but that of two whose keys are the same one stands before the other.
bool decide_gather_rank(const struct decide_view *v, const struct token *ticket, uint64_t *rank);

// Say that the doors are closed, and that nobody gathers yet.
void decide_gather_tell_before(struct decide_view *v);

// Tell the holder of a ticket that is not called where they stand: in the line, or in a gathering,
// or before closed doors.
void decide_gather_tell(struct decide_view *v, const struct token *ticket);

// GET draw, GET draw/keys.
void decide_gather_show(struct decide_view *v);
