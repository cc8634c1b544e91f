// Opening: people gather before the doors, and are placed by the product's draw when these open.
#pragma once

#include "controlplane/simulate/play.h"

#define OPENING_SOON_S 15u // within it come those who were told when people may gather

// Let people gather, draw and open the doors, when it is time. Every turn, before anybody comes.
// Returns 0 or -ENOMEM.
int opening_turn(struct play *p, struct play_room *room);

// Somebody gathers.
void opening_join(struct play *p, struct play_room *room, uint32_t who);

// Free what a draw took.
void opening_fini(struct play_room *room);
