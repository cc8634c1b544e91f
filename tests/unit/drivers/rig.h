// A driver under test, with plain sockets of the same thread at the other ends.
//
// Every stream that opens is a peer in the rig, which notes what happened to it.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/sockets/sockets.h"

#define RIG_PEERS_MAX 1024
#define RIG_EVENTS_MAX 64
#define RIG_KEPT_MAX 4096 // bytes kept of what a peer sent
#define RIG_PATIENCE_MS 5000 // for what must happen

struct rig_peer {
	struct stream *stream; // NULL once it is closed
	char kept[RIG_KEPT_MAX]; // the first bytes that came
	uint64_t bytes; // how many came in all
	uint64_t sum; // of rig_sum() over all
	int opened, data, writable, eof, closed;
	int error; // of STREAM_CLOSED
	bool was_full; // sockets_is_full() when it opened
};

struct rig {
	struct stream_driver *driver;
	struct stream_address address; // of the first listener
	int listener; // its descriptor; the driver's
	int kernel_bytes; // of rig_shrink(); 0: what the kernel likes
	struct rig_peer peers[RIG_PEERS_MAX];
	int peer_count;
	int events; // in all
	int taken_back; // STREAM_NONE among them
	int events_max; // of a turn
	struct stream_event burst[RIG_EVENTS_MAX];
	// Called after an event was noted; may be NULL.
	void (*react)(struct rig *rig, struct rig_peer *peer, const struct stream_event *event);
	void *mind; // of react
};

// A plan with small sizes and one listener on 127.0.0.1, to be changed and then given to
// rig_start().
struct sockets_plan rig_plan(enum sockets_engine engine);
void rig_start(struct rig *rig, struct sockets_plan *plan);
// With that plan as it is, on the engine in *state; skips the test if the kernel refuses that.
void rig_begin(struct rig *rig, void **state);
void rig_stop(struct rig *rig);

// Have the kernel buffer about `bytes` a connection and side, of those to come, so that ours are
// used whatever the machine allows.
void rig_shrink(struct rig *rig, int bytes);

// One turn. Returns how many events it gave.
int rig_turn(struct rig *rig, uint32_t wait_us);

// Turn until `condition`, which must come true.
#define RIG_UNTIL(rig, condition) \
	do { \
		uint64_t rig_end = rig_clock_ms() + RIG_PATIENCE_MS; \
		while (!(condition) && rig_clock_ms() < rig_end) \
			rig_turn(rig, 2000); \
		assert_true(condition); \
	} while (0)

// Turn for a while in which something must not happen.
void rig_rest(struct rig *rig, unsigned ms);

// The kernel takes an io_uring of an earlier test down in the background, and interrupts waits of
// its thread at that; who measures a wait lets that pass first.
void rig_settle(struct rig *rig);

uint64_t rig_counter(const struct rig *rig, enum sockets_counter counter);
uint64_t rig_clock_ms(void);

// Send text on a stream. Returns what stream_write() returned.
size_t rig_write(struct rig *rig, struct rig_peer *peer, struct span data);

// A reaction: send back what came; close at EOF.
void rig_echo(struct rig *rig, struct rig_peer *peer, const struct stream_event *event);

// A pattern that betrays loss, repetition and exchange: byte `at` of it, a running sum over bytes
// that depends on their places, and the sum of the pattern's first `end` bytes.
char rig_byte(uint64_t at);
uint64_t rig_sum(uint64_t sum, uint64_t at, const char *bytes, size_t len);
uint64_t rig_pattern_sum(uint64_t end);

// Write the pattern from `at` on a stream, RIG_CHUNK at a time, to `end` or until more than
// queue_high is queued. Returns how far it came.
#define RIG_CHUNK 16384
uint64_t rig_fill(struct rig *rig, struct rig_peer *peer, uint64_t at, uint64_t end);

// ---- The other end. ----

int rig_client(const struct rig *rig);
// The same, and its stream has opened.
int rig_client_open(struct rig *rig, struct rig_peer **peer);
void rig_client_send(int fd, struct span data);

// Send as much of the pattern from `at` to `end` as the kernel takes now. Returns how far it came.
uint64_t rig_client_fill(int fd, uint64_t at, uint64_t end);

// Receive exactly `len` bytes while the driver turns. Returns 0, or the errno or EPIPE (FIN) that
// came instead.
int rig_client_receive(struct rig *rig, int fd, char *into, size_t len);

// The same, for the end: 0 is FIN, else the errno; bytes that come before are dropped.
int rig_client_end(struct rig *rig, int fd);
void rig_client_reset(int fd);

// Skip the test at hand if the kernel refuses this engine here.
void rig_require(enum sockets_engine engine);

// A test for each engine, which it finds in *state.
#define RIG_ON(engine, number, test) \
	{ \
#test " (" engine ")", test, NULL, NULL, (void *)number \
	}
#define RIG_BOTH(test) RIG_ON("io_uring", SOCKETS_URING, test), RIG_ON("epoll", SOCKETS_EPOLL, test)
static inline enum sockets_engine rig_engine(void **state)
{
	return (enum sockets_engine)(uintptr_t)*state;
}

// Run `body` in a child, so that it may spoil its process. Returns 0 if it returned true.
int rig_in_child(bool (*body)(void *mind), void *mind);
