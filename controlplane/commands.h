// What admin commands do (contract section 6), behind the admin socket.
#pragma once

#include "controlplane/control.h"

// Register the commands and open the socket. Returns 0 or -errno.
int commands_create(struct control *c);
