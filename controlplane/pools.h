// Pools: capacity and rate that several rooms share. Control thread only.
#pragma once

#include "controlplane/control.h"

// The pools of a configuration: those that stay, by name, and fresh ones.
struct pools_next {
	struct control_pool *at;
	uint32_t count;
};

// Make the pools of c->config beside those in force. Returns 0, or -ENOMEM and nothing is held.
int pools_make(struct control *c, struct pools_next *next);

// They are not wanted: free what is fresh among them.
void pools_drop(struct control *c, struct pools_next *next);

// Put them in force: the limits of c->config, and each room of c->rooms below its own. Nothing can
// fail. Those that are gone are freed; who was inside keeps the slot of a room.
void pools_take(struct control *c, struct pools_next *next);

// A command changed what the room allows: so do its lanes' shared pool.
void pools_changed(struct control *c, const struct control_room *room);

// Free them, after their rooms.
void pools_destroy(struct control *c);
