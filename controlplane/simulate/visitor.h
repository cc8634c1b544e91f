// Visitor: what people do, and how the gate answers them without control.
#pragma once

#include "controlplane/simulate/play.h"

// Visitor ids differ; somebody's session has the same number.
uint64_t visitor_id(uint32_t who);

// Somebody comes.
void visitor_arrive(struct play *p, uint32_t who);

// What it meant to do now: join, poll, renew or end.
void visitor_act(struct play *p, uint32_t who);

// Control has answered.
void visitor_answer(struct play *p, const struct claim_answer *answer);

// Whoever the threshold has passed since the last turn will poll.
void visitor_call(struct play *p, struct play_room *room);
