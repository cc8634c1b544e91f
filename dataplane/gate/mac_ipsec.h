// MACs side by side, on the lanes of intel-ipsec-mb.
#pragma once

#include <stdint.h>

#include "dataplane/gate/mac.h"

struct mac_ipsec;

// Make lanes for one worker, at start. Returns 0, -ENOMEM, or -ENOTSUP where there are none: this
// processor, or this build, has none. Owns its memory.
int mac_ipsec_create(struct mac_ipsec **lanes);

// Accepts NULL.
void mac_ipsec_destroy(struct mac_ipsec *lanes);

// The tags of `count` jobs, any number. One worker only.
void mac_ipsec_burst(struct mac_ipsec *lanes, const struct mac_job *jobs, uint32_t count);
