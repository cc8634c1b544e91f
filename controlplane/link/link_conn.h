// One connection to a Redis or a sentinel: hiredis with a time for what is waited for.
//
// hiredis 0.14 knows no timeouts, and has three traps that stay in here. It resolves names while it
// connects, so that addresses are all it is given. While subscribed it asserts the shape of what it
// is sent, so that it does not know of that. And a reply that nobody waits for is an assertion of
// its, so that there is always one more who does: such a reply closes the connection, or is a
// message.
//
// Events are never called from within a function of this header. Control thread only.
#pragma once

#include <event2/event.h>
#include <hiredis/async.h>

#include <stdint.h>

#include "controlplane/link/link.h"

#define LINK_CONN_HOST_BYTES 108u // an address, or the path of a socket

struct link_conn_address {
	char host[LINK_CONN_HOST_BYTES]; // "10.0.0.1", "::1", or a path
	uint16_t port; // 0: it is a path
};

struct link_conn_events {
	void (*connected)(void *context); // must not close
	// One reply, in the order of the commands; after link_conn_listen() also whatever is sent
	// unasked. Dies with the call.
	void (*replied)(void *context, const redisReply *reply);
	// The connection could not be made, is gone, or was silent too long: see error[].
	void (*closed)(void *context);
};

struct link_conn {
	struct event_base *base;
	struct event *timer;
	const struct link_conn_events *events;
	void *context;
	redisAsyncContext *redis; // NULL: closed
	uint32_t owed; // replies to commands that were sent
	bool is_listening; // what is sent unasked is heard
	const char *awaited; // for words: "connection", "reply to ROLE"
	uint64_t due_us; // when it must be there; 0: nothing is awaited
	size_t reply_bytes_max; // not yet read, looked at while something is awaited; the owner's
	char error[LINK_TEXT_BYTES];
};

// Returns 0 or -ENOMEM. `events` outlives it. link_conn_fini() closes without an event.
int link_conn_init(struct link_conn *conn, struct event_base *base,
	const struct link_conn_events *events, void *context);
void link_conn_fini(struct link_conn *conn);

// Connect, within `ms`. Must be closed.
// Returns 0, and `connected` or `closed` follows; or -errno, with the error.
int link_conn_open(struct link_conn *conn, const struct link_conn_address *address, uint32_t ms);
bool link_conn_is_open(const struct link_conn *conn);

// Close, without an event; also from within one.
void link_conn_close(struct link_conn *conn);

// Send a command, as words or as it goes over the wire. What cannot be taken is lost with the
// connection: `closed` follows.
void link_conn_send(struct link_conn *conn, int argc, const char *const *argv, const size_t *bytes);
void link_conn_send_raw(struct link_conn *conn, const char *command, size_t bytes);

// Send SUBSCRIBE. From then on there may be messages, before its reply too; it may be sent again,
// to see whether the peer is alive.
void link_conn_listen(struct link_conn *conn, const char *channel);

// Send AUTH; without a password nothing, and there is no reply.
void link_conn_auth(struct link_conn *conn, const char *user, const char *password);

// Close unless told otherwise within `ms`; 0: wait for nothing.
//   awaited  what for; outlives the wait
void link_conn_expect(struct link_conn *conn, const char *awaited, uint32_t ms);
