// Frames that another worker must see, by rings between the workers.
//
// Two kinds are handed over. ARP, neighbour discovery and ICMP go to worker 0. A segment of a flow
// that is not known where it arrived, on a port whose NIC chose the worker, is offered to the
// others one after the other, since a flow belongs to the worker at which its first segment
// arrived, whatever the NIC does later; likewise an ICMP error that quotes one. The last one asked
// deals with it: TCP resets what nobody knows.
//
// A ring that is full drops, counted: TCP sends again.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct net;
struct net_plan;
struct rte_mbuf;
struct steer; // a ring a worker

#define STEER_RING_FRAMES 1024u // of one worker

struct steer_item {
	struct rte_mbuf *frame;
	uint64_t hops; // workers asked before
};

// Make the rings for a number of workers. Returns 0 or -errno.
int steer_create(unsigned worker_count, struct steer **steer);
// Free them and the frames left in them.
void steer_destroy(struct steer *steer);

// Hand a frame to a worker; takes it.
void steer_push(struct net *n, unsigned worker, struct rte_mbuf *frame, unsigned hops);

// Hand a frame on to the next worker that has not been asked yet; takes it.
//   hops  asked before this one; less than steer_hops_max()
void steer_pass(struct net *n, struct rte_mbuf *frame, unsigned hops);

// Workers that may be asked before one that is the last.
unsigned steer_hops_max(const struct net *n);

// Frames handed to this worker, at most `max`. Returns how many.
unsigned steer_pop(struct net *n, struct steer_item *items, unsigned max);
