// An exchange: one request of an admitted client, passed to an origin, and its answer passed back;
// or, after the origin's 101, a tunnel.
//
// The worker owns the client's stream, parses its heads and begins exchanges one at a time for each
// connection. From exchange_begin() on the exchange writes to that stream, and pauses and resumes
// it until the request's body has ended (always, in a tunnel); it never closes it. It ends once:
// by calls->ended(), or by the worker's exchange_client_closed(). After that it is gone.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/http/head.h"
#include "drivers/stream.h"

struct exchange;
struct origin;

// What the worker knows about a request that is to be passed on.
struct exchange_request {
	struct stream_driver *client_driver;
	struct stream *client; // `peer` is who the origin is told about
	void *user; // handed to the calls
	const struct http_head *head; // not CONNECT, not TRACE; read only during exchange_begin()
	uint32_t origin; // index in the table
	struct span host; // the name that was matched: what the origin gets as Host
	struct span room; // Sluice-Room; empty: none
	uint64_t session; // Sluice-Session, as 16 lower-case hex digits; 0: none
	uint64_t ends_us; // when the session does; UINT64_MAX: never. A tunnel ends then, an answer
			  // in flight may go on for the plan's late_us
	bool is_tls; // the client came over TLS: the origin is told https
	bool peer_is_trusted; // a proxy whose forwarding fields are kept, and continued
};

// What the gate adds to an answer. All zero: nothing.
struct exchange_extra {
	struct span fields; // whole lines with CRLF: Set-Cookie, Sluice-Pass; at most
			    // EXCHANGE_EXTRA_BYTES_MAX; the bytes live until the next call here
	struct span date; // of now, as IMF-fixdate, for an answer without one (RFC 9110 6.6.1);
			  // lives as long
	bool is_private; // `Cache-Control: private, no-store` in place of the origin's; no
			 // validators
	bool close; // let this be the last answer on the client's connection
};
#define EXCHANGE_EXTRA_BYTES_MAX 8192

enum exchange_command {
	EXCHANGE_COMMAND_END, // Sluice-Command: end
	EXCHANGE_COMMAND_RENEW, // Sluice-Command: renew
};

enum exchange_outcome {
	EXCHANGE_KEPT, // answered; the next request may follow on the client's connection
	EXCHANGE_CLOSE, // answered, or a tunnel is over: close it, with what is queued
	EXCHANGE_LINGER, // answered before the request's body had ended: shut it, discard a
			 // bounded rest, close
	EXCHANGE_BROKEN, // a part of an answer went out and no more will: close it with a reset
	EXCHANGE_FAILED, // no final answer went out: answer with `status`
};

struct exchange_end {
	uint8_t outcome; // enum exchange_outcome
	bool body_ended; // false: the client is still sending; do not keep its connection
	uint16_t status; // EXCHANGE_FAILED only. 400: the request's body is against the grammar or
			 // cut short; 408: it is late or slow; 502: the origin refuses, resets or
			 // speaks nonsense; 503: we are full; 504: the origin is late
};

// What the worker hears. `user` is that of the request.
struct exchange_calls {
	// The origin's final answer carries a Sluice-Command (which is not passed on). Before
	// `answered`.
	void (*command)(void *user, enum exchange_command command);

	// A final answer, or 101, is about to go out; `extra` is all zero and may be filled. Not
	// called for failures: those answers are the worker's.
	void (*answered)(void *user, uint16_t status, struct exchange_extra *extra);

	// The origin took the upgrade and its 101 has been written: all that the client sends from
	// now on, and what the worker holds of it already, goes to exchange_client_data().
	void (*tunnelled)(void *user);

	// The exchange is over and gone. May begin the next one. Never called from within
	// exchange_begin(), exchange_client_closed() or another call for the same exchange.
	void (*ended)(void *user, const struct exchange_end *end);
};

// Pass a request on.
//   status  set when NULL is returned: 431, 502 or 503, to be answered instead
// The body, if there is one, follows by exchange_client_data(), beginning with what the worker has
// received already.
// Returns the exchange, owned by the origin side; NULL and a count when it cannot be begun.
struct exchange *exchange_begin(
	struct origin *origin, const struct exchange_request *request, uint16_t *status);

// The client sent `in`. Returns how many bytes belong to the request's body or to the tunnel; they
// are done with. The rest is the worker's: the next request, or, if this one asks for an upgrade,
// perhaps the tunnel's. May end the exchange, in which case it returns what it took before.
size_t exchange_client_data(struct exchange *exchange, struct span in);

// STREAM_WRITABLE of the client. May end the exchange.
void exchange_client_writable(struct exchange *exchange);

// STREAM_EOF of the client: a request whose body has ended is still answered. May end the exchange.
void exchange_client_eof(struct exchange *exchange);

// STREAM_CLOSED of the client, or the worker gives the client up: the exchange is gone, no call is
// made.
void exchange_client_closed(struct exchange *exchange);

// The session ends at another time than thought: renewed, or ended by somebody.
void exchange_set_ends(struct exchange *exchange, uint64_t ends_us);
