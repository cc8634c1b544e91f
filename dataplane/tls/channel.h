// A channel: one TLS stream, from the connect or the accept to its end, and the driver that all of
// them share.
//
//                            WAITING
//                              ▲▼
//   FREE ──▶ CONNECTING ──▶ HANDSHAKE ──▶ OPEN ──▶ CLOSED ──▶ FREE
//                 └──────────────┴──────────────────▲
//
// WAITING: a visitor's hello is there, and the handshake goes on when its turn comes.
// CLOSED: STREAM_CLOSED is in the events handed over; the next turn frees it. What its owner closes
// is free at once.
#pragma once

#include <sys/queue.h>

#include "dataplane/tls/bio.h"
#include "dataplane/tls/ticket.h"
#include "dataplane/tls/tls.h"

enum channel_state {
	CHANNEL_FREE,
	CHANNEL_CONNECTING, // the inner stream is not open yet
	CHANNEL_HANDSHAKE,
	CHANNEL_WAITING, // on the list of those
	CHANNEL_OPEN,
	CHANNEL_CLOSED,
};

#define CHANNEL_HELLO_BYTES 9 // a record's head, and that of the message in it

struct channel {
	struct stream stream; // first: a struct stream of ours is a struct channel
	struct tls *tls;
	struct bio_stream carrier; // its `inner` is NULL once the inner driver has taken it back
	struct ssl_st *ssl; // NULL when FREE or CLOSED
	struct peer *peer; // NULL: we are the server
	uint8_t state; // enum channel_state
	bool has_ended; // close_notify came
	bool has_turn; // a visitor's: its handshake may go on
	uint8_t hello_seen; // bytes in `hello`
	uint8_t hello[CHANNEL_HELLO_BYTES]; // how a visitor began
	TAILQ_ENTRY(channel) siblings; // the free ones', the closed ones', or those that wait
};
TAILQ_HEAD(channel_list, channel);

struct tls {
	struct stream_driver driver; // first
	struct stream_driver *inner;
	unsigned worker;
	BIO_METHOD *methods;
	struct channel *channels;
	uint32_t channel_max;
	uint32_t uncut_count; // channels never used yet
	uint32_t used_count; // channels not free
	struct channel_list free, closed;

	// as a server
	struct tls_service service;
	const uint32_t *now_s; // unix time; NULL: stapled responses do not run out
	struct evp_cipher_st *ticket_cipher; // fetched once
	struct channel_list waiting; // the longest first
	uint64_t handshake_ns; // each; 0: as many as come
	uint64_t turns_ns; // when the next handshake would begin if all came evenly

	// the turn in hand
	const struct stream_event *burst; // the inner driver's
	int burst_count;
	int burst_at; // the next to be taken
	bool is_begun; // that one has been, in part

	// the round in hand
	struct stream_event *events; // the caller's
	int event_count;
	size_t plain_bytes; // used of `plain`

	struct tls_counters counters;
	char plain[TLS_ROUND_BYTES]; // what the round's events point to
	char record[TLS_RECORD_BYTES]; // parts of a write, put together
};

// A channel with nothing set. NULL: all are in use.
struct channel *channel_take(struct tls *tls);
void channel_give(struct tls *tls, struct channel *channel);

// The only way to change its state; asserts that the move is allowed.
void channel_set_state(struct channel *channel, enum channel_state to);

// Whether one more handshake may go on in this turn; then it is counted against the rate.
bool channel_take_turn(struct tls *tls);

// When that will be so for the first of those that wait; UINT64_MAX: none waits.
uint64_t channel_turn_us(const struct tls *tls);

// Go on with those that wait and may, as far as the round has room for their events.
void channel_go_on_waiting(struct tls *tls, int events_max);

// Let go of what OpenSSL holds for it, leaving its session fit to be resumed.
void channel_release(struct channel *channel);

// Turn an event of its inner stream into events of its own, at most CHANNEL_EVENTS_MAX. Returns
// whether it is used up; if not, the same is to be called again in the next round.
#define CHANNEL_EVENTS_MAX 3
bool channel_event(struct tls *tls, struct channel *channel, const struct stream_event *event);
