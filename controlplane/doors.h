// Doors: what the schedule and the draws of each room come to. Control thread only.
//
//   configuration, commands, time ─▶ schedule ─▶ state of the room, event in force
//                                        └─────▶ wish ─▶ draws
#pragma once

#include "controlplane/control.h"

// Load what the store knows of draws, before rooms are set. Returns 0 or -errno.
int doors_create(struct control *c);

// Give a room of a new configuration the events of that. Returns 0 or -ENOMEM; then it has none.
int doors_set(struct control_room *room);

// Take over what the store knows of the room's doors and what people wait for, with a fresh line;
// before place_begin().
void doors_restore(struct control *c, struct control_room *room);

// Free a room's events.
void doors_free(struct control_room *room);

// Where the room is in its schedule, for a room that nobody asks yet. Before the first snapshot.
void doors_look(struct control *c, struct control_room *room, uint64_t now_ms);

// Look at the time: open and close doors, go on with draws. Every turn.
void doors_turn(struct control *c, uint64_t now_ms);

// A command opens the doors before their time. Returns false if the schedule has none to open.
bool doors_open(struct control *c, struct control_room *room);

// The public salt of the room's next draw, in hex; NULL: none is named. Valid until the next call.
const char *doors_salt_now(const struct control_room *room);

// The salt of a room that was named in its configuration for those who gather before its doors, in
// hex; NULL: none was, or a command named it. Valid until the next call. Of struct config_machine.
const char *doors_named_salt(void *context, const char *room, uint64_t *now_s);

// A command names the salt of the next draw of a room and its lanes, in hex. Returns 0, -EINVAL if
// it is none, -ENOENT if nobody gathers here, or -EEXIST if another was named for those who gather
// already: *named then, as above.
int doors_salt(struct control *c, struct control_room *room, const char *hex, const char **named);
