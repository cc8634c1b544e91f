// The process: start, loop, drain, stop.
#pragma once

#include <stdio.h>

#include "controlplane/control.h"

// Run until a signal or command ends it. Takes the configuration. Returns the exit status.
int run(const char *config_path, struct config *config);

// End when no request is under way any more, or after `drain`.
void run_drain(struct control *c);
