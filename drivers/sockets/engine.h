// What the driver asks of an engine, and the two that there are.
//
// An engine waits for the kernel and reports to the core (life.h, first part); it
// knows descriptors and buffers, nothing of lives and deadlines.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct core;
struct socket;
struct sockets_plan;

struct engine_ops {
	// Allocate into core->engine and begin to accept. Returns 0 or -errno; nothing is left.
	int (*init)(struct core *core, const struct sockets_plan *plan);
	void (*fini)(struct core *core);

	// Take the last burst's buffers back, submit, and wait at most `wait_us`.
	void (*wait)(struct core *core, uint64_t wait_us);
	// Report what is ready, while core_has_room().
	void (*take)(struct core *core);

	// Accept from a listener; stop for good, and close it. Both may be repeated.
	void (*accept_start)(struct core *core, unsigned listener);
	void (*accept_stop)(struct core *core, unsigned listener);

	// A new socket. Returns 0 or -errno.
	int (*add)(struct core *core, struct socket *socket);
	// Receive from it until receive_stop(), of which at most a few buffers may still come.
	void (*receive_start)(struct core *core, struct socket *socket);
	void (*receive_stop)(struct core *core, struct socket *socket);
	// Report once when it can be written again, after the kernel took no more; when it has
	// connected; or when it has failed.
	void (*await_writable)(struct core *core, struct socket *socket);
	// Let go of it: life_released() when nothing is in flight, perhaps from in here.
	void (*release)(struct core *core, struct socket *socket);
};

// What init of engine_uring allocates, with what the kernel does for it.
uint64_t engine_uring_bytes(const struct sockets_plan *plan);
extern const struct engine_ops engine_uring;
extern const struct engine_ops engine_epoll;
