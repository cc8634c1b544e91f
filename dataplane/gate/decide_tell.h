// Telling a visitor where they stand: the status of a decision. Any worker; pure but for reading
// the words of the line.
#pragma once

#include "dataplane/gate/decide_view.h"

// The answer is a queue page, or the status of a poll.
//   ticket   whose place it is; NULL: nobody's
//   after_s  when to ask again; of those who wait it follows from their place
void decide_tell(struct decide_view *v, enum status_state state, const struct token *ticket,
	uint32_t after_s);

// The answer is another one.
void decide_tell_answer(struct decide_view *v, enum decide_answer answer);

// Whether the answer is that of a status poll.
static inline bool decide_tell_is_poll(const struct decide_view *v)
{
	return v->request->route == GATE_ROUTE_STATUS;
}

// How many wait for their turn, given back or not.
uint64_t decide_tell_waiting(const struct decide_view *v);

// When somebody with `ahead` people before them asks again, in s.
uint32_t decide_tell_poll_after(const struct decide_view *v, uint64_t ahead);

// When somebody asks again for whom nothing will change soon: 45 to 60 s.
uint32_t decide_tell_rest(const struct decide_view *v);

// When the called ask again.
uint32_t decide_tell_next(const struct decide_view *v);
