// What one decision looks at, for the files of the decision alone: decide.c, decide_tell.c,
// decide_gather.c.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/decide.h"
#include "dataplane/gate/ended.h"

struct place_line;

struct decide_view {
	const struct decide_input *in;
	const struct gate_request *request;
	const struct gate_room *room;
	struct place_line *line;
	uint64_t floor, threshold, open;
	const struct claim_answer *answer; // control's, for this very room; NULL: none
	bool was_asked; // control was, whatever came of it
	bool may_claim; // not held, and not late already
	const struct gate_token *ticket; // not lapsed, not given back; NULL: none
	bool is_gathered; // `ticket` is one of a gathering that is not drawn
	bool is_reissued; // `ticket` was one of a gathering, and is `drawn` now
	struct gate_token drawn; // with its key in place of the gathering's number
	const struct token *pass; // neither run out nor ended; NULL: none
	struct decision *out;
};

// Tell what control gave for a code or a ticket (CLAIM_HONOURED, CLAIM_FULL, CLAIM_BEFORE): from
// here on the view is one of its lane. Returns false if a reload has taken that away, or its
// gathering. In decide.c.
bool decide_take_place(struct decide_view *v);

// Whether the turn of a ticket is not over, and it was not given back: two lines of memory at most,
// and one word while nobody has given any back. Who leaves may say so again.
static inline bool decide_view_is_good(const struct decide_view *v, uint64_t key, uint64_t visitor)
{
	const struct ended *left = v->request->route == GATE_ROUTE_LEAVE ? NULL : v->in->left;
	return key >= v->floor && !(left && ended_has(left, visitor));
}
