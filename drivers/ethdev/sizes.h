// How long queues are and how many buffers there are, from a plan alone: before a device is opened.
#pragma once

#include <stdint.h>

#include "drivers/ethdev/ethdev.h"

#define SIZES_BUFFER_CACHE 256u // buffers that a worker keeps of a pool, half as much again at most
#define SIZES_RESERVE 512u // buffers of a worker for control frames alone

#define SIZES_EXCEPTION_LEN 512u // descriptors of an exception interface

struct sizes {
	uint16_t receive_len, send_len; // descriptors of a queue; a device may have less
	uint32_t ring_len; // of dispatch rings; 0 with one worker
	uint32_t receive_buffers[ETHDEV_PORTS_MAX]; // of each port
	uint32_t send_buffers; // of each worker, for frames that begin here
	uint32_t receive_bytes[ETHDEV_PORTS_MAX], send_bytes; // data of one buffer, with headroom
};

// Work out a plan's sizes. Pure.
void sizes_of(const struct ethdev_plan *plan, struct sizes *sizes);

// The MTU of a port of a plan, its default put in.
uint16_t sizes_mtu(const struct ethdev_port_plan *port);
