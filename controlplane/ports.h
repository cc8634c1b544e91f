// The ports of `driver: dpdk`: what the configuration says, as plans for ethdev and the network.
#pragma once

#include "config/config.h"
#include "controlplane/process.h"
#include "dataplane/net/net.h"

struct ports {
	struct ethdev *devices;
	struct net_shared *shared;
	struct net_plan plan;
};

// What EAL is to be started with. `eal` borrows of `config`.
void ports_eal(const struct config *config, const struct config_machine *machine,
	unsigned worker_count, struct process_eal *eal);

// Open all, after EAL and before privileges are dropped, and log what each port is. Returns 0, or
// -errno with the reason logged; ports_close() undoes what was done, also then.
int ports_open(const struct config *config, unsigned worker_count, struct ports *ports);

// Make the driver by which visitors reach worker `worker`. Returns 0 or -errno, logged.
int ports_driver(struct ports *ports, unsigned worker, struct stream_driver **driver);

// After the workers' drivers. `ports` may be all zero.
void ports_close(struct ports *ports);

// For the bill: buffers and queues, which lie in EAL's memory, and what workers allocate. 0 with
// the other driver.
uint64_t ports_bytes(const struct config *config, uint32_t worker_count);
uint64_t ports_network_bytes(const struct config *config, uint32_t worker_count);

// Write what `sluice check` says of ports: memory in hugepages, who drives the network cards, and
// on which node they are. Nothing with the other driver.
void ports_print(const struct config *config, const struct config_machine *machine, FILE *out);
