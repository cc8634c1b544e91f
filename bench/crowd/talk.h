// Talk: one request of a member, and its answer.
//
// A request goes out on the member's link, which is opened if need be. A kept connection that turns
// out dead before the first byte of an answer is opened again, once, as browsers do. What cannot be
// answered within TALK_PATIENCE_US is given up. The outcome is told to visit.h.
#pragma once

#include "bench/crowd/crowd.h"

#define TALK_PATIENCE_US (30 * 1000000ll)

// Ask, now. The member asks nothing else.
void talk_ask(struct crowd *crowd, uint32_t id, enum request request);

// The patience with what was asked is over.
void talk_timed_out(struct crowd *crowd, uint32_t id);

// Something happened on a link.
void talk_event(struct crowd *crowd, const struct link_event *event);

// Whatever was asked is forgotten, and the link closed.
void talk_end(struct crowd *crowd, uint32_t id);
