// Counters that one thread writes and any may read.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

// Count `more`. The counter's only writer.
static inline void tally_add(_Atomic uint64_t *counter, uint64_t more)
{
	uint64_t was = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, was + more, memory_order_relaxed);
}
