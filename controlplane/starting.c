// One answer for all, so that no request is read further than to know that there is one. Who has
// been answered is hung up on when they have, or by the clock; a place each, so that they are
// bounded.

#include "controlplane/starting.h"

#include "controlplane/admin/admin.h"
#include "controlplane/log.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PAUSE_US 100000

#define BODY "{\"version\":\"" SLUICE_VERSION "\",\"state\":\"starting\",\"waiting_for\":\"store\"}"
#define ANSWER \
	"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n" \
	"Cache-Control: no-store\r\nRetry-After: 2\r\nConnection: close\r\nContent-Length: " \
	"%zu\r\n" \
	"\r\n" BODY

struct listening {
	struct starting *starting;
	struct event *event;
	bool is_plain; // without TLS
};

struct starting {
	struct control *c;
	starting_why *why;
	struct admin *admin;
	struct event *begin;
	uint32_t listening_count;
	struct listening listening[LISTENERS_MAX * WORKER_COUNT_MAX];
	struct bufferevent *clients[STARTING_CLIENTS_MAX]; // NULL: the place is free
};

static void hang_up(struct bufferevent *stream, void *context)
{
	struct bufferevent **place = context;
	bufferevent_free(stream);
	*place = NULL;
}

static void on_event(struct bufferevent *stream, short what, void *context)
{
	(void)what;
	hang_up(stream, context);
}

// What still comes is passed over, until the peer ends or the clock does: a connection that is
// closed on bytes that nobody read is reset, and the answer may be lost with it.
static void pass_over(struct bufferevent *stream, void *context)
{
	(void)context;
	struct evbuffer *in = bufferevent_get_input(stream);
	evbuffer_drain(in, evbuffer_get_length(in));
}

static void on_taken(struct bufferevent *stream, void *context)
{
	(void)context;
	shutdown(bufferevent_getfd(stream), SHUT_WR);
}

static void on_request(struct bufferevent *stream, void *context)
{
	pass_over(stream, context);
	bufferevent_setcb(stream, pass_over, on_taken, on_event, context);
	evbuffer_add_printf(bufferevent_get_output(stream), ANSWER, strlen(BODY));
}

// The first free place, or NULL.
static struct bufferevent **find_place(struct starting *s)
{
	for (uint32_t i = 0; i < STARTING_CLIENTS_MAX; i++)
		if (!s->clients[i])
			return &s->clients[i];
	return NULL;
}

// No descriptor is left for who waits: look again a little later.
static void rest(struct starting *s)
{
	const struct timeval pause = {.tv_usec = PAUSE_US};
	for (uint32_t i = 0; i < s->listening_count; i++)
		event_del(s->listening[i].event);
	evtimer_add(s->begin, &pause);
}

static void on_accept(evutil_socket_t listening, short what, void *context)
{
	(void)what;
	const struct listening *l = context;
	const struct timeval wait = {.tv_sec = STARTING_CLIENT_S};
	const int fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct bufferevent **place = l->is_plain ? find_place(l->starting) : NULL;
	if (fd < 0 && (errno == EMFILE || errno == ENFILE))
		rest(l->starting);
	if (fd < 0)
		return; // else: gone again
	if (place)
		*place = bufferevent_socket_new(l->starting->c->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!place || !*place) {
		close(fd);
		return;
	}
	bufferevent_setcb(*place, on_request, NULL, on_event, place);
	bufferevent_set_timeouts(*place, &wait, &wait);
	bufferevent_enable(*place, EV_READ | EV_WRITE);
}

static void on_begin(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct starting *s = context;
	for (uint32_t i = 0; i < s->listening_count; i++)
		event_add(s->listening[i].event, NULL);
}

static int command(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)count, (void)arguments, (void)data;
	struct starting *s = context;
	fprintf(text, "not yet: the start waits for the store: %s", s->why(s->c));
	return 1;
}

static int open_admin(struct starting *s)
{
	static const struct admin_command any = {.function = command};
	const char *path = state_path(s->c->state, STATE_ADMIN);
	const int ret = admin_create(s->c->base, path, &any, 1, s, &s->admin);
	if (ret < 0)
		log_error("%s: %s", path, strerror(-ret));
	return ret;
}

static int listen_to(struct starting *s, const struct listeners *listeners)
{
	for (unsigned i = 0; i < listeners->count; i++)
		for (unsigned j = 0; j < s->c->worker_count; j++) {
			struct listening *l = &s->listening[s->listening_count];
			l->starting = s;
			l->is_plain = s->c->started->listen.at[i].tls.count == 0;
			l->event = event_new(s->c->base, listeners->fds[i][j], EV_READ | EV_PERSIST,
				on_accept, l);
			if (!l->event)
				return -ENOMEM;
			s->listening_count++;
		}
	return 0;
}

int starting_create(struct control *c, const struct listeners *listeners, starting_why *why,
	struct starting **starting)
{
	const struct timeval quiet = {.tv_sec = STARTING_QUIET_MS / 1000};
	struct starting *s = calloc(1, sizeof(*s));
	*starting = s;
	if (!s)
		return -ENOMEM;
	s->c = c;
	s->why = why;
	s->begin = evtimer_new(c->base, on_begin, s);
	int ret = s->begin && evtimer_add(s->begin, &quiet) == 0 ? 0 : -ENOMEM;
	if (ret == 0)
		ret = listen_to(s, listeners);
	return ret < 0 ? ret : open_admin(s);
}

void starting_destroy(struct starting *s)
{
	if (!s)
		return;
	admin_destroy(s->admin);
	if (s->begin)
		event_free(s->begin);
	for (uint32_t i = 0; i < s->listening_count; i++)
		event_free(s->listening[i].event);
	for (uint32_t i = 0; i < STARTING_CLIENTS_MAX; i++)
		if (s->clients[i])
			bufferevent_free(s->clients[i]);
	free(s);
}
