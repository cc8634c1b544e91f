// A socket is never freed under somebody's feet: after its STREAM_CLOSED it stays as it is until
// the next turn, and it returns to the table only when the engine has nothing in flight for it.
//
// What is due ends before the engine reports anything: if the burst has no room for all of that, it
// has none for reports either. So no report meets a socket that is due.
//
// Deadlines all have the same length, so those with one are a list in their order, whose head alone
// is looked at.

#include "drivers/sockets/life.h"

#include <errno.h>
#include <unistd.h>

#include "drivers/ip.h"
#include "drivers/sockets/address.h"
#include "drivers/sockets/send.h"

#define EXPIRED_MAX 256 // deadlines dealt with in one turn
#define ACCEPT_RETRY_US 50000 // pause of a listener after a failed accept

// ---- Events ----

static struct stream_event *emit(
	struct core *core, struct socket *socket, enum stream_event_kind kind)
{
	assert(core->event_count < core->event_max);
	uint16_t at = (uint16_t)core->event_count++;
	if (socket->burst != core->burst)
		socket->event_first = at;
	socket->burst = core->burst;
	socket->event_last = at;
	core->events[at] = (struct stream_event){.kind = kind, .stream = &socket->stream};
	return &core->events[at];
}

static void drop_queue(struct core *core, struct socket *socket)
{
	queue_pop(&core->pool, &socket->queue, socket->queue.bytes);
}

// The stream's last event.
static void emit_closed(struct core *core, struct socket *socket, int error)
{
	if (error)
		core_count(core, socket->state == SOCKET_CONNECTING ? SOCKETS_connect_failed
								    : SOCKETS_stream_error);
	emit(core, socket, STREAM_CLOSED)->error = error;
	drop_queue(core, socket);
	socket_set_state(socket, SOCKET_CLOSED);
	TAILQ_INSERT_TAIL(&core->closed, socket, list);
}

void life_suppress(struct core *core, struct socket *socket)
{
	if (socket->burst != core->burst)
		return;
	for (uint16_t i = socket->event_first; i <= socket->event_last; i++)
		if (core->events[i].stream == &socket->stream)
			core->events[i].kind = STREAM_NONE;
}

// ---- Beginnings ----

static _Atomic uint32_t *open_of(struct core *core, unsigned listener)
{
	return listener == STREAM_CONNECTED ? &core->stats.connected_open
					    : &core->stats.accepted_open;
}

struct socket *life_add(struct core *core, int fd, unsigned listener, enum socket_state to)
{
	struct socket *socket = socket_take(&core->table, fd);
	assert(socket);
	socket->stream.listener = (uint16_t)listener;
	if (core->ops->add(core, socket) < 0) {
		socket_give(&core->table, socket);
		socket_reset_on_close(fd);
		close(fd);
		return NULL;
	}
	socket_set_state(socket, to);
	atomic_fetch_add_explicit(open_of(core, listener), 1, memory_order_relaxed);
	return socket;
}

static void refuse(struct core *core, int fd, enum sockets_counter why)
{
	core_count(core, why);
	socket_reset_on_close(fd);
	close(fd);
}

// Both ends of an accepted connection. False: the peer has gone already.
static bool find_addresses(int fd, const struct sockets_listener *listener, struct stream *stream)
{
	struct sockaddr_storage name;
	if (getpeername(fd, (struct sockaddr *)&name, &(socklen_t){sizeof(name)}) < 0)
		return false;
	address_from_kernel(&name, &stream->peer);
	if (!ip_is_any(listener->address.ip)) {
		stream->local = listener->address;
		return true;
	}
	return sockets_address(fd, &stream->local) == 0;
}

void life_accepted(struct core *core, unsigned listener, int fd)
{
	const struct sockets_listener *plan = &core->listeners[listener].plan;
	struct stream stream;
	if (core->stats.accepted_open >= core->streams_max + SOCKETS_RESERVE) {
		refuse(core, fd, SOCKETS_accept_table_full);
		return;
	}
	if (!find_addresses(fd, plan, &stream)) {
		refuse(core, fd, SOCKETS_accept_failed);
		return;
	}
	struct socket *socket = life_add(core, fd, listener, SOCKET_OPEN);
	if (!socket) {
		core_count(core, SOCKETS_accept_failed);
		return;
	}
	core_count(core, SOCKETS_accepted);
	socket->stream.peer = stream.peer;
	socket->stream.local = stream.local;
	emit(core, socket, STREAM_OPENED);
	core->ops->receive_start(core, socket);
}

void life_accept_failed(struct core *core, unsigned listener, int error)
{
	bool is_table = error == EMFILE || error == ENFILE;
	core_count(core, is_table ? SOCKETS_accept_no_descriptor : SOCKETS_accept_failed);
	core->listeners[listener].retry_us = core->driver.now_us + ACCEPT_RETRY_US;
}

// The outcome of a connect(2).
static void finish_connect(struct core *core, struct socket *socket)
{
	int error = 0;
	getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &error, &(socklen_t){sizeof(error)});
	if (!error)
		error = -sockets_address(socket->fd, &socket->stream.local);
	if (error) {
		emit_closed(core, socket, error);
		return;
	}
	core_count(core, SOCKETS_connected);
	socket_set_state(socket, SOCKET_OPEN);
	emit(core, socket, STREAM_OPENED);
	if (life_is_receiving(socket))
		core->ops->receive_start(core, socket);
}

// ---- Bytes in ----

bool life_is_receiving(const struct socket *socket)
{
	return socket->state == SOCKET_OPEN && !socket->is_paused && !socket->is_eof;
}

void life_received(struct core *core, struct socket *socket, struct span data)
{
	assert(data.len > 0);
	core_count_by(core, SOCKETS_bytes_in, data.len);
	if (socket->state == SOCKET_OPEN)
		emit(core, socket, STREAM_DATA)->data = data;
}

void life_ended(struct core *core, struct socket *socket, int error)
{
	if (socket->state != SOCKET_OPEN || socket->is_eof)
		return;
	if (error) {
		emit_closed(core, socket, error);
		return;
	}
	socket->is_eof = true;
	emit(core, socket, STREAM_EOF);
	if (socket->is_fin_sent)
		emit_closed(core, socket, 0);
}

// ---- Bytes out ----

void life_send_fin(struct core *core, struct socket *socket)
{
	assert(queue_is_empty(&socket->queue));
	shutdown(socket->fd, SHUT_WR);
	socket->is_fin_sent = true;
	if (socket->is_eof)
		life_end_later(core, socket, 0);
}

static void queue_emptied(struct core *core, struct socket *socket)
{
	if (socket->state == SOCKET_LINGERING) {
		TAILQ_REMOVE(&core->lingering, socket, list);
		life_release(core, socket, false);
	} else if (socket->is_shut) {
		life_send_fin(core, socket);
	} else if (socket->is_high) {
		socket->is_high = false;
		emit(core, socket, STREAM_WRITABLE);
	}
}

void life_writable(struct core *core, struct socket *socket)
{
	if (socket->state == SOCKET_CONNECTING)
		finish_connect(core, socket);
	if (queue_is_empty(&socket->queue) ||
		(socket->state != SOCKET_OPEN && socket->state != SOCKET_LINGERING))
		return;
	int ret = send_queue(core, socket);
	if (ret == 0) {
		queue_emptied(core, socket);
	} else if (ret == -EAGAIN) {
		core->ops->await_writable(core, socket);
	} else if (socket->state == SOCKET_OPEN) {
		emit_closed(core, socket, -ret);
	} else {
		TAILQ_REMOVE(&core->lingering, socket, list);
		life_release(core, socket, true);
	}
}

// ---- Ends ----

void life_end_later(struct core *core, struct socket *socket, int error)
{
	assert(!socket->is_due);
	drop_queue(core, socket);
	socket->is_due = true;
	socket->error = error;
	TAILQ_INSERT_TAIL(&core->due, socket, list);
}

void life_linger(struct core *core, struct socket *socket)
{
	socket_set_state(socket, SOCKET_LINGERING);
	socket->deadline_us = core->driver.now_us + core->linger_us;
	TAILQ_INSERT_TAIL(&core->lingering, socket, list);
	core->ops->receive_stop(core, socket);
}

void life_release(struct core *core, struct socket *socket, bool reset)
{
	if (socket->is_due) {
		socket->is_due = false;
		TAILQ_REMOVE(&core->due, socket, list);
	}
	drop_queue(core, socket);
	if (reset)
		socket_reset_on_close(socket->fd);
	socket_set_state(socket, SOCKET_RELEASING);
	core->ops->release(core, socket);
}

void life_released(struct core *core, struct socket *socket)
{
	assert(socket->state == SOCKET_RELEASING);
	close(socket->fd);
	atomic_fetch_sub_explicit(open_of(core, socket->stream.listener), 1, memory_order_relaxed);
	socket_give(&core->table, socket);
}

void life_begin_turn(struct core *core)
{
	struct socket *socket;
	while ((socket = TAILQ_FIRST(&core->closed))) {
		TAILQ_REMOVE(&core->closed, socket, list);
		life_release(core, socket, false);
	}
	while ((socket = TAILQ_FIRST(&core->due)) && core_rooms(core)) {
		TAILQ_REMOVE(&core->due, socket, list);
		socket->is_due = false;
		emit_closed(core, socket, socket->error);
	}
}

// ---- Deadlines ----

uint64_t life_deadline_us(const struct core *core)
{
	const struct socket *oldest = TAILQ_FIRST(&core->lingering);
	uint64_t first_us = oldest ? oldest->deadline_us : UINT64_MAX;
	for (unsigned i = 0; i < core->listener_count; i++)
		if (core->listeners[i].retry_us && core->listeners[i].retry_us < first_us)
			first_us = core->listeners[i].retry_us;
	return first_us;
}

static struct socket *first_expired(struct core *core)
{
	struct socket *oldest = TAILQ_FIRST(&core->lingering);
	return oldest && oldest->deadline_us <= core->driver.now_us ? oldest : NULL;
}

void life_expire(struct core *core)
{
	struct socket *socket;
	for (int i = 0; i < EXPIRED_MAX && (socket = first_expired(core)); i++) {
		core_count(core, SOCKETS_linger_late);
		TAILQ_REMOVE(&core->lingering, socket, list);
		life_release(core, socket, true);
	}
	for (unsigned i = 0; i < core->listener_count; i++) {
		struct core_listener *listener = &core->listeners[i];
		if (listener->retry_us && listener->retry_us <= core->driver.now_us) {
			listener->retry_us = 0;
			core->ops->accept_start(core, i);
		}
	}
}
