// A network in memory: a stream driver whose peers are the test.
//
// The test says what peers do (fake_peer_...), the next stream_poll() hands it over as one burst,
// and what was written is found in `got`. A peer takes `window` bytes and no more until the test
// lets it; the rest is queued, and the longest queue ever is remembered.
#pragma once

#include "drivers/stream.h"

#define FAKE_STREAMS_MAX 128
#define FAKE_EVENTS_MAX 4096
#define FAKE_QUEUE_HIGH 4096u

struct fake_bytes {
	char *at;
	size_t len, room;
};

struct fake_stream {
	struct stream stream; // first: the contract
	bool is_used; // given out, not yet taken back
	bool is_open;
	bool is_paused, is_shut, was_reset;
	bool wants_writable; // its queue had passed queue_high
	size_t window; // bytes that the peer will still take; SIZE_MAX: all
	size_t take_max; // bytes that the driver will still take; SIZE_MAX: all
	size_t queued_peak;
	struct fake_bytes got; // what the peer has received
	struct fake_bytes queue;
};

struct fake {
	struct stream_driver driver; // first
	bool refuses; // stream_connect() fails
	int count; // streams ever given out; slots are not used again
	struct fake_stream streams[FAKE_STREAMS_MAX];
	struct stream_event *burst; // in the caller's hands
	int burst_count;
	int event_count;
	struct stream_event events[FAKE_EVENTS_MAX];
	struct fake_bytes event_bytes; // what the events' spans will point to
};

void fake_init(struct fake *fake);
void fake_fini(struct fake *fake);

// A client connects from 192.0.2.7 port 4711.
struct fake_stream *fake_accept(struct fake *fake);

// What a peer does, for the next stream_poll(). A closed stream takes no events.
void fake_peer_opens(struct fake *fake, struct fake_stream *s);
void fake_peer_sends(struct fake *fake, struct fake_stream *s, struct span data);
void fake_peer_ends(struct fake *fake, struct fake_stream *s); // STREAM_EOF
void fake_peer_closes(struct fake *fake, struct fake_stream *s, int error);

// To be called before a STREAM_CLOSED is looked at: from then on a call on its stream is a mistake.
void fake_gone(struct stream *stream);

// The peer takes `bytes` more, some of them from the queue at once.
void fake_peer_takes(struct fake *fake, struct fake_stream *s, size_t bytes);
