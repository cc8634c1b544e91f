// Rooms: each has a line in the places file and a controller. What commands change stands over the
// configuration until a command says otherwise. Control thread only.
#pragma once

#include "controlplane/control.h"

// Rooms that the claims may know at once: during a reload those of both configurations.
#define ROOMS_AT_ONCE (2 * CONFIG_ROOMS_MAX)

// Take the rooms of c->config: those that stay keep their controller, with its new limits; of new
// ones all that the store knows is restored, what commands said too. At start, and with a reload.
// Returns 0, or -errno and nothing has changed.
int rooms_set(struct control *c);

// Give back the lines of rooms that are configured no more and of which nothing can be good. The
// store knows before, so that a room of that name, should it return, begins behind all of theirs.
// At start, before rooms_set().
void rooms_give_back(struct control *c);

// Note for how long tickets and passes of each room may be good from now on. Once a second.
void rooms_keep(struct control *c, uint64_t now_ms);

// The room or lane of that name, or of that line, or NULL.
struct control_room *rooms_find(struct control *c, const char *name);
struct control_room *rooms_find_line(struct control *c, uint32_t line_id);

// What holds: the command's word, or the configuration's. enum gate_room_state, enum gate_mode.
uint8_t rooms_state(const struct control_room *room);
uint8_t rooms_mode(const struct control_room *room);

// The configuration that holds: with what an event overrides.
const struct config_room *rooms_config(const struct control_room *room);

// Words of the states, by enum gate_room_state.
extern const char *const rooms_state_names[GATE_BEFORE + 1];
// What the room's configuration and mode allow: all its lines together.
struct controller_limits rooms_limits(const struct control_room *room);
// What one line may have.
struct controller_limits rooms_line_limits(const struct control_room *room);
// Whether the mode keeps everybody from being called or admitted: the line stands still meanwhile,
// and nobody's turn is over.
bool rooms_is_still(const struct control_room *room);

// Words of the modes, by enum gate_mode.
#define ROOMS_MODES (GATE_MODE_PEAK + 1)
extern const char *const rooms_mode_names[ROOMS_MODES];

// State or limits of the room, or of a lane's room, have changed: tell claims and controllers.
void rooms_apply(struct control *c, struct control_room *room);

// A command changed the room: tell claims and controller, put it into the store, publish.
void rooms_changed(struct control *c, struct control_room *room);

// Free the rooms and their controllers.
void rooms_destroy(struct control *c);
