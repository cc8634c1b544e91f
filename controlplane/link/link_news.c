// A watch is a second SUBSCRIBE: an idle channel looks like a dead one. A peer that says anything
// but what a channel says is none of ours.

#include "controlplane/link/link_news.h"

#include "controlplane/link/link_course.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static void wait_for(struct link_news *news, uint32_t ms)
{
	struct timeval wait = {0, (suseconds_t)(ms * 1000)};
	event_add(news->timer, &wait);
}

static void subscribe(struct link_news *news)
{
	link_conn_listen(&news->conn, news->channel);
	link_conn_expect(&news->conn, "reply to SUBSCRIBE", news->answer_ms);
}

static void on_connected(void *context)
{
	struct link_news *news = context;
	news->expects_auth = news->password;
	link_conn_auth(&news->conn, news->user, news->password);
	subscribe(news);
}

static void lose(struct link_news *news)
{
	link_conn_close(&news->conn);
	if (news->is_subscribed)
		news->lost_total++;
	news->is_subscribed = false;
	wait_for(news, LINK_NEWS_PAUSE_MS);
}

static void on_closed(void *context)
{
	lose(context);
}

static bool is_word(const redisReply *reply, const char *word)
{
	return reply->type == REDIS_REPLY_STRING && reply->len == strlen(word) &&
	       memcmp(reply->str, word, reply->len) == 0;
}

static void confirmed(struct link_news *news)
{
	bool is_new = !news->is_subscribed;
	link_conn_expect(&news->conn, NULL, 0);
	wait_for(news, LINK_NEWS_LOOK_MS);
	news->is_subscribed = true;
	if (is_new)
		news->events->subscribed(news->context);
}

// Of our channel: "subscribe", "message".
static bool is_said(const struct link_news *news, const redisReply *reply, const char *what)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
	       is_word(reply->element[0], what) && is_word(reply->element[1], news->channel);
}

static void on_replied(void *context, const redisReply *reply)
{
	struct link_news *news = context;
	const bool is_auth = news->expects_auth && reply->type == REDIS_REPLY_STATUS;
	news->expects_auth = false;
	if (is_said(news, reply, "subscribe")) {
		confirmed(news);
	} else if (is_said(news, reply, "message") &&
		   reply->element[2]->type == REDIS_REPLY_STRING) {
		const redisReply *text = reply->element[2];
		news->messages_total++;
		news->events->told(news->context, text->str, text->len);
	} else if (!is_auth) {
		lose(news);
	}
}

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	struct link_news *news = context;
	if (link_conn_is_open(&news->conn))
		subscribe(news);
	else if (link_conn_open(&news->conn, &news->address, LINK_COURSE_TRY_MS) < 0)
		wait_for(news, LINK_NEWS_PAUSE_MS);
}

int link_news_init(struct link_news *news, struct event_base *base,
	const struct link_news_events *events, void *context)
{
	static const struct link_conn_events conn_events = {
		.connected = on_connected, .replied = on_replied, .closed = on_closed};
	news->events = events;
	news->context = context;
	news->timer = event_new(base, -1, 0, on_timer, news);
	if (!news->timer)
		return -ENOMEM;
	return link_conn_init(&news->conn, base, &conn_events, news);
}

void link_news_fini(struct link_news *news)
{
	if (!news->timer)
		return;
	link_conn_fini(&news->conn);
	event_free(news->timer);
	news->timer = NULL;
}

void link_news_start(struct link_news *news, const struct link_conn_address *address)
{
	assert(!news->is_started);
	news->is_started = true;
	news->address = *address;
	wait_for(news, 0);
}

void link_news_stop(struct link_news *news)
{
	news->is_started = news->is_subscribed = false;
	event_del(news->timer);
	link_conn_close(&news->conn);
}
