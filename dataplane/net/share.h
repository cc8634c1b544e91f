// What all workers of a process share. For the files of this folder.
#pragma once

#include "dataplane/net/gateway.h"
#include "dataplane/net/steer.h"

struct net_shared {
	struct steer *steer;
	struct gateways *gateways; // worker 0's; what is published in it, everybody's
};
