// Visitors, and the worker that answers them.
#pragma once

#include <stdint.h>

struct claim_answer;
struct world;

// It comes, with nothing in its hands.
void visitor_arrive(struct world *w, uint32_t who);

// It asks from one of its tabs how things stand.
void visitor_poll(struct world *w, uint32_t who, uint32_t tab);

// Its worker has waited long enough for the answer to request `number`.
void visitor_timeout(struct world *w, uint32_t who, uint32_t tab, uint32_t number);

// Control has answered.
void visitor_answer(struct world *w, const struct claim_answer *answer);

// It is done with what it came for.
void visitor_shop_ends(struct world *w, uint32_t who);

// It uses a pass in the second half of its life.
void visitor_renew(struct world *w, uint32_t who);

// Everybody who has never come comes now.
void visitor_return(struct world *w);
