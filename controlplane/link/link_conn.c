// A context of hiredis frees itself when it fails, after telling; one that is given up by us is
// freed at once, or, within one of its events, when that returns. `data` of a context is its
// link_conn as long as the two belong together, so that what it still says afterwards is not heard.
//
// All commands have the same callback, and one more of it stands in the queue than there are
// replies owed: that one hears what nobody asked for. It is put there by a command of no bytes.
//
// hiredis asserts what a message of a channel looks like, so that whoever speaks for Redis could
// end us. It is not told that we subscribe: SUBSCRIBE goes out behind its back, and a message is a
// reply that nobody asked for, in whatever shape. How many elements a reply may have is ours to say
// too, before there is memory for them.
//
// The timer looks ten times a second at most: at the time, and at how much has come in.

#include "controlplane/link/link_conn.h"

#include "controlplane/clock.h"
#include "controlplane/link/link_greeting.h"

#include <hiredis/adapters/libevent.h>

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define LOOK_US UINT64_C(100000)
#define ELEMENTS_MAX 1024 // of an array; CONFIG GET, the longest, has some ten

// The connection is no more, and says so.
static void closed(struct link_conn *conn, const char *error)
{
	conn->redis = NULL;
	conn->due_us = 0;
	event_del(conn->timer);
	snprintf(conn->error, sizeof(conn->error), "%s", error);
	conn->events->closed(conn->context);
}

static void give_up(struct link_conn *conn, const char *error)
{
	redisAsyncContext *redis = conn->redis;
	redis->data = NULL;
	redisAsyncFree(redis);
	closed(conn, error);
}

static void look_again(struct link_conn *conn, uint64_t now_us)
{
	uint64_t wait_us = conn->due_us > now_us ? conn->due_us - now_us : 0;
	if (wait_us > LOOK_US)
		wait_us = LOOK_US;
	struct timeval wait = {0, (suseconds_t)wait_us};
	event_add(conn->timer, &wait);
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct link_conn *conn = context;
	uint64_t now_us = clock_monotonic_us();
	if (!conn->redis || conn->due_us == 0)
		return;
	if (conn->redis->c.reader->len > conn->reply_bytes_max) {
		give_up(conn, "sends a reply that is too long");
	} else if (now_us >= conn->due_us) {
		char error[LINK_TEXT_BYTES];
		snprintf(error, sizeof(error), "no %s in time", conn->awaited);
		give_up(conn, error);
	} else {
		look_again(conn, now_us);
	}
}

int link_conn_init(struct link_conn *conn, struct event_base *base,
	const struct link_conn_events *events, void *context)
{
	*conn = (struct link_conn){.base = base, .events = events, .context = context};
	conn->timer = event_new(base, -1, 0, on_timer, conn);
	return conn->timer ? 0 : -ENOMEM;
}

void link_conn_fini(struct link_conn *conn)
{
	if (!conn->timer)
		return;
	link_conn_close(conn);
	event_free(conn->timer);
	conn->timer = NULL;
}

bool link_conn_is_open(const struct link_conn *conn)
{
	return conn->redis;
}

// On failure the context frees itself, and tells no more.
static void on_connect(const redisAsyncContext *redis, int status)
{
	struct link_conn *conn = redis->data;
	if (!conn)
		return;
	if (status == REDIS_OK) {
		link_conn_expect(conn, NULL, 0);
		conn->events->connected(conn->context);
		return;
	}
	((redisAsyncContext *)(uintptr_t)redis)->data = NULL;
	closed(conn, redis->c.errstr);
}

static void on_disconnect(const redisAsyncContext *redis, int status)
{
	struct link_conn *conn = redis->data;
	if (conn)
		closed(conn, status == REDIS_OK ? "closed" : redis->errstr);
}

// Too many clients, perhaps: the server says so before it closes.
static void unasked(struct link_conn *conn, const redisReply *reply)
{
	char error[LINK_TEXT_BYTES] = "sends what nobody asked for";
	if (reply->type == REDIS_REPLY_ERROR)
		link_greeting_take_ok(reply, error);
	give_up(conn, error);
}

static void hear_one_more(redisAsyncContext *redis);

// Without a reply: the connection ends, which is told by on_disconnect().
static void on_reply(redisAsyncContext *redis, void *reply, void *private)
{
	(void)private;
	struct link_conn *conn = redis->data;
	if (!conn || !reply)
		return;
	if (conn->owed > 0) {
		conn->owed--;
	} else if (conn->is_listening) {
		hear_one_more(redis);
	} else {
		unasked(conn, reply);
		return;
	}
	conn->events->replied(conn->context, reply);
}

static void hear_one_more(redisAsyncContext *redis)
{
	redisAsyncFormattedCommand(redis, on_reply, NULL, "*1\r\n$4\r\nNONE\r\n", 0);
}

static redisReplyObjectFunctions *hiredis_functions;

static void *create_array(const redisReadTask *task, int elements)
{
	return elements <= ELEMENTS_MAX ? hiredis_functions->createArray(task, elements) : NULL;
}

static void bound_elements(redisReader *reader)
{
	static redisReplyObjectFunctions bounded;
	hiredis_functions = reader->fn;
	bounded = *hiredis_functions;
	bounded.createArray = create_array;
	reader->fn = &bounded;
}

int link_conn_open(struct link_conn *conn, const struct link_conn_address *address, uint32_t ms)
{
	assert(!conn->redis);
	redisAsyncContext *redis = address->port ? redisAsyncConnect(address->host, address->port)
						 : redisAsyncConnectUnix(address->host);
	if (!redis)
		return -ENOMEM;
	if (redis->err || redisLibeventAttach(redis, conn->base) != REDIS_OK) {
		snprintf(conn->error, sizeof(conn->error), "%s",
			redis->err ? redis->errstr : "no memory");
		redisAsyncFree(redis);
		return -EIO;
	}
	fcntl(redis->c.fd, F_SETFD, FD_CLOEXEC);
	redis->data = conn;
	redisAsyncSetConnectCallback(redis, on_connect);
	redisAsyncSetDisconnectCallback(redis, on_disconnect);
	conn->redis = redis;
	conn->owed = 0;
	conn->is_listening = false;
	bound_elements(redis->c.reader);
	hear_one_more(redis);
	link_conn_expect(conn, "connection", ms);
	return 0;
}

void link_conn_close(struct link_conn *conn)
{
	redisAsyncContext *redis = conn->redis;
	if (!redis)
		return;
	conn->redis = NULL;
	conn->due_us = 0;
	event_del(conn->timer);
	redis->data = NULL;
	redisAsyncFree(redis);
}

// A command that hiredis has no memory for is one that nobody answers: the wait for it ends.
void link_conn_send(struct link_conn *conn, int argc, const char *const *argv, const size_t *bytes)
{
	const char *words[8];
	assert(argc <= 8);
	memcpy(words, argv, sizeof(*argv) * (size_t)argc);
	conn->owed++;
	redisAsyncCommandArgv(conn->redis, on_reply, NULL, argc, words, bytes);
}

void link_conn_send_raw(struct link_conn *conn, const char *command, size_t bytes)
{
	conn->owed++;
	redisAsyncFormattedCommand(conn->redis, on_reply, NULL, command, bytes);
}

void link_conn_listen(struct link_conn *conn, const char *channel)
{
	const char *words[] = {"SUBSCRIBE", channel};
	char *command = NULL;
	const int bytes =
		redisFormatCommandArgv(&command, 2, words, (size_t[]){9, strlen(channel)});
	conn->is_listening = true;
	conn->owed++;
	if (bytes > 0)
		redisAppendFormattedCommand(&conn->redis->c, command, (size_t)bytes);
	redisFreeCommand(command);
	hear_one_more(conn->redis); // and write
}

void link_conn_auth(struct link_conn *conn, const char *user, const char *password)
{
	if (!password)
		return;
	const char *words[] = {"AUTH", user ? user : password, password};
	size_t bytes[] = {4, strlen(words[1]), strlen(password)};
	link_conn_send(conn, user ? 3 : 2, words, bytes);
}

void link_conn_expect(struct link_conn *conn, const char *awaited, uint32_t ms)
{
	uint64_t now_us = clock_monotonic_us();
	conn->awaited = awaited;
	conn->due_us = ms ? now_us + ms * UINT64_C(1000) : 0;
	if (ms)
		look_again(conn, now_us);
	else
		event_del(conn->timer);
}
