// A stream of this driver, and the table that all of them live in.
#pragma once

#include <assert.h>
#include <sys/queue.h>

#include "drivers/sockets/queue.h"
#include "drivers/stream.h"

enum socket_state {
	SOCKET_FREE,
	SOCKET_CONNECTING,
	SOCKET_OPEN,
	SOCKET_LINGERING, // closed by the worker; its queue is still to be sent
	SOCKET_CLOSED, // STREAM_CLOSED was delivered in this turn
	SOCKET_RELEASING, // over; the engine still has something in flight for it
	SOCKET_STATES,
};

// Two cache lines: what arriving bytes and answers touch, then lists and bookkeeping.
struct socket {
	struct stream stream; // first: a struct stream of ours is a struct socket
	int fd;
	uint8_t state; // enum socket_state
	uint8_t engine; // flags of the engine
	uint8_t is_paused : 1; // by the worker
	uint8_t is_shut : 1; // stream_shut() was called
	uint8_t is_fin_sent : 1; // and has taken effect
	uint8_t is_eof : 1; // the peer's FIN came
	uint8_t is_high : 1; // the queue passed queue_high and has not been empty since
	uint8_t is_due : 1; // in the list of those that the next turn will end
	// Where its events stand in the burst in hand, valid if `burst` is the driver's.
	uint32_t burst;
	uint16_t event_first, event_last;

	int error; // why it is due
	uint64_t deadline_us; // LINGERING
	TAILQ_ENTRY(socket) list; // free, lingering, due or closed: one at a time
	TAILQ_ENTRY(socket) engine_list;
	struct queue queue; // to be sent
} __attribute__((aligned(64)));
static_assert(sizeof(struct socket) == 128, "two lines, and neighbours share none");

TAILQ_HEAD(socket_list, socket);

struct socket_table {
	struct socket *sockets;
	uint32_t count;
	struct socket_list free;
};

// Allocate `count` sockets. Returns 0 or -ENOMEM.
int socket_table_init(struct socket_table *table, uint32_t count);
void socket_table_fini(struct socket_table *table);

// A socket in SOCKET_FREE with `fd`, all else zero. NULL: all are taken.
struct socket *socket_take(struct socket_table *table, int fd);

// Give it back. Its descriptor is closed and its queue empty.
void socket_give(struct socket_table *table, struct socket *socket);

// The only way to change a state; asserts that the move is allowed.
void socket_set_state(struct socket *socket, enum socket_state to);

// Have the coming close(2) answer by RST instead of FIN.
void socket_reset_on_close(int fd);
