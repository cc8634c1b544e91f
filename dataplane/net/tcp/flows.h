// The flow table: four-tuple to connection, per worker.
//
// Buckets of one cache line: seven 16-bit tags and seven indices; a full bucket's entries go to the
// next ones. Sized for three quarters full at its most, so it never fills. The hash is seeded:
// nobody outside can aim for one bucket.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/stream.h"

struct tcp_flows;

// Make a table for `max` flows. Returns NULL when out of memory.
struct tcp_flows *flows_create(uint32_t max, uint64_t seed);
void flows_destroy(struct tcp_flows *flows);
uint64_t flows_bytes(uint32_t max);

// The hash of a four-tuple. Pure.
uint64_t flows_hash(const struct tcp_flows *flows, const struct stream_address *local,
	const struct stream_address *peer);

// Begin to fetch the bucket of a hash.
void flows_prefetch(const struct tcp_flows *flows, uint64_t hash);

// Candidates for a hash, one after the other: the caller compares the addresses.
//   at  0 to begin with; kept between calls
// Returns false when there are no more.
bool flows_next(const struct tcp_flows *flows, uint64_t hash, uint32_t *at, uint32_t *index);

// Enter a connection's index, which is not in it; take one out, which is.
void flows_add(struct tcp_flows *flows, uint64_t hash, uint32_t index);
void flows_remove(struct tcp_flows *flows, uint64_t hash, uint32_t index);
