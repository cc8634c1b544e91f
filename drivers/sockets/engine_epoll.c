// The epoll engine, for where io_uring is refused.
//
// Sockets are watched edge-triggered for everything from the first moment, so there is one
// epoll_ctl(2) a connection. The price is to remember what an edge said: READABLE holds until a
// receive comes back short, and streams that are readable and wanted stand in `ready`, from which
// each turn takes one buffer a stream, in turn. Listeners are level-triggered: who is not accepted
// in this turn is in the next.

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "drivers/sockets/core.h"
#include "drivers/sockets/life.h"

#define EVENTS_MAX 256 // taken from the kernel in one turn
#define ACCEPTS_MAX 32 // of one listener in one turn

// In socket->engine.
enum {
	READABLE = 1, // a receive may find something
	HUNG_UP = 2, // FIN or an error stands behind what is there: a short receive is not the end
	READY = 4, // in `ready`
};

// epoll's data: a socket's address, or one of these in the low bits of something smaller.
#define KIND_MASK 63u
enum kind {
	KIND_SOCKET,
	KIND_ACCEPT, // with the listener's index above the kind
	KIND_WAKE,
};

struct engine {
	int fd;
	int event_count; // of this turn
	struct epoll_event events[EVENTS_MAX];
	struct socket_list ready;
	char *buffers;
	uint32_t buffer_bytes, buffer_count;
	uint32_t buffers_used; // in this turn
	bool is_accepting[SOCKETS_LISTENERS_MAX];
};

static struct engine *engine_of(const struct core *core)
{
	return core->engine;
}

static int watch(struct engine *engine, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = {.events = events, .data.u64 = data};
	return epoll_ctl(engine->fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int epoll_engine_init(struct core *core, const struct sockets_plan *plan)
{
	struct engine *engine = calloc(1, sizeof(*engine));
	if (!engine)
		return -ENOMEM;
	TAILQ_INIT(&engine->ready);
	engine->buffer_count = plan->receive_count;
	engine->buffer_bytes = plan->receive_bytes;
	int ret = -ENOMEM;
	engine->buffers = malloc((size_t)plan->receive_count * plan->receive_bytes);
	if (!engine->buffers)
		goto fail;
	engine->fd = epoll_create1(EPOLL_CLOEXEC);
	if (engine->fd < 0) {
		ret = -errno;
		goto fail_buffers;
	}
	ret = watch(engine, core->wake_fd, EPOLLIN, KIND_WAKE);
	if (ret < 0)
		goto fail_fd;
	core->engine = engine;
	return 0;
fail_fd:
	close(engine->fd);
fail_buffers:
	free(engine->buffers);
fail:
	free(engine);
	return ret;
}

static void epoll_engine_fini(struct core *core)
{
	struct engine *engine = engine_of(core);
	close(engine->fd);
	free(engine->buffers);
	free(engine);
}

static void receive_stop(struct core *core, struct socket *socket)
{
	if (!(socket->engine & READY))
		return;
	socket->engine &= (uint8_t)~READY;
	TAILQ_REMOVE(&engine_of(core)->ready, socket, engine_list);
}

static void receive_start(struct core *core, struct socket *socket)
{
	if (!(socket->engine & READABLE) || socket->engine & READY)
		return;
	socket->engine |= READY;
	TAILQ_INSERT_TAIL(&engine_of(core)->ready, socket, engine_list);
}

static int add(struct core *core, struct socket *socket)
{
	uint32_t events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
	return watch(engine_of(core), socket->fd, events, (uintptr_t)socket);
}

static void await_writable(struct core *core, struct socket *socket)
{
	(void)core, (void)socket; // the edge comes by itself
}

static void release(struct core *core, struct socket *socket)
{
	receive_stop(core, socket);
	life_released(core, socket); // closing it takes it out of the set
}

static void accept_start(struct core *core, unsigned listener)
{
	struct engine *engine = engine_of(core);
	int fd = core->listeners[listener].plan.fd;
	if (fd < 0 || engine->is_accepting[listener])
		return;
	uint64_t data = (uint64_t)listener * (KIND_MASK + 1) | KIND_ACCEPT;
	int ret = watch(engine, fd, EPOLLIN, data);
	if (ret < 0)
		life_accept_failed(core, listener, -ret);
	engine->is_accepting[listener] = ret == 0;
}

static void unwatch_listener(struct core *core, unsigned listener)
{
	struct engine *engine = engine_of(core);
	if (engine->is_accepting[listener])
		epoll_ctl(engine->fd, EPOLL_CTL_DEL, core->listeners[listener].plan.fd, NULL);
	engine->is_accepting[listener] = false;
}

static void accept_stop(struct core *core, unsigned listener)
{
	unwatch_listener(core, listener);
	core_close_listener(core, listener);
}

// Whether there is no descriptor of a peer from which anything could come.
static bool is_alone(const struct core *core)
{
	return core->listener_count == 0 && core->stats.connected_open == 0;
}

static void wait_turn(struct core *core, uint64_t wait_us)
{
	struct engine *engine = engine_of(core);
	engine->buffers_used = 0;
	engine->event_count = 0;
	if (wait_us == 0 && is_alone(core))
		return;
	uint64_t wait_ms = (wait_us + 999) / 1000;
	if (!TAILQ_EMPTY(&engine->ready))
		wait_ms = 0;
	else if (wait_ms > INT_MAX)
		wait_ms = INT_MAX;
	int max = core_rooms(core);
	if (max > EVENTS_MAX)
		max = EVENTS_MAX;
	engine->event_count = max ? epoll_wait(engine->fd, engine->events, max, (int)wait_ms) : 0;
	assert(engine->event_count >= 0 || errno == EINTR);
}

static void edge(struct core *core, struct socket *socket, uint32_t events)
{
	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		socket->engine |= HUNG_UP | READABLE;
	if (events & EPOLLIN)
		socket->engine |= READABLE;
	if (events & (EPOLLOUT | EPOLLHUP | EPOLLERR))
		life_writable(core, socket);
	if (life_is_receiving(socket))
		receive_start(core, socket);
}

static void accept_some(struct core *core, unsigned listener)
{
	int listening = core->listeners[listener].plan.fd;
	for (int i = 0; i < ACCEPTS_MAX && core_rooms(core); i++) {
		int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			life_accepted(core, listener, fd);
		} else if (errno == EAGAIN) {
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			life_accept_failed(core, listener, errno);
			unwatch_listener(core, listener);
			return;
		}
	}
}

static void receive_one(struct core *core, struct socket *socket)
{
	struct engine *engine = engine_of(core);
	char *buffer = engine->buffers + (size_t)engine->buffers_used * engine->buffer_bytes;
	ssize_t bytes = recv(socket->fd, buffer, engine->buffer_bytes, MSG_DONTWAIT);
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (errno == EAGAIN)
			socket->engine &= (uint8_t)~READABLE;
		return;
	}
	if (bytes <= 0) {
		socket->engine &= (uint8_t)~READABLE;
		life_ended(core, socket, bytes < 0 ? errno : 0);
		return;
	}
	engine->buffers_used++;
	if ((uint32_t)bytes < engine->buffer_bytes && !(socket->engine & HUNG_UP))
		socket->engine &= (uint8_t)~READABLE;
	life_received(core, socket, (struct span){buffer, (size_t)bytes});
}

// Each stream that is ready now gets its turn once; those that have more go to the end.
static void receive_some(struct core *core)
{
	struct engine *engine = engine_of(core);
	struct socket *last = TAILQ_LAST(&engine->ready, socket_list), *socket = NULL;
	while (socket != last && core_rooms(core)) {
		if (engine->buffers_used == engine->buffer_count) {
			core_count(core, SOCKETS_receive_no_buffer);
			return;
		}
		socket = TAILQ_FIRST(&engine->ready);
		receive_stop(core, socket);
		receive_one(core, socket);
		if (life_is_receiving(socket))
			receive_start(core, socket);
	}
}

static void take(struct core *core)
{
	struct engine *engine = engine_of(core);
	for (int i = 0; i < engine->event_count; i++) {
		uint64_t data = engine->events[i].data.u64;
		if ((data & KIND_MASK) == KIND_SOCKET)
			edge(core, (struct socket *)(uintptr_t)data, engine->events[i].events);
	}
	for (int i = 0; i < engine->event_count; i++) {
		uint64_t data = engine->events[i].data.u64;
		if ((data & KIND_MASK) == KIND_ACCEPT)
			accept_some(core, (unsigned)(data / (KIND_MASK + 1)));
		else if ((data & KIND_MASK) == KIND_WAKE)
			core_woken(core);
	}
	receive_some(core);
}

const struct engine_ops engine_epoll = {
	.init = epoll_engine_init,
	.fini = epoll_engine_fini,
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
