// The process: controller, store, and what befalls them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct world;

// Begin, or begin again after a crash, from the file of places and the store.
void process_start(struct world *w);

// A turn of control. Of an earlier life of the process: nothing.
void process_turn(struct world *w, uint32_t generation);

// kill -9.
void process_crash(struct world *w);

// The line can not be polled and granted, or can again.
void process_outage(struct world *w, bool begins);

// Other limits, at random around those of the plan.
void process_reload(struct world *w);

// `release N`.
void process_release(struct world *w);
