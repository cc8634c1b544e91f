// What the process listens on: opened once, as root, before anything from outside is read.
#pragma once

#include "config/config.h"
#include "dataplane/worker.h"

#define LISTENERS_MAX 64u // addresses

struct listeners {
	unsigned count;
	int fds[LISTENERS_MAX][WORKER_COUNT_MAX]; // -1 once a driver has it
};

// An address of the configuration as drivers have it.
struct stream_address listeners_address(const struct config_address *from);

// Open every address of the configuration, one socket a worker; none with `driver: dpdk`. Returns
// 0, or -errno after logging which address and why; what was opened is closed then.
int listeners_open(const struct config *config, unsigned worker_count, struct listeners *listeners);

// Descriptors of all workers' drivers when all their streams are in use. Pure.
uint64_t listeners_descriptors(const struct config *config, unsigned worker_count);

// Make the sockets driver of one worker: over its listeners, and to origins. Returns 0 or -errno,
// logged.
int listeners_driver(const struct config *config, struct listeners *listeners, unsigned worker,
	unsigned worker_count, struct stream_driver **driver);

// Where a listener speaks the PROXY protocol, put a driver over one worker's, whichever that is,
// that takes its headers off. Returns 0 or -errno, logged; *driver is then as it was.
int listeners_proxy(
	const struct config *config, unsigned worker_count, struct stream_driver **driver);

// Close what no driver has taken.
void listeners_close(struct listeners *listeners);
