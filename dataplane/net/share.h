// What all workers of a process share. For the files of this folder.
#pragma once

#include "dataplane/net/neighbour.h"
#include "dataplane/net/steer.h"

struct net_shared {
	struct steer *steer;
	struct neighbours *neighbours; // worker 0's; what is published in it, everybody's
};
