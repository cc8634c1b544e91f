// Streams that begin with a PROXY header: a driver over another one, the inner, that takes the
// header off before the worker hears of the stream.
//
//   inner events ──▶ header read and swallowed ──▶ events, of the same streams
//   calls ─────────────────────────────────────▶ calls on the inner driver
//
// STREAM_OPENED comes with the header's last byte, `peer` and `local` being what the header says;
// the contract of drivers/stream.h holds otherwise. Until then a stream is not the worker's: it
// counts in the inner driver's table alone. Streams of listeners without headers, and connected
// ones, are the inner driver's own, passed on.
//
// Who sends something else, ends first, or takes longer than the plan allows is reset, counted.
#pragma once

#include "drivers/stream.h"

#define PROXY_LISTENERS_MAX 64u
#define PROXY_PIECES_EVERY 16u // one in so many streams may have its header in pieces at once
#define PROXY_PIECES_MIN 64u

struct proxy_plan {
	uint64_t listeners; // a bit each: whose streams begin with a header
	uint32_t streams_max; // accepted streams that the inner driver may have at once, all in all
	uint32_t header_ms; // how long a header may take to arrive, from the accept
};

// Make a driver over `inner`, which is its own from then on and ends with it. Returns 0 or -ENOMEM;
// then `inner` is still the caller's.
int proxy_create(
	const struct proxy_plan *plan, struct stream_driver *inner, struct stream_driver **driver);

// Bytes that each of streams_max takes, when there are many.
uint64_t proxy_stream_bytes(void);

// What lies under a driver: the inner one, or the driver itself if it is none of these.
const struct stream_driver *proxy_inner(const struct stream_driver *driver);

// One list: enum, text, metric.
#define PROXY_COUNTERS(X) \
	X(proxy_bad, "connections closed: PROXY header missing or malformed") \
	X(proxy_late, "connections closed: PROXY header incomplete at its deadline") \
	X(proxy_full, "connections closed: too many PROXY headers in pieces at once")

enum proxy_counter {
#define X(name, text) PROXY_##name,
	PROXY_COUNTERS(X)
#undef X
		PROXY_COUNTERS_COUNT,
};

// A counter's value, 0 for a driver that is none of these; any thread may ask. Its name, and the
// text beside it in the list.
uint64_t proxy_counted(const struct stream_driver *driver, enum proxy_counter counter);
const char *proxy_counter_name(enum proxy_counter counter);
const char *proxy_counter_text(enum proxy_counter counter);
