// The io_uring engine: multishot accept and receive, into buffers that the kernel picks.
//
// A request is named by its socket (or listener) and its kind, in the low bits of the pointer; a
// socket is not released before the last completion of each of its requests, so a completion never
// meets a stranger.
//
// A multishot receive cannot be told to slow down, only be cancelled, and what it has put in the
// ring by then still comes. So a stream that is paused once receives one buffer a request from then
// on, which needs no cancelling: not asking again is the pause. Running out of buffers ends a
// receive as well; such streams wait in line and ask again as buffers return.

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "drivers/sockets/core.h"
#include "drivers/sockets/life.h"
#include "drivers/uring/uring.h"

#define KIND_MASK 63u // sockets are aligned to a cache line
enum kind {
	KIND_ACCEPT = 1, // with the listener's index above the kind
	KIND_RECEIVE,
	KIND_WRITABLE,
	KIND_WAKE,
};

// In socket->engine.
enum {
	RECEIVING = 1, // a receive is in flight
	CANCELLED = 2, // and has been told to stop
	ONE_BY_ONE = 4, // one buffer a receive
	STARVED = 8, // waits for buffers, in `starved`
	AWAITING = 16, // a poll for POLLOUT is in flight
};

// Requests between two waits: few streams ask for something in one turn. More cost a system call.
#define ENTRIES_MIN 64
#define ENTRIES_MAX 2048
#define STREAMS_PER_ENTRY 4

#define STARVED_TRIES_MIN 16 // asked again in a turn in which no buffer returned

struct engine {
	struct uring uring;
	struct socket_list starved;
	bool is_accepting[SOCKETS_LISTENERS_MAX]; // an accept is in flight
	bool is_stopped[SOCKETS_LISTENERS_MAX];
};

static struct engine *engine_of(const struct core *core)
{
	return core->engine;
}

static uint64_t name_of(const struct socket *socket, enum kind kind)
{
	return (uintptr_t)socket | kind;
}

static uint64_t accept_name(unsigned listener)
{
	return (uint64_t)listener * (KIND_MASK + 1) | KIND_ACCEPT;
}

static unsigned entries_of(const struct sockets_plan *plan)
{
	unsigned entries = (plan->streams_max + plan->connects_max) / STREAMS_PER_ENTRY;
	return entries < ENTRIES_MIN ? ENTRIES_MIN : entries > ENTRIES_MAX ? ENTRIES_MAX : entries;
}

uint64_t engine_uring_bytes(const struct sockets_plan *plan)
{
	return sizeof(struct engine) +
	       uring_bytes(entries_of(plan), plan->receive_count, plan->receive_bytes);
}

static int uring_engine_init(struct core *core, const struct sockets_plan *plan)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	int ret = uring_init(
		&engine->uring, entries_of(plan), plan->receive_count, plan->receive_bytes);
	if (ret < 0) {
		free(engine);
		return ret;
	}
	TAILQ_INIT(&engine->starved);
	core->engine = engine;
	uring_poll(&engine->uring, core->wake_fd, POLLIN, true, KIND_WAKE);
	return 0;
}

static void uring_engine_fini(struct core *core)
{
	uring_fini(&engine_of(core)->uring);
	free(core->engine);
}

// ---- Requests ----

static void receive(struct core *core, struct socket *socket)
{
	assert(life_is_receiving(socket));
	assert(!(socket->engine & (RECEIVING | STARVED)));
	socket->engine |= RECEIVING;
	bool multishot = !(socket->engine & ONE_BY_ONE);
	uring_receive(
		&engine_of(core)->uring, socket->fd, multishot, name_of(socket, KIND_RECEIVE));
}

static void cancel_receive(struct core *core, struct socket *socket)
{
	if (!(socket->engine & RECEIVING) || socket->engine & CANCELLED)
		return;
	socket->engine |= CANCELLED;
	uring_cancel(&engine_of(core)->uring, name_of(socket, KIND_RECEIVE));
}

static void unstarve(struct core *core, struct socket *socket)
{
	if (!(socket->engine & STARVED))
		return;
	socket->engine &= (uint8_t)~STARVED;
	TAILQ_REMOVE(&engine_of(core)->starved, socket, engine_list);
}

static int add(struct core *core, struct socket *socket)
{
	(void)core, (void)socket;
	return 0;
}

static void receive_start(struct core *core, struct socket *socket)
{
	// One that is being cancelled asks again when that is done.
	if (!(socket->engine & (RECEIVING | STARVED)))
		receive(core, socket);
}

static void receive_stop(struct core *core, struct socket *socket)
{
	unstarve(core, socket);
	if (!(socket->engine & ONE_BY_ONE))
		cancel_receive(core, socket);
	socket->engine |= ONE_BY_ONE;
}

static void await_writable(struct core *core, struct socket *socket)
{
	if (socket->engine & AWAITING)
		return;
	socket->engine |= AWAITING;
	uring_poll(&engine_of(core)->uring, socket->fd, POLLOUT, false,
		name_of(socket, KIND_WRITABLE));
}

static void release(struct core *core, struct socket *socket)
{
	unstarve(core, socket);
	cancel_receive(core, socket);
	if (socket->engine & AWAITING)
		uring_cancel(&engine_of(core)->uring, name_of(socket, KIND_WRITABLE));
	if (!(socket->engine & (RECEIVING | AWAITING)))
		life_released(core, socket);
}

static void accept_start(struct core *core, unsigned listener)
{
	struct engine *engine = engine_of(core);
	if (engine->is_accepting[listener] || engine->is_stopped[listener])
		return;
	engine->is_accepting[listener] = true;
	uring_accept(&engine->uring, core->listeners[listener].plan.fd, accept_name(listener));
}

static void accept_stop(struct core *core, unsigned listener)
{
	struct engine *engine = engine_of(core);
	if (engine->is_stopped[listener])
		return;
	engine->is_stopped[listener] = true;
	if (engine->is_accepting[listener])
		uring_cancel(&engine->uring, accept_name(listener));
	else
		core_close_listener(core, listener);
}

// ---- Completions ----

// The last completion of one of the socket's requests has been dealt with.
static void request_over(struct core *core, struct socket *socket)
{
	if (socket->state == SOCKET_RELEASING && !(socket->engine & (RECEIVING | AWAITING)))
		life_released(core, socket);
	else if (life_is_receiving(socket))
		receive_start(core, socket);
}

static void starve(struct core *core, struct socket *socket)
{
	core_count(core, SOCKETS_receive_no_buffer);
	if (!life_is_receiving(socket))
		return;
	socket->engine |= STARVED;
	TAILQ_INSERT_TAIL(&engine_of(core)->starved, socket, engine_list);
}

static void receive_completed(struct core *core, struct socket *socket, int res, uint32_t flags)
{
	assert(socket->engine & RECEIVING);
	const char *at = NULL;
	bool is_last = !(flags & IORING_CQE_F_MORE);
	if (flags & IORING_CQE_F_BUFFER)
		at = uring_buffer(&engine_of(core)->uring, flags);
	if (is_last)
		socket->engine &= (uint8_t) ~(RECEIVING | CANCELLED);
	if (res > 0)
		life_received(core, socket, (struct span){at, (size_t)res});
	else if (res == -ENOBUFS)
		starve(core, socket);
	else if (res != -ECANCELED && res != -EINTR && res != -EAGAIN)
		life_ended(core, socket, -res);
	if (is_last)
		request_over(core, socket);
}

static void writable_completed(struct core *core, struct socket *socket)
{
	assert(socket->engine & AWAITING);
	socket->engine &= (uint8_t)~AWAITING;
	life_writable(core, socket);
	request_over(core, socket);
}

static void accept_completed(struct core *core, unsigned listener, int res, bool is_last)
{
	struct engine *engine = engine_of(core);
	if (is_last)
		engine->is_accepting[listener] = false;
	if (res >= 0)
		life_accepted(core, listener, res);
	else if (res != -ECANCELED && res != -ECONNABORTED && res != -EINTR && res != -EAGAIN)
		life_accept_failed(core, listener, -res);
	if (!is_last)
		return;
	if (engine->is_stopped[listener])
		core_close_listener(core, listener);
	else if (core->listeners[listener].retry_us == 0)
		accept_start(core, listener);
}

static void completed(struct core *core, uint64_t name, int res, uint32_t flags)
{
	bool is_last = !(flags & IORING_CQE_F_MORE);
	struct socket *socket = (struct socket *)(uintptr_t)(name & ~(uint64_t)KIND_MASK);
	switch (name & KIND_MASK) {
	case URING_CANCEL_DATA:
		break;
	case KIND_ACCEPT:
		accept_completed(core, (unsigned)(name / (KIND_MASK + 1)), res, is_last);
		break;
	case KIND_RECEIVE:
		receive_completed(core, socket, res, flags);
		break;
	case KIND_WRITABLE:
		writable_completed(core, socket);
		break;
	case KIND_WAKE:
		core_woken(core);
		if (is_last)
			uring_poll(&engine_of(core)->uring, core->wake_fd, POLLIN, true, KIND_WAKE);
		break;
	default:
		assert(!"a completion that nobody asked for");
	}
}

static void wait_turn(struct core *core, uint64_t wait_us)
{
	struct engine *engine = engine_of(core);
	uint32_t tries = uring_recycle(&engine->uring);
	if (tries < STARVED_TRIES_MIN)
		tries = STARVED_TRIES_MIN;
	struct socket *socket;
	while (tries-- && (socket = TAILQ_FIRST(&engine->starved))) {
		unstarve(core, socket);
		if (life_is_receiving(socket))
			receive(core, socket);
	}
	if (io_uring_cq_has_overflow(&engine->uring.ring))
		core_count(core, SOCKETS_ring_overflow);
	uring_wait(&engine->uring, TAILQ_EMPTY(&engine->starved) ? wait_us : 0);
}

static void take(struct core *core)
{
	struct io_uring *ring = &engine_of(core)->uring.ring;
	struct io_uring_cqe *cqe;
	unsigned head, count = 0;
	io_uring_for_each_cqe(ring, head, cqe)
	{
		if (core_rooms(core) == 0)
			break;
		completed(core, cqe->user_data, cqe->res, cqe->flags);
		count++;
	}
	io_uring_cq_advance(ring, count);
}

const struct engine_ops engine_uring = {
	.init = uring_engine_init,
	.fini = uring_engine_fini,
	.wait = wait_turn,
	.take = take,
	.accept_start = accept_start,
	.accept_stop = accept_stop,
	.add = add,
	.receive_start = receive_start,
	.receive_stop = receive_stop,
	.await_writable = await_writable,
	.release = release,
};
