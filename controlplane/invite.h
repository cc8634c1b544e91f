// Links into a lane. Control thread only.
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "controlplane/control.h"

// A link into a lane, signed by the secret that signs now, at a name and port where visitors find
// its site.
//   expires  unix s; 0: as long as the secret holds
// Returns {"lane", "link", "expires"}, a new reference, or NULL when memory is short.
json_t *invite_link(struct control *c, const struct control_room *lane, uint32_t expires);
