// One port: from a device's name to one that runs.
#pragma once

#include "drivers/ethdev/inside.h"

// What goes wrong is told in one line in `error`.

// Probe the device `device`, unless EAL has done so at its start. Fills id and name. Returns 0 or
// -errno.
int port_probe(struct inside_port *port, const char *device, uint16_t mtu, unsigned workers,
	char error[ETHDEV_ERROR_BYTES]);

// Configure queues, offloads, RSS and MTU, and start. `port` has been probed and has its pool.
// Returns 0 or -errno.
int port_start(struct inside_port *port, const struct ethdev_port_plan *plan,
	const struct sizes *sizes, unsigned workers, char error[ETHDEV_ERROR_BYTES]);

// Stop and close, and let go of the device.
void port_close(struct inside_port *port);
