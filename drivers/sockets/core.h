// The driver itself: what it consists of, and its turn.
//
//   core.c    a turn: what is due, wait, take, deadlines
//   life.c    a stream from accept or connect to release; events
//   calls.c   what the worker asks for
//   engine_*  the kernel: waiting, accepting, receiving
#pragma once

#include "drivers/sockets/engine.h"
#include "drivers/sockets/socket.h"
#include "drivers/sockets/sockets.h"

struct core_listener {
	struct sockets_listener plan; // fd is -1 once it is closed
	uint64_t retry_us; // when to accept again after a failure; 0: it accepts
};

struct core {
	struct stream_driver driver; // first: the worker's struct stream_driver is a struct core
	const struct engine_ops *ops;
	void *engine; // the engine's own
	int refused; // errno with which io_uring was refused; 0: it was not, or was not tried

	// The burst in hand.
	struct stream_event *events;
	int event_max, event_count;
	uint32_t burst; // its number, from 1

	struct socket_table table;
	struct socket_list lingering; // in SOCKET_LINGERING, oldest first
	struct socket_list due; // to end in the next turn
	struct socket_list closed; // ended in this turn
	struct queue_pool pool;

	uint32_t streams_max, connects_max;
	uint64_t linger_us;
	unsigned listener_count;
	struct core_listener listeners[SOCKETS_LISTENERS_MAX];

	int wake_fd; // eventfd
	_Atomic bool is_woken; // wake_fd was written, or will be; set: anyone, cleared: worker
	struct sockets_stats stats;
};

// Allocate all but the engine, and take over the plan. Returns 0 or -errno; nothing is left.
int core_init(struct core *core, const struct sockets_plan *plan);

// Free all but the engine, and close the streams; the listeners are not touched.
void core_fini(struct core *core);

// The driver of a stream call, and the socket of its stream.
static inline struct core *core_of(struct stream_driver *driver)
{
	return (struct core *)driver;
}

// stream_poll().
int core_poll(
	struct stream_driver *driver, struct stream_event *events, int event_max, uint32_t wait_us);

// stream_wake(), and what the engine calls when wake_fd is readable.
void core_wake(struct stream_driver *driver);
void core_woken(struct core *core);

// How many reports still fit the burst; engines ask before each.
int core_rooms(const struct core *core);

// Engines: accepting has stopped.
void core_close_listener(struct core *core, unsigned listener);

// The driver's thread alone writes counters, so a plain add will do.
static inline void core_count_by(struct core *core, enum sockets_counter counter, uint64_t by)
{
	_Atomic uint64_t *at = &core->stats.counters[counter];
	uint64_t was = atomic_load_explicit(at, memory_order_relaxed);
	atomic_store_explicit(at, was + by, memory_order_relaxed);
}

static inline void core_count(struct core *core, enum sockets_counter counter)
{
	core_count_by(core, counter, 1);
}
