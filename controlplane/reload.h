// What workers go by, made anew: after a command, a rotation, a name that resolves anew, or a
// reload.
#pragma once

#include <stdio.h>

#include "controlplane/control.h"

// Build a snapshot of what is known now and publish it. Short of memory, workers keep the one they
// have.
void reload_snapshot(struct control *c);

// Read the configuration anew and go over to it.
//   report   gets the errors
//   restart  gets the keys that differ from those of the start and need a restart, one a line; or
//            why this user cannot read the file
// Returns 0, or -errno and nothing has changed (-EINVAL: see report; -EAGAIN: the store is busy).
int reload(struct control *c, struct config_report *report, FILE *restart);

// Log what the configuration says is worth it.
void reload_log_level(const struct config *config);

// Sessions that all rooms together may hold, and tickets given back that they may know.
uint64_t reload_sessions_total(const struct control *c);
