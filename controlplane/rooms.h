// Rooms: each has a line in the places file and a controller. What commands change stands over the
// configuration until a command says otherwise. Control thread only.
#pragma once

#include "controlplane/control.h"

// Take the rooms of c->config: those that stay keep their controller, with its new limits. At
// start, and with a reload. Returns 0, or -errno and nothing has changed.
int rooms_set(struct control *c);

// Read what commands said before the last stop. After the first rooms_set(). Returns 0 or -errno.
int rooms_load(struct control *c);

// The room of that name, or NULL.
struct control_room *rooms_find(struct control *c, const char *name);

// What holds: the command's word, or the configuration's. enum gate_room_state, enum gate_mode.
uint8_t rooms_state(const struct control_room *room);
uint8_t rooms_mode(const struct control_room *room);

// A command changed the room: tell claims and controller, put it into the store, publish.
void rooms_changed(struct control *c, struct control_room *room);

// Free the rooms and their controllers.
void rooms_destroy(struct control *c);
