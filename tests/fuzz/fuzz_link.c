// The link with a peer that says anything: on a socket, through hiredis and its callbacks, as it
// would come from a Redis that is none. Nothing that is said may end the process, and no more is
// passed on than was said.
//
//   g...  instead of a greeting
//   b...  after a greeting, as replies to batches, one in flight until it is answered
//   n...  instead of news
//
// The peer closes behind it, so that each course ends, and all that it held is given back.

#include "controlplane/link/link_news.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define SAID_BYTES_MAX 65536u // fits a socket's buffer
#define CHANNEL "sluice:f:news"

static const char greeting[] = "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
			       "$193\r\nrun_id:0123456789012345678901234567890123456789\r\n"
			       "master_replid:0123456789012345678901234567890123456789\r\n"
			       "role:master\r\nloading:0\r\nredis_version:7.0.15\r\n"
			       "connected_slaves:0\r\nmaster_repl_offset:0\r\n\r\n*0\r\n"
			       "$40\r\n0123456789012345678901234567890123456789\r\n";

static struct event_base *base;
static int listener = -1;
static char folder[] = "/tmp/sluice-fuzz-XXXXXX", path[sizeof(folder) + 8];

struct heard {
	struct link *link;
	size_t said, told; // bytes
	uint32_t ready, lost, sent, replied;
};

static void clean(void)
{
	close(listener);
	unlink(path);
	rmdir(folder);
	event_base_free(base);
}

static void prepare(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	base = event_base_new();
	if (!base || !mkdtemp(folder))
		abort();
	memcpy(path, folder, sizeof(folder) - 1);
	memcpy(path + sizeof(folder) - 1, "/peer", 6);
	memcpy(to.sun_path, path, strlen(path));
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&to, sizeof(to)) < 0 || listen(listener, 4) < 0)
		abort();
	atexit(clean);
}

// The peer of the connection that is made now; it has said all that it will.
static int meet(const char *before, const uint8_t *said, size_t bytes)
{
	int peer;
	do
		event_base_loop(base, EVLOOP_ONCE);
	while ((peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) < 0);
	const size_t known = strlen(before);
	if (send(peer, before, known, MSG_NOSIGNAL) != (ssize_t)known ||
		send(peer, said, bytes, MSG_NOSIGNAL) != (ssize_t)bytes ||
		shutdown(peer, SHUT_WR) < 0)
		abort();
	return peer;
}

static void part(int peer)
{
	do
		close(peer);
	while ((peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0);
}

static void on_told(void *context, const char *message, size_t bytes)
{
	struct heard *heard = context;
	heard->told += bytes;
	assert(message && heard->told <= heard->said);
}

static void on_subscribed(void *context)
{
	(void)context;
}

static void send_one(struct heard *heard)
{
	static const char *const words[] = {"key", "argument"};
	const int ret = link_send(heard->link, 1, 2, words, (size_t[]){3, 8});
	assert(ret == 0);
	heard->sent++;
}

static void on_ready(void *context, const struct link_status *status, bool is_other)
{
	struct heard *heard = context;
	assert(status->is_ready && is_other && !status->error[0]);
	heard->ready++;
	send_one(heard);
}

static void on_lost(void *context, const char *reason)
{
	struct heard *heard = context;
	assert(strnlen(reason, LINK_TEXT_BYTES) < LINK_TEXT_BYTES);
	heard->lost++;
}

static void on_replied(void *context, const redisReply *reply)
{
	struct heard *heard = context;
	assert(reply && heard->ready == heard->lost + 1);
	heard->replied++;
	assert(heard->replied <= heard->sent);
	send_one(heard);
}

static void hear_news(const uint8_t *said, size_t bytes)
{
	static const struct link_news_events events = {
		.subscribed = on_subscribed, .told = on_told};
	struct heard heard = {.said = bytes};
	struct link_news news = {.channel = CHANNEL, .answer_ms = LINK_ANSWER_MS};
	struct link_conn_address address = {.port = 0};
	memcpy(address.host, path, strlen(path));
	if (link_news_init(&news, base, &events, &heard) < 0)
		abort();
	news.conn.reply_bytes_max = LINK_REPLY_BYTES_MAX;
	link_news_start(&news, &address);
	const int peer = meet("", said, bytes);
	while (link_conn_is_open(&news.conn))
		event_base_loop(base, EVLOOP_ONCE);
	link_news_stop(&news);
	link_news_fini(&news);
	part(peer);
}

static void hear_replies(const char *before, const uint8_t *said, size_t bytes)
{
	static const struct link_events events = {.ready = on_ready,
		.lost = on_lost,
		.replied = on_replied,
		.subscribed = on_subscribed,
		.told = on_told};
	const struct config_store store = {.kind = CONFIG_STORE_UNIX, .name = path};
	const struct link_options options = {
		.store = &store, .channel = CHANNEL, .script = "return 1", .script_bytes = 8};
	struct heard heard = {.said = bytes};
	if (link_create(base, &options, &events, &heard, &heard.link) < 0)
		abort();
	const int peer = meet(before, said, bytes);
	while (!link_status(heard.link)->error[0])
		event_base_loop(base, EVLOOP_ONCE);
	assert(heard.lost == heard.ready && (heard.ready == 1 || !before[0]));
	assert(!link_status(heard.link)->is_ready && !link_status(heard.link)->has_batch);
	link_destroy(heard.link);
	part(peer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0 || len > SAID_BYTES_MAX)
		return 0;
	if (listener < 0)
		prepare();
	if (data[0] == 'n')
		hear_news(data + 1, len - 1);
	else
		hear_replies(data[0] == 'b' ? greeting : "", data + 1, len - 1);
	return 0;
}
