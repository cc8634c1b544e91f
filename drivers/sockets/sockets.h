// The sockets driver: streams (drivers/stream.h) over the kernel's TCP, accepted and connected.
//
// One driver a worker. Its engine is io_uring, or epoll where the kernel refuses io_uring (seccomp,
// sysctl, age); the contract above is the same.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "drivers/stream.h"

enum sockets_engine {
	SOCKETS_AUTO, // io_uring if it works here, else epoll
	SOCKETS_URING,
	SOCKETS_EPOLL,
};

#define SOCKETS_LISTENERS_MAX 64 // of one driver
#define SOCKETS_STREAMS_MAX 4000000 // streams of one driver, all together
#define SOCKETS_BUFFERS_MAX 32768 // receive buffers: the most that one io_uring ring can number
#define SOCKETS_BUFFER_BYTES_MIN 2048 // of either kind
#define SOCKETS_BUFFER_BYTES_MAX 65536
#define SOCKETS_RESERVE 64 // streams above streams_max, so that newcomers can be told why

struct sockets_listener {
	struct stream_address address; // what it is bound to
	int fd; // one of sockets_listen()
};

struct sockets_plan {
	enum sockets_engine engine;
	uint32_t streams_max; // accepted streams served at once
	uint32_t connects_max; // connected ones; of their own, so that visitors cannot take them
	uint32_t receive_count, receive_bytes; // receive buffers; the count is a power of two
	uint32_t send_count, send_bytes; // pool for what peers do not take at once
	size_t queue_high; // bytes queued on a stream that make its writer stop
	uint32_t linger_ms; // how long a closed stream may take to see its queue off
	unsigned listener_count;
	struct sockets_listener listeners[SOCKETS_LISTENERS_MAX];
};

// Make the listeners of one address, one a worker, that share it by SO_REUSEPORT. Done once, at
// start, before privileges are dropped.
//   address  port 0 picks a free one, the same for all
//   fds      `workers` of them; the caller's until it gives each to a sockets_create()
// Returns 0 or -errno; -EADDRINUSE also when another process listens there with SO_REUSEPORT, which
// the kernel alone would let us share. Nothing is left open on error.
int sockets_listen(const struct stream_address *address, unsigned workers, int fds[]);

// The address that a listener of sockets_listen() is bound to. Returns 0 or -errno.
int sockets_address(int fd, struct stream_address *address);

// Make a driver. Everything it will ever allocate, it allocates here. It may be made on one thread
// and used on another: the first stream_poll() binds it to its thread.
// Returns 0 or -errno: -EINVAL for a plan outside the limits above, -ENOMEM, or what the engine
// asked for said when it was refused (never for SOCKETS_AUTO). On success the driver owns the
// listeners' descriptors, on error they stay the caller's.
int sockets_create(const struct sockets_plan *plan, struct stream_driver **driver);

// Bytes that a driver of this plan takes, and descriptors when all its streams are in use.
uint64_t sockets_bytes(const struct sockets_plan *plan);
uint64_t sockets_descriptors(const struct sockets_plan *plan);

// The engine in use: SOCKETS_URING or SOCKETS_EPOLL.
//   refused  0, or the errno with which io_uring was refused; for the one log line
enum sockets_engine sockets_engine(const struct stream_driver *driver, int *refused);

// Whether the table of accepted streams is past streams_max: asked when a stream opens, true means
// that this one came in on the reserve and is to be answered 503 and closed. Worker only.
bool sockets_is_full(const struct stream_driver *driver);

// One list: enum, text, metric.
#define SOCKETS_COUNTERS(X) \
	X(accepted, "connections accepted") \
	X(accept_table_full, "connections reset: the stream table and its reserve are full") \
	X(accept_no_descriptor, "accepts put off: out of descriptors (EMFILE, ENFILE)") \
	X(accept_failed, "accepts that failed otherwise, or whose peer was gone already") \
	X(connected, "connections made") \
	X(connect_failed, "connections that could not be made") \
	X(connect_table_full, "connects refused: the stream table is full") \
	X(connect_no_descriptor, "connects refused: out of descriptors") \
	X(bytes_in, "bytes received") \
	X(bytes_out, "bytes sent") \
	X(receive_no_buffer, "receives put off: no buffer free") \
	X(send_no_buffer, "writes cut short: the send pool is empty") \
	X(stream_error, "streams ended by an error, mostly reset by the peer") \
	X(linger_late, "closed streams reset: their queue not taken by the linger deadline") \
	X(ring_overflow, "turns in which the completion ring had overflowed")

enum sockets_counter {
#define X(name, text) SOCKETS_##name,
	SOCKETS_COUNTERS(X)
#undef X
		SOCKETS_COUNTERS_COUNT,
};

// Written by the worker; may be read by any thread at any time.
struct sockets_stats {
	_Atomic uint64_t counters[SOCKETS_COUNTERS_COUNT];
	_Atomic uint32_t accepted_open; // streams in use now, closing ones with them
	_Atomic uint32_t connected_open;
};

// The driver's own stats; they live as long as it does.
const struct sockets_stats *sockets_stats(const struct stream_driver *driver);

// "accept_no_descriptor", and the text beside it in the list.
const char *sockets_counter_name(enum sockets_counter counter);
const char *sockets_counter_text(enum sockets_counter counter);
