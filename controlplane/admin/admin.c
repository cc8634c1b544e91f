// The server side of admin.socket.
//
//   listener ─▶ client: line ─▶ request.c ─▶ answer ─▶ when it is taken: the next line
//
// While an answer is on its way its client is not read, so that what one client can make us keep is
// one line and one answer. When all places are taken, or accepting fails, the listener is switched
// off until a client leaves or a second has passed; newcomers wait in its backlog. A command that
// is not known to be done is asked about by a timer; its client waits like one whose answer is
// under way.

#include "controlplane/admin/admin.h"

#include "controlplane/admin/request.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

struct client {
	struct admin *admin;
	struct bufferevent *stream; // NULL: the place is free
	struct request_later later; // the command whose end is awaited
	bool is_closing; // hang up when the answer is taken
};

struct admin {
	struct event_base *base;
	struct evconnlistener *listener;
	struct event *retry; // accepting failed, or memory was short: try again
	struct event *settle; // somebody waits for the end of a command
	char *path;
	const struct admin_command *commands;
	unsigned command_count;
	void *context;
	struct client clients[ADMIN_CLIENTS_MAX];
};

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
	int address_len, void *context);
static void on_accept_error(struct evconnlistener *listener, void *context);
static void on_retry(evutil_socket_t fd, short what, void *context);
static void on_settle(evutil_socket_t fd, short what, void *context);
static void on_read(struct bufferevent *stream, void *context);
static void on_taken(struct bufferevent *stream, void *context);
static void on_event(struct bufferevent *stream, short what, void *context);

static int listen_at(struct admin *admin, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	unsigned flags = LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC;
	size_t len = strlen(path);
	if (len >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, len);
	if (unlink(path) < 0 && errno != ENOENT)
		return -errno;
	// The mode counts from the first moment: no chmod() after bind().
	mode_t before = umask(0177);
	admin->listener = evconnlistener_new_bind(admin->base, on_accept, admin, flags, BACKLOG,
		(struct sockaddr *)&address, sizeof(address));
	int ret = admin->listener ? 0 : -errno;
	umask(before);
	if (ret == 0)
		evconnlistener_set_error_cb(admin->listener, on_accept_error);
	return ret;
}

int admin_create(struct event_base *base, const char *path, const struct admin_command *commands,
	unsigned count, void *context, struct admin **admin)
{
	int ret = -ENOMEM;
	struct admin *a = calloc(1, sizeof(*a));
	if (!a)
		return -ENOMEM;
	*a = (struct admin){
		.base = base, .commands = commands, .command_count = count, .context = context};
	for (int i = 0; i < ADMIN_CLIENTS_MAX; i++)
		a->clients[i].admin = a;
	if (!(a->path = strdup(path)) || !(a->retry = evtimer_new(base, on_retry, a)) ||
		!(a->settle = evtimer_new(base, on_settle, a)))
		goto fail;
	if ((ret = listen_at(a, path)) < 0)
		goto fail;
	*admin = a;
	return 0;

fail:
	if (a->retry)
		event_free(a->retry);
	if (a->settle)
		event_free(a->settle);
	free(a->path);
	free(a);
	return ret;
}

static void hang_up(struct client *client)
{
	bufferevent_free(client->stream);
	request_drop(&client->later);
	client->stream = NULL;
	client->is_closing = false;
	evconnlistener_enable(client->admin->listener);
}

void admin_destroy(struct admin *admin)
{
	if (!admin)
		return;
	for (int i = 0; i < ADMIN_CLIENTS_MAX; i++)
		if (admin->clients[i].stream)
			hang_up(&admin->clients[i]);
	evconnlistener_free(admin->listener);
	event_free(admin->retry);
	event_free(admin->settle);
	unlink(admin->path);
	free(admin->path);
	free(admin);
}

// The first free place; NULL if there is none.
static struct client *find_place(struct admin *admin)
{
	for (int i = 0; i < ADMIN_CLIENTS_MAX; i++)
		if (!admin->clients[i].stream)
			return &admin->clients[i];
	return NULL;
}

static void on_accept(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
	int address_len, void *context)
{
	struct admin *admin = context;
	struct client *client = find_place(admin);
	const struct timeval idle = {.tv_sec = ADMIN_IDLE_S};
	(void)address, (void)address_len;

	assert(client); // the listener is off while there is none
	client->stream = bufferevent_socket_new(admin->base, fd, BEV_OPT_CLOSE_ON_FREE);
	if (!client->stream) {
		close(fd);
		return;
	}
	bufferevent_setcb(client->stream, on_read, on_taken, on_event, client);
	bufferevent_setwatermark(client->stream, EV_READ, 0, ADMIN_LINE_BYTES_MAX);
	bufferevent_set_timeouts(client->stream, &idle, &idle);
	bufferevent_enable(client->stream, EV_READ | EV_WRITE);
	if (!find_place(admin))
		evconnlistener_disable(listener);
}

static void on_accept_error(struct evconnlistener *listener, void *context)
{
	struct admin *admin = context;
	const struct timeval second = {.tv_sec = 1};
	evconnlistener_disable(listener);
	evtimer_add(admin->retry, &second);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	struct admin *admin = context;
	(void)fd, (void)what;
	if (find_place(admin))
		evconnlistener_enable(admin->listener);
}

// Send an answer, and read nothing until it is taken.
static void answer(struct client *client, char *line)
{
	bufferevent_disable(client->stream, EV_READ);
	if (!line || bufferevent_write(client->stream, line, strlen(line)) < 0)
		hang_up(client);
	free(line);
}

// Returns whether there is one.
static bool ask_later(struct client *client)
{
	const struct timeval soon = {.tv_usec = ADMIN_SETTLE_MS * 1000};
	if (!client->later.command)
		return false;
	bufferevent_disable(client->stream, EV_READ);
	evtimer_add(client->admin->settle, &soon);
	return true;
}

static void on_settle(evutil_socket_t fd, short what, void *context)
{
	struct admin *admin = context;
	(void)fd, (void)what;
	for (int i = 0; i < ADMIN_CLIENTS_MAX; i++) {
		struct client *client = &admin->clients[i];
		char *line = client->later.command ? request_settle(&client->later, admin->context)
						   : NULL;
		if (line)
			answer(client, line);
		else
			ask_later(client);
	}
}

static void on_read(struct bufferevent *stream, void *context)
{
	struct client *client = context;
	struct admin *admin = client->admin;
	struct evbuffer *input = bufferevent_get_input(stream);
	size_t len;
	char *line = evbuffer_readln(input, &len, EVBUFFER_EOL_LF);

	if (line) {
		char *said = request_answer(admin->commands, admin->command_count, admin->context,
			line, len, &client->later);
		free(line);
		if (!ask_later(client))
			answer(client, said);
	} else if (evbuffer_get_length(input) >= ADMIN_LINE_BYTES_MAX) {
		client->is_closing = true;
		answer(client, request_refuse("a command that is too long"));
	}
}

// The answer is taken: the next command, which may be here already.
static void on_taken(struct bufferevent *stream, void *context)
{
	struct client *client = context;
	if (client->is_closing) {
		hang_up(client);
		return;
	}
	bufferevent_enable(stream, EV_READ);
	on_read(stream, client);
}

// Who sends no more may still be taking an answer.
static void on_event(struct bufferevent *stream, short what, void *context)
{
	struct client *client = context;
	bool is_busy =
		evbuffer_get_length(bufferevent_get_output(stream)) > 0 || client->later.command;
	if ((what & BEV_EVENT_EOF) && is_busy)
		client->is_closing = true;
	else
		hang_up(client);
}
