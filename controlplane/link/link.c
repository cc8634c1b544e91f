// The link moves by events of its connection and of one timer, along link_course. What the timer
// means follows from where it stands: at rest the next try begins; while a name is asked for, its
// time is up; when ready the owner has dropped the connection.
//
// The greeting goes out in one piece and its replies are taken in order; the first that is not to
// be had ends it. So does an old primary that has become a replica: its next batch says READONLY,
// which is as good as a loss, and the sentinels know more.

#include "controlplane/link/link.h"

#include "controlplane/clock.h"
#include "controlplane/link/link_conn.h"
#include "controlplane/link/link_course.h"
#include "controlplane/link/link_names.h"
#include "controlplane/link/link_news.h"
#include "controlplane/link/link_wire.h"
#include "controlplane/store/locked.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

// In the order of its replies.
enum step {
	STEP_AUTH,
	STEP_SELECT,
	STEP_ROLE,
	STEP_INFO,
	STEP_CONFIG,
	STEP_SCRIPT,
	STEP_COUNT,
};

struct link {
	struct link_options options;
	const struct link_events *events;
	void *context;
	struct event *timer;
	struct link_course course;
	struct link_names names;
	struct link_conn conn; // to a sentinel, then to the primary
	struct link_news news;
	char peer[LINK_ADDRESS_BYTES]; // whom the try is about, for words
	struct link_conn_address address; // likewise
	enum step step; // whose reply comes next
	struct link_server before; // who was greeted last
	char script_name[LINK_GREETING_ID_BYTES];
	struct link_wire batch; // the one in flight
	bool is_reloaded; // it was sent again with the script
	uint32_t skipped; // replies before its own
	char drop[LINK_TEXT_BYTES]; // why the owner dropped it
	char password[LINK_PASSWORD_BYTES_MAX + 1];
	struct link_status status;
};

static void wait_until(struct link *link, uint64_t due_us)
{
	uint64_t now_us = clock_monotonic_us();
	uint64_t wait_us = due_us > now_us ? due_us - now_us : 0;
	struct timeval wait = {(time_t)(wait_us / 1000000), (suseconds_t)(wait_us % 1000000)};
	event_add(link->timer, &wait);
}

static void rest(struct link *link)
{
	wait_until(link, link_course_next_us(&link->course, clock_monotonic_us()));
}

// The try, or the connection, is over.
static void end(struct link *link, const char *why)
{
	struct link_status *status = &link->status;
	bool was_ready = link->course.state == LINK_COURSE_READY;
	char error[LINK_TEXT_BYTES]; // `why` may be of what is closed here
	snprintf(error, sizeof(error), "%.127s: %.126s", link->peer, why);
	link_names_cancel(&link->names);
	link_conn_close(&link->conn);
	link_news_stop(&link->news);
	link_course_failed(&link->course);
	memcpy(status->error, error, sizeof(error));
	status->is_ready = status->has_batch = status->has_news = false;
	status->ready_us = 0;
	rest(link);
	if (!was_ready)
		return;
	status->lost_total++;
	link->events->lost(link->context, status->error);
}

static void on_found(void *context, const struct link_conn_address *address, const char *error)
{
	struct link *link = context;
	event_del(link->timer);
	if (error) {
		end(link, error);
		return;
	}
	link->address = *address;
	if (link_conn_open(&link->conn, address, LINK_COURSE_TRY_MS) < 0)
		end(link, link->conn.error);
}

// Go to a server by its name.
static void go(struct link *link, const char *host, uint16_t port)
{
	bool is_ipv6 = strchr(host, ':');
	snprintf(link->peer, sizeof(link->peer), is_ipv6 ? "[%s]:%u" : "%s:%u", host, port);
	wait_until(link, clock_monotonic_us() + LINK_COURSE_TRY_MS * UINT64_C(1000));
	link_names_ask(&link->names, host, port);
}

static void go_to_primary(struct link *link, const char *host, uint16_t port)
{
	go(link, host, port);
	memcpy(link->status.primary, link->peer, sizeof(link->peer));
}

static void go_to_socket(struct link *link, const char *path)
{
	struct link_conn_address address = {.port = 0};
	snprintf(address.host, sizeof(address.host), "%s", path);
	snprintf(link->peer, sizeof(link->peer), "%s", path);
	memcpy(link->status.primary, link->peer, sizeof(link->peer));
	on_found(link, &address, NULL);
}

static void begin(struct link *link)
{
	const struct config_store *store = link->options.store;
	link_course_begin(&link->course, clock_monotonic_us());
	link->status.tries_total++;
	if (store->kind == CONFIG_STORE_UNIX) {
		go_to_socket(link, store->name);
	} else if (store->kind == CONFIG_STORE_SENTINEL) {
		const struct config_server *sentinel = &store->servers.at[link->course.sentinel];
		go(link, sentinel->host, sentinel->port);
	} else {
		go_to_primary(link, store->servers.at[0].host, store->servers.at[0].port);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct link *link = context;
	if (link->course.state == LINK_COURSE_RESTING)
		begin(link);
	else if (link->course.state == LINK_COURSE_READY)
		end(link, link->drop);
	else
		end(link, "its name does not resolve in time");
}

static void send_words(struct link *link, int argc, const char *const *argv)
{
	size_t bytes[3 + LINK_GREETING_CONFIG_COUNT];
	assert((size_t)argc <= sizeof(bytes) / sizeof(bytes[0]));
	for (int i = 0; i < argc; i++)
		bytes[i] = strlen(argv[i]);
	link_conn_send(&link->conn, argc, argv, bytes);
}

static void send_script(struct link *link)
{
	const char *words[] = {"SCRIPT", "LOAD", link->options.script};
	link_conn_send(&link->conn, 3, words, (size_t[]){6, 4, link->options.script_bytes});
}

static void send_config(struct link *link)
{
	const char *words[2 + LINK_GREETING_CONFIG_COUNT] = {"CONFIG", "GET"};
	memcpy(words + 2, link_greeting_config, LINK_GREETING_CONFIG_COUNT * sizeof(words[0]));
	send_words(link, 2 + LINK_GREETING_CONFIG_COUNT, words);
}

// The next step from `step` on that this server is asked for.
static enum step next_step(const struct link *link, enum step step)
{
	if (step == STEP_AUTH && !link->options.password)
		step++;
	if (step == STEP_SELECT && link->options.store->db == 0)
		step++;
	return step;
}

static void greet(struct link *link)
{
	char db[24];
	snprintf(db, sizeof(db), "%lu", link->options.store->db);
	link_course_connected(&link->course);
	link->step = next_step(link, STEP_AUTH);
	link_conn_auth(&link->conn, link->options.store->user, link->options.password);
	if (link->options.store->db)
		send_words(link, 2, (const char *[]){"SELECT", db});
	send_words(link, 1, (const char *[]){"ROLE"});
	send_words(link, 1, (const char *[]){"INFO"});
	send_config(link);
	send_script(link);
	link_conn_expect(&link->conn, "greeting", LINK_COURSE_TRY_MS);
}

static void on_connected(void *context)
{
	struct link *link = context;
	if (link->course.state == LINK_COURSE_CONNECTING) {
		greet(link);
		return;
	}
	send_words(link, 3,
		(const char *[]){"SENTINEL", "GET-MASTER-ADDR-BY-NAME", link->options.store->name});
	link_conn_expect(&link->conn, "reply of the sentinel", LINK_COURSE_TRY_MS);
}

static void take_sentinel(struct link *link, const redisReply *reply)
{
	char host[LINK_GREETING_HOST_BYTES], error[LINK_GREETING_TEXT_BYTES];
	uint16_t port;
	if (!link_greeting_take_primary(reply, host, &port, error)) {
		end(link, error);
		return;
	}
	link_conn_close(&link->conn);
	link_course_told(&link->course);
	go_to_primary(link, host, port);
}

static bool take_step(struct link *link, const redisReply *reply, char *error)
{
	struct link_status *status = &link->status;
	bool has_sentinels = link->options.store->kind == CONFIG_STORE_SENTINEL;
	switch (link->step) {
	case STEP_AUTH:
	case STEP_SELECT:
		return link_greeting_take_ok(reply, error);
	case STEP_ROLE:
		return link_greeting_take_role(reply, error);
	case STEP_INFO:
		return link_greeting_take_info(reply, &status->server, error);
	case STEP_CONFIG:
		link_greeting_take_config(
			reply, has_sentinels || status->server.replicas, &status->warnings);
		return true;
	default:
		return link_greeting_take_script(reply, link->script_name, error);
	}
}

static bool is_same(const struct link_server *a, const struct link_server *b)
{
	return strcmp(a->run_id, b->run_id) == 0 &&
	       strcmp(a->replication_id, b->replication_id) == 0;
}

static void greeted(struct link *link)
{
	struct link_status *status = &link->status;
	bool is_other = !is_same(&link->before, &status->server);
	link->before = status->server;
	link_conn_expect(&link->conn, NULL, 0);
	link_course_greeted(&link->course);
	link_news_start(&link->news, &link->address);
	status->is_ready = true;
	status->ready_us = clock_monotonic_us();
	status->ready_total++;
	status->error[0] = link->drop[0] = '\0';
	link->events->ready(link->context, status, is_other);
}

static void take_greeting(struct link *link, const redisReply *reply)
{
	char error[LINK_GREETING_TEXT_BYTES];
	if (!take_step(link, reply, error)) {
		end(link, error);
		return;
	}
	link->step = next_step(link, link->step + 1);
	if (link->step == STEP_COUNT)
		greeted(link);
}

static void send_batch(struct link *link)
{
	link_conn_send_raw(&link->conn, link->batch.at, link->batch.bytes);
	link_conn_expect(&link->conn, "reply to a batch", link->options.answer_ms);
}

static void take_reply(struct link *link, const redisReply *reply)
{
	struct link_status *status = &link->status;
	char error[LINK_GREETING_TEXT_BYTES];
	if (!status->has_batch)
		return; // to nothing
	if (link->skipped) {
		link->skipped--;
	} else if (link_greeting_is_forgotten(reply) && !link->is_reloaded) {
		link->is_reloaded = true;
		link->skipped = 1;
		status->reloads_total++;
		send_script(link);
		send_batch(link);
	} else if (link_greeting_is_demoted(reply)) {
		link_greeting_take_ok(reply, error);
		end(link, error);
	} else {
		link_conn_expect(&link->conn, NULL, 0);
		status->has_batch = false;
		status->round_us = clock_monotonic_us() - status->sent_us;
		link->events->replied(link->context, reply);
		if (!link->drop[0])
			link_course_served(&link->course);
	}
}

static void on_replied(void *context, const redisReply *reply)
{
	struct link *link = context;
	if (link->course.state == LINK_COURSE_ASKING)
		take_sentinel(link, reply);
	else if (link->course.state == LINK_COURSE_GREETING)
		take_greeting(link, reply);
	else if (link->course.state == LINK_COURSE_READY)
		take_reply(link, reply);
}

static void on_closed(void *context)
{
	struct link *link = context;
	end(link, link->conn.error);
}

static void on_subscribed(void *context)
{
	struct link *link = context;
	link->events->subscribed(link->context);
}

static void on_told(void *context, const char *message, size_t bytes)
{
	struct link *link = context;
	link->events->told(link->context, message, bytes);
}

static int init(struct link *link, struct event_base *base)
{
	static const struct link_conn_events conn_events = {
		.connected = on_connected, .replied = on_replied, .closed = on_closed};
	static const struct link_news_events news_events = {
		.subscribed = on_subscribed, .told = on_told};
	const struct config_store *store = link->options.store;
	uint64_t seed = 0;
	(void)!getrandom(&seed, sizeof(seed), 0); // without it all begin alike, no more
	link_course_init(&link->course,
		store->kind == CONFIG_STORE_SENTINEL ? store->servers.count : 0, seed);
	link_names_init(&link->names, base, on_found, link);
	link->news.user = store->user;
	link->news.password = link->options.password;
	link->news.channel = link->options.channel;
	link->news.answer_ms = link->options.answer_ms;
	link->timer = event_new(base, -1, 0, on_timer, link);
	if (!link->timer || link_conn_init(&link->conn, base, &conn_events, link) < 0 ||
		link_news_init(&link->news, base, &news_events, link) < 0)
		return -ENOMEM;
	link->conn.reply_bytes_max = link->news.conn.reply_bytes_max =
		link->options.reply_bytes_max;
	rest(link);
	return 0;
}

int link_create(struct event_base *base, const struct link_options *options,
	const struct link_events *events, void *context, struct link **link)
{
	if (options->password && strlen(options->password) > LINK_PASSWORD_BYTES_MAX)
		return -EINVAL;
	struct link *l = locked_take(sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->options = *options;
	l->events = events;
	l->context = context;
	if (options->password) {
		memcpy(l->password, options->password, strlen(options->password) + 1);
		l->options.password = l->password;
	}
	if (!options->answer_ms)
		l->options.answer_ms = LINK_ANSWER_MS;
	if (!options->reply_bytes_max)
		l->options.reply_bytes_max = LINK_REPLY_BYTES_MAX;
	if (init(l, base) < 0) {
		link_destroy(l);
		return -ENOMEM;
	}
	*link = l;
	return 0;
}

void link_destroy(struct link *link)
{
	if (!link)
		return;
	link_news_fini(&link->news);
	link_conn_fini(&link->conn);
	if (link->timer)
		event_free(link->timer);
	link_names_fini(&link->names);
	link_wire_fini(&link->batch);
	locked_give(link, sizeof(*link));
}

int link_send(struct link *link, uint32_t key_count, uint32_t argc, const char *const *argv,
	const size_t *bytes)
{
	struct link_status *status = &link->status;
	if (!status->is_ready || status->has_batch)
		return -EAGAIN;
	int ret = link_wire_set_batch(&link->batch, link->script_name, key_count, argc, argv, bytes,
		LINK_BATCH_BYTES_MAX);
	if (ret < 0)
		return ret;
	link->is_reloaded = false;
	link->skipped = 0;
	status->has_batch = true;
	status->sent_us = clock_monotonic_us();
	status->batches_total++;
	send_batch(link);
	return 0;
}

void link_drop(struct link *link, const char *reason)
{
	if (!link->status.is_ready)
		return;
	if (!link->drop[0])
		link_course_doubted(&link->course);
	snprintf(link->drop, sizeof(link->drop), "%s", reason);
	wait_until(link, 0);
}

const struct link_status *link_status(struct link *link)
{
	struct link_status *status = &link->status;
	status->has_news = link->news.is_subscribed;
	status->news_total = link->news.messages_total;
	status->news_lost_total = link->news.lost_total;
	return status;
}
