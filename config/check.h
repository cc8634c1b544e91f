// Rules that look at more than one value, or at the machine.
#pragma once

#include "config/reading.h"

// Run every rule over what was read, defaults included; each reports what it dislikes.
void check_run(struct reading *r);

// Those of `driver: dpdk`.
void check_ports(struct reading *r);

// Those of folders of templates.
void check_pages(struct reading *r);

// Those of a room's doors, events and windows.
void check_doors(struct reading *r, const struct config_room *room);

// Those of lists of codes; how many bytes these take is config->codes_bytes then.
void check_codes(struct reading *r);

// Those of pools and of who shares them.
void check_pools(struct reading *r);

// Those of a store that several appliances share.
void check_cluster(struct reading *r);
