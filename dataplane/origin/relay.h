// The life of an exchange: what it knows, how it comes to a connection, how bytes pass under
// back-pressure, when it is due, and how it ends. The client's side (exchange.c) and the origin's
// (answer.c) both stand on this.
//
//   FREE ─▶ CONNECTING ─▶ ASKED ─▶ ANSWERING ─▶ FREE
//     └──────────────────▶ │ └───▶ TUNNEL ────▶
//            kept          └─▶ CONNECTING: asked again
//
// Functions that may end the exchange return whether it goes on. After false it must not be
// touched: its slot may already be somebody else's.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/origin/body.h"
#include "dataplane/origin/buffer.h"
#include "dataplane/origin/connection.h"
#include "dataplane/origin/deadline.h"
#include "dataplane/origin/exchange.h"
#include "dataplane/origin/origin.h"
#include "dataplane/origin/server.h"

#define RELAY_ATTEMPTS_MAX SERVER_EXCEPT_MAX // connections tried for one request
#define RELAY_EARLY_BUFFERS_MAX 16u // for a head, and the body that comes before the connection
#define RELAY_INTERIMS_MAX 8u // 1xx answers to one request

enum relay_state {
	RELAY_FREE,
	RELAY_CONNECTING, // the connection is not open yet; what is to be sent waits in `asks`
	RELAY_ASKED, // the head is sent, the body follows as it comes; no final answer yet
	RELAY_ANSWERING, // the final answer's head is sent to the client
	RELAY_TUNNEL,
};

struct exchange {
	struct deadline wake; // may be early: relay_due_us() says
	struct origin *origin;
	uint64_t serial; // no other exchange has it: tells whether the slot is still the same's
	uint8_t state; // enum relay_state
	uint8_t method; // enum http_method
	uint8_t client_minor; // of the client's HTTP version
	uint8_t attempts; // connections tried
	uint8_t interims; // 1xx answers so far
	bool is_fresh_only; // a kept connection was dead: no other of them
	bool may_repeat; // idempotent, and no body
	bool may_upgrade; // we passed an upgrade on
	bool expects_continue; // the client waits for 100 and has not got it
	bool body_is_refused; // answered without 100: what still comes of the body is dropped
	bool client_keeps; // the client's connection may go on after the answer
	bool origin_keeps; // the origin's likewise
	bool client_is_paused, origin_is_paused; // by us
	bool client_has_ended, origin_has_ended; // STREAM_EOF came

	void *user;
	struct stream_driver *client_driver;
	struct stream *client;
	struct connection *connection; // never NULL while in use
	const struct server *unreachable[RELAY_ATTEMPTS_MAX]; // in that attempt; NULL: reached
	uint32_t origin_index; // in the table it began with
	uint64_t origin_id;
	uint64_t session;
	struct origin_table_limits limits;

	struct body ask, answer;
	uint64_t ask_bytes; // of the request's body so far
	struct buffer *asks; // the request's head, and what else is not sent yet; kept after
			     // sending only while it may be sent again
	struct buffer *answer_head; // a part of one
	uint32_t answer_scanned; // of it
	uint64_t asked_turn; // when the head was sent

	uint64_t ends_us; // the session
	uint64_t stage_until_us; // what the state waits for
	uint64_t body_since_us; // the request's body, pauses taken out; 0: not begun
	uint64_t paused_since_us; // the client, by us

	struct exchange *next_free;
};

struct origin {
	struct origin_plan plan;
	struct origin_table_limits limits; // of origins that have none of their own
	const struct exchange_calls *calls;
	uint64_t now_us;
	uint64_t turn;
	uint64_t body_kib_us; // what 1024 bytes of a request's body may take
	struct server_set servers;
	struct connection_pool connections;
	struct buffer_pool buffers;
	struct deadline_heap deadlines;
	struct exchange *exchanges;
	struct exchange *free;
	uint32_t uncut_count; // exchanges never used yet
	uint32_t exchange_count; // in flight
	uint64_t serial; // of the last one begun
	struct origin_counters counters;
	struct http_head answer; // being taken in
	char *scratch; // an answer's head on its way out
	size_t scratch_bytes;
};

// A slot, all zero but for `origin` and `serial`; NULL: all in use.
struct exchange *relay_take(struct origin *origin);

// Find a server and a connection, and send what is in `asks` or wait for the connection to open.
// Returns 0, or the status to fail with; makes no call.
uint16_t relay_ask(struct exchange *x);

// Send what is in `asks` on the connection. Returns whether it took all of it.
bool relay_send_asks(struct exchange *x);

// The connection is open: send what has waited. Returns whether the exchange goes on.
bool relay_opened(struct exchange *x);

// The server did badly: count it, and perhaps set it aside. `is_hard`: it could not be reached.
void relay_blame(struct exchange *x, bool is_hard);

// The connection is of no use and no byte of an answer came. Asks again if that is safe, else fails
// with `status`. `is_hard`: it never opened. Returns whether the exchange goes on.
bool relay_lost(struct exchange *x, bool is_hard, uint16_t status);

// Send to the origin: now, or when the connection is open. Pauses the client when too much is
// queued. Returns whether the exchange goes on.
bool relay_to_origin(struct exchange *x, const struct span *parts, unsigned count);

// Send to the client, likewise.
bool relay_to_client(struct exchange *x, const struct span *parts, unsigned count);

// One side's queue is empty again: let the other side go on.
void relay_origin_is_writable(struct exchange *x);
void relay_client_is_writable(struct exchange *x);

// The request's body has ended: the client's stream is the worker's again.
void relay_body_ended(struct exchange *x);

// The only way to change state; asserts that the move is allowed.
void relay_set_state(struct exchange *x, enum relay_state state);

// Something moved: the state's time begins anew.
void relay_touch(struct exchange *x);

// Set the deadline anew, after a time it depends on may have come nearer.
void relay_schedule(struct exchange *x);

// Its deadline is reached: end it if that is so, else wait on.
void relay_expire(struct exchange *x);

// Give up. Answers with `status`, or breaks off if an answer has begun. Returns false.
bool relay_fail(struct exchange *x, uint16_t status);

// The answer is whole. `surplus`: bytes came after it. Returns false.
bool relay_finish(struct exchange *x, bool surplus);

// A tunnel is over. Returns false.
bool relay_close_tunnel(struct exchange *x);

// Free the exchange and its connection without a call.
void relay_drop(struct exchange *x);
