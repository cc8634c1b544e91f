// Streams: the one contract between whoever moves bytes in and out of the machine and whoever reads
// them.
//
// A driver belongs to one worker and is used by its thread alone. It takes in what arrived since
// the last turn and hands it over as one burst of events; the worker answers with writes and
// closes, which leave at once or at the next flush. Above it nothing knows whether the bytes came
// through io_uring, epoll, a NIC or TLS.
//
//   events in            opened · data · writable · eof · closed
//   calls out            write · shut · close · pause · resume · connect
//
// Life of a stream: an accepted one begins with STREAM_OPENED; a connected one begins with
// stream_connect() and its STREAM_OPENED comes when the peer answered. It ends with exactly one of:
// the worker's stream_close(), after which no event for it is delivered: those still ahead in the
// burst in hand become STREAM_NONE; or STREAM_CLOSED, after which the worker makes no call on it
// (its fields may be read until the next turn). Either way the driver takes the `struct stream`
// back.
//
// STREAM_CLOSED with an error may come in place of bytes that had come before and were not told
// yet, as those of a paused stream: a reset flushes them (RFC 9293 3.10.7.4). The kernel gives them
// out first, our own TCP does not; nobody may count on either, since who resets waits for no answer
// and means nothing to be finished. What ended in order (STREAM_EOF, CLOSED with 0) loses nothing.
//
// Memory: everything is allocated when the driver is created, from its plan. A stream that is idle
// holds no buffer.
#pragma once

#include <netinet/in.h>
#include <stdint.h>

#include "drivers/span.h"

struct stream;
struct stream_driver;

// Where a peer or a listener is. IPv4 addresses are stored mapped (::ffff:a.b.c.d).
struct stream_address {
	uint8_t ip[16];
	uint16_t port; // host order
};

enum stream_event_kind {
	STREAM_NONE, // taken back: the stream was closed earlier in this burst; skip it
	STREAM_OPENED, // a peer connected, or our connect succeeded
	STREAM_DATA, // `data` arrived; it lives until the next stream_poll()
	STREAM_WRITABLE, // the queue of a stream whose stream_queued() had passed `queue_high` is
			 // empty again
	STREAM_EOF, // the peer will send no more; writing may go on
	STREAM_CLOSED, // gone: reset, refused, or the driver ran out (`error` is an errno); or both
		       // sides have ended, EOF came and stream_shut() has sent its FIN (0)
};

struct stream_event {
	enum stream_event_kind kind;
	int error; // STREAM_CLOSED only
	struct stream *stream;
	struct span data; // STREAM_DATA only; never empty
};

// The first member of every driver's own stream struct.
struct stream {
	void *user; // the worker's; NULL when an accepted stream opens
	uint16_t listener; // index of the listener that accepted it; STREAM_CONNECTED if we
			   // connected
	struct stream_address peer; // from the PROXY protocol where the listener speaks it
	struct stream_address local; // likewise
};
#define STREAM_CONNECTED UINT16_MAX

struct stream_driver_ops {
	int (*poll)(struct stream_driver *d, struct stream_event *events, int events_max,
		uint32_t wait_us);
	size_t (*write)(struct stream_driver *d, struct stream *s, const struct span *parts,
		unsigned count);
	size_t (*queued)(const struct stream_driver *d, const struct stream *s);
	void (*shut)(struct stream_driver *d, struct stream *s);
	void (*close)(struct stream_driver *d, struct stream *s, bool reset);
	void (*pause)(struct stream_driver *d, struct stream *s);
	void (*resume)(struct stream_driver *d, struct stream *s);
	struct stream *(*connect)(
		struct stream_driver *d, const struct stream_address *to, void *user);
	void (*stop_accepting)(struct stream_driver *d);
	void (*wake)(struct stream_driver *d);
	void (*destroy)(struct stream_driver *d);
};

// The first member of every driver's own struct.
struct stream_driver {
	const struct stream_driver_ops *ops;
	size_t queue_high; // bytes; a stream with more than this queued asks its writer to stop
	uint64_t now_us; // CLOCK_MONOTONIC of this turn; written by stream_poll(), once
	uint32_t taken; // frames that the last stream_poll() took in, whether or not events came
			// of them; 0 in a driver that sleeps
};

// Take in one turn: flush what is due, wait at most `wait_us` if nothing is ready (0: do not wait),
// and fill `events`, at least STREAM_EVENTS_MIN of them. Events of one stream are in order. Returns
// how many; never an error: a driver that cannot go on aborts. Spans of the previous turn's events
// die here. The array stays in the driver's hands until the next turn (stream_close() looks at it).
#define STREAM_EVENTS_MIN 4
static inline int stream_poll(
	struct stream_driver *d, struct stream_event *events, int events_max, uint32_t wait_us)
{
	return d->ops->poll(d, events, events_max, wait_us);
}

// Send `parts`, at most STREAM_PARTS_MAX, in order, after what is still queued. What the peer does
// not take now is copied into the driver's pool and sent later; the caller's bytes are free when
// this returns. Returns the bytes taken: all of them, or less when the pool is exhausted (the
// stream is then of no use: close it). A caller that streams looks at stream_queued() afterwards
// and pauses its source above `queue_high`.
#define STREAM_PARTS_MAX 64
static inline size_t stream_write(
	struct stream_driver *d, struct stream *s, const struct span *parts, unsigned count)
{
	return d->ops->write(d, s, parts, count);
}

// Bytes taken by stream_write() that the peer has not yet taken from us.
static inline size_t stream_queued(const struct stream_driver *d, const struct stream *s)
{
	return d->ops->queued(d, s);
}

// Send no more: FIN after what is queued. Reading goes on, so this and then dropping what comes
// until STREAM_CLOSED is how to part from a peer that still sends (RFC 9112 9.6). No writes after
// it.
static inline void stream_shut(struct stream_driver *d, struct stream *s)
{
	d->ops->shut(d, s);
}

// Give the stream back. With `reset` false what is queued is still sent (within the driver's linger
// deadline), then FIN; with true the peer gets a RST and the queue is dropped. A kernel answers
// bytes that nobody read, or that come after this, by RST, which may cost the peer the end of what
// we sent: where the peer may still be sending, stream_shut() first.
static inline void stream_close(struct stream_driver *d, struct stream *s, bool reset)
{
	d->ops->close(d, s, reset);
}

// Stop reading, so that the peer's window fills. Data already received may still arrive as events
// (of io_uring as many as two receives bring, 64 buffers); the caller must take them. Pausing
// twice, or resuming what is not paused, changes nothing. That the peer is gone may go unnoticed
// until the stream is resumed or written.
static inline void stream_pause(struct stream_driver *d, struct stream *s)
{
	d->ops->pause(d, s);
}

static inline void stream_resume(struct stream_driver *d, struct stream *s)
{
	d->ops->resume(d, s);
}

// Begin to connect. Returns the stream, whose outcome is a later STREAM_OPENED or STREAM_CLOSED;
// NULL when the stream table or the descriptors are exhausted.
static inline struct stream *stream_connect(
	struct stream_driver *d, const struct stream_address *to, void *user)
{
	return d->ops->connect(d, to, user);
}

// Take no connection any more: who comes is refused at once. Streams go on. For draining.
static inline void stream_stop_accepting(struct stream_driver *d)
{
	d->ops->stop_accepting(d);
}

// The only call that another thread may make: end the wait of a stream_poll() that sleeps.
static inline void stream_wake(struct stream_driver *d)
{
	d->ops->wake(d);
}

static inline void stream_destroy(struct stream_driver *d)
{
	d->ops->destroy(d);
}
