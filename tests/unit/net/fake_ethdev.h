// Ports that are arrays: drivers/ethdev/ethdev.h for tests, with time in hand. The buffers are true
// ones, from one pool, so that a leak shows.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/ethdev/ethdev.h"
#include "drivers/span.h"

#define FAKE_FRAMES_MAX 512u
#define FAKE_BUFFERS 2047u

extern uint64_t fake_now_us; // what ethdev_turn() says

// Start EAL and make the pool. Once.
bool fake_open(void);

// A worker's device; nothing is waiting, nothing was sent.
struct ethdev_worker *fake_worker(unsigned index);

// Let a frame arrive. Copied.
void fake_arrive(struct ethdev_worker *w, uint16_t port, struct span frame, uint64_t flags);

// Likewise, in two buffers.
void fake_arrive_in_pieces(struct ethdev_worker *w, uint16_t port, struct span frame);

// What was sent, and not yet forgotten: its bytes, flags and port, in order.
unsigned fake_sent_count(const struct ethdev_worker *w);
struct span fake_sent(const struct ethdev_worker *w, unsigned i);
const struct rte_mbuf *fake_sent_buffer(const struct ethdev_worker *w, unsigned i);
uint16_t fake_sent_port(const struct ethdev_worker *w, unsigned i);
void fake_forget(struct ethdev_worker *w);

// Frames given to the exception interface, and the class of the last.
unsigned fake_excepted(const struct ethdev_worker *w, enum ethdev_class *class);

// The next `count` buffers asked for are not there.
void fake_starve(struct ethdev_worker *w, unsigned count);

// The link of a port changes.
void fake_link(struct ethdev_worker *w, unsigned port, bool is_up);

// Buffers not in the pool.
unsigned fake_buffers_out(void);
