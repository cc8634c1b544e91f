// TLS: stream to stream. A driver (drivers/stream.h) whose streams lie, encrypted, on streams of
// another driver, the inner ones: TLS 1.2 and 1.3, as the client towards origins, and as the server
// towards visitors. A worker has one for each.
//
//   inner events ──▶ tls_take() ──▶ stream_poll() ──▶ events of TLS streams
//   calls on a TLS stream ──▶ OpenSSL ──▶ calls on its inner stream
//
// A turn of the worker is one stream_poll() of the inner driver, tls_take() of what came, and then
// stream_poll() here until it says 0: each round gives a bounded part of what the inner events
// bring, and spans of a round die with the next. All rounds must be over before the inner driver is
// polled again. A TLS stream has nothing to say between turns.
//
// The contract holds, with this to add to it:
//
//   opened     the handshake is done, and a server is who it must be
//   eof        the peer said so (close_notify); the mere end of the connection is STREAM_CLOSED
//              with ECONNRESET, since anybody on the way can cause it
//   closed     EKEYREJECTED: the peer's certificate is not good; EPROTO: the handshake failed
//              otherwise, or bytes came that the peer has not sealed; ENOBUFS: no room for what had
//              to be sent; else what the inner stream says
//   queued     counts sealed bytes
//   shut       sends close_notify and ends the inner stream's sending
//   stop_accepting, wake: belong to the inner driver and are missing here
//
// No renegotiation, no compression, no early data. Sessions are resumed (peer.h, ticket.h). There
// is no deadline here: whose patience with a handshake is over says tls_late() and closes.
//
// Memory: our own is allocated at creation. OpenSSL allocates for each stream while it lives: about
// TLS_STREAM_BYTES, most of it only while a record is under way, and TLS_STREAM_BYTES_HOSTILE
// whatever the peer does, since what it sends is bounded (trust.c), and what it makes us answer
// likewise (bio.h). So streams_max bounds it all.
#pragma once

#include "dataplane/tls/peer.h"
#include "drivers/stream.h"

struct identity;
struct ticket_keys;
struct trust;

#define TLS_RECORD_BYTES 16384u // of plain text in one record, at most (RFC 8446 5.1)
#define TLS_ROUND_BYTES (4 * TLS_RECORD_BYTES) // of plain text handed over in one round
#define TLS_STREAM_BYTES (96u << 10)
#define TLS_STREAM_BYTES_HOSTILE (512u << 10)
#define TLS_VISITOR_BYTES (80u << 10) // a visitor's, while its hello drips in; idle a sixth of it
#define TLS_HELLO_BYTES_MAX 16384u // of a visitor's first message
#define TLS_LISTENERS_MAX 64u

struct tls_plan {
	struct stream_driver *inner; // borrowed; must outlive this driver
	unsigned worker; // whose contexts of a trust or an identity are used
	uint32_t streams_max; // at once
	uint32_t handshakes_per_s; // as the server; beyond them one waits; 0: no limit
	const uint32_t *now_s; // unix time as the owner keeps it, by which stapled responses run
			       // out; borrowed; NULL: they do not
};

// Who we are to visitors, by the listener that they came to.
struct tls_service {
	const struct identity *const *identities; // TLS_LISTENERS_MAX; NULL: a plain one
	const struct ticket_keys *ticket_keys;
};

// How to know a server.
struct tls_target {
	const struct trust *trust; // its certificate must lead to this
	const char *name; // and be for this: a host name, also told to the server (SNI); or an
			  // address as text, which is not told
};

// Everything that can happen, counted. Written by the worker, read by anybody.
#define TLS_COUNTERS(X) \
	X(handshakes, "handshakes done; with origins: their certificates verified") \
	X(resumed, "of these, such that resumed an earlier session") \
	X(handshake_certificate, \
		"handshakes failed: a certificate not trusted, not valid, or for " \
		"another name") \
	X(handshake_protocol, "handshakes failed: nothing in common, an alert, or no TLS at all") \
	X(handshake_cut, "handshakes failed: the connection ended within") \
	X(handshake_late, \
		"handshakes failed: not done within connect_timeout, with visitors head_timeout") \
	X(staple_late, \
		"handshakes that got no OCSP response: it has run out; a reload reads it anew") \
	X(put_off, "handshakes that waited for their turn: over tls_handshakes") \
	X(cut, "streams whose connection ended without close_notify") \
	X(broken, "streams ended by an alert, or by bytes that the peer has not sealed") \
	X(full, "streams given up: no room for what had to be sent") \
	X(stream_none, "connects refused, visitors' reset: all TLS streams are in use") \
	X(memory_none, "connects refused, visitors' reset: OpenSSL is out of memory")

struct tls_counters {
#define X(name, text) _Atomic uint64_t name; // written: the worker; any thread may read
	TLS_COUNTERS(X)
#undef X
};

// Make the driver of one worker. Returns NULL when out of memory. stream_destroy() ends it; its
// streams must have been closed.
struct stream_driver *tls_create(const struct tls_plan *plan);

// Bytes of ours that a driver takes for each stream, and besides; without OpenSSL's.
size_t tls_stream_bytes(void);
size_t tls_fixed_bytes(void);

// Whether a stream of the inner driver carries one of ours: then its events are for tls_take().
bool tls_carries(const struct stream_driver *tls, const struct stream *inner);

// What the inner driver's stream_poll() has returned, streams that carry none of ours included. The
// array is borrowed until the last round of this turn.
void tls_take(struct stream_driver *tls, const struct stream_event *burst, int count);

// Begin to connect, as stream_connect() does.
//   target  borrowed for the call, its trust's context held by OpenSSL
//   peer    what is remembered of this server; borrowed until the stream has ended
// Returns NULL when streams, the inner driver or memory are exhausted.
struct stream *tls_connect(struct stream_driver *tls, const struct stream_address *to,
	const struct tls_target *target, struct peer *peer, void *user);

// Who we are from now on, for handshakes that begin or have not come to ask; borrowed until the
// next call. At first: nobody.
void tls_serve(struct stream_driver *tls, const struct tls_service *service);

// Whether a listener speaks TLS.
bool tls_serves(const struct stream_driver *tls, unsigned listener);

// Take a stream that the inner driver has just accepted, for a listener that speaks TLS, before the
// burst with its STREAM_OPENED goes to tls_take().
// Returns the stream to speak through, whose outcome is a later STREAM_OPENED or STREAM_CLOSED, as
// with a connect; NULL when streams or memory are exhausted: the inner one stays the caller's.
struct stream *tls_accept(struct stream_driver *tls, struct stream *inner, void *user);

// When there is something to do though nothing happens: handshakes wait for their turn. The inner
// driver is to be polled by then. UINT64_MAX: nothing.
uint64_t tls_due_us(const struct stream_driver *tls);

// The caller's patience is over, and it is going to close a stream that has not opened: count it,
// and leave the reason with the peer.
void tls_late(struct stream_driver *tls, struct stream *stream);

// What has been counted. Written by the worker; any thread may read.
const struct tls_counters *tls_counters(const struct stream_driver *tls);
