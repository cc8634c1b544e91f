// One turn of control: claims of all workers, their answers, what is due each second.
#pragma once

#include "controlplane/control.h"

// Every CONTROL_TICK_MS, and at once when claims came.
void turn(struct control *c);

// What workers still had to say when they ended: reports above all.
void turn_last(struct control *c);

// End the sleep of every worker that runs, so that it sees what was published.
void turn_wake_workers(struct control *c);

// How claims reach workers; `ctx` is to be set to the control.
extern const struct claims_seams turn_seams;
