// The loop runs by a tick of 5 ms, so that each wait can look at the clock.

#include "tests/unit/link/owner.h"

#include "controlplane/clock.h"
#include "tests/unit/link/redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WAIT_MS_MAX 20000 // on a busy machine

static const char script[] =
	"if ARGV[1] == 'wrong' then return redis.error_reply('WRONG batch') end\n"
	"redis.call('SET', KEYS[1], ARGV[1])\n"
	"redis.call('PUBLISH', '" OWNER_CHANNEL "', ARGV[1])\n"
	"return ARGV[1]\n";

static void on_ready(void *context, const struct link_status *status, bool is_other)
{
	struct owner *owner = context;
	assert_true(status->is_ready && status->ready_us && !status->error[0]);
	owner->ready++;
	owner->others += is_other;
}

static void on_lost(void *context, const char *reason)
{
	struct owner *owner = context;
	owner->lost++;
	assert_int_equal(owner->lost, owner->ready);
	snprintf(owner->reason, sizeof(owner->reason), "%s", reason);
}

static void copy(const char *from, size_t bytes, char to[64])
{
	memset(to, 0, 64);
	memcpy(to, from, bytes < 63 ? bytes : 63);
}

static void on_replied(void *context, const redisReply *reply)
{
	struct owner *owner = context;
	assert_int_equal(owner->ready, owner->lost + 1);
	owner->replied++;
	owner->reply_type = reply->type;
	owner->reply_bytes = reply->len;
	copy(reply->str, reply->len, owner->reply);
}

static void on_subscribed(void *context)
{
	struct owner *owner = context;
	owner->subscribed++;
}

static void on_told(void *context, const char *message, size_t bytes)
{
	struct owner *owner = context;
	owner->told++;
	owner->news_bytes = bytes;
	copy(message, bytes, owner->news);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what, (void)context;
}

static void begin(
	struct owner *owner, const struct config_store *store, const struct link_options *wishes)
{
	static const struct link_events events = {.ready = on_ready,
		.lost = on_lost,
		.replied = on_replied,
		.subscribed = on_subscribed,
		.told = on_told};
	*owner = (struct owner){.base = event_base_new(), .store = *store};
	owner->tick = event_new(owner->base, -1, EV_PERSIST, on_tick, NULL);
	struct timeval every = {0, 5000};
	event_add(owner->tick, &every);
	struct link_options options = {.store = &owner->store,
		.password = wishes->password,
		.channel = OWNER_CHANNEL,
		.script = script,
		.script_bytes = strlen(script),
		.answer_ms = wishes->answer_ms,
		.reply_bytes_max = wishes->reply_bytes_max};
	assert_int_equal(link_create(owner->base, &options, &events, owner, &owner->link), 0);
	assert_int_equal(owner_send(owner, "k", "too early"), -EAGAIN);
}

void owner_init(struct owner *owner, const struct config_store *store, const char *password,
	uint32_t answer_ms)
{
	begin(owner, store, &(struct link_options){.password = password, .answer_ms = answer_ms});
}

void owner_init_bounded(
	struct owner *owner, const struct config_store *store, size_t reply_bytes_max)
{
	begin(owner, store, &(struct link_options){.reply_bytes_max = reply_bytes_max});
}

void owner_fini(struct owner *owner)
{
	link_destroy(owner->link);
	event_free(owner->tick);
	event_base_free(owner->base);
}

struct config_store owner_socket(const char *name)
{
	static char path[REDIS_PATH_BYTES];
	char socket_name[64];
	snprintf(socket_name, sizeof(socket_name), "%s.sock", name);
	return (struct config_store){
		.kind = CONFIG_STORE_UNIX, .name = redis_path(socket_name, path)};
}

struct config_store owner_server(struct config_server *server, const char *host, uint16_t port)
{
	*server = (struct config_server){.host = host, .port = port};
	return (struct config_store){.kind = CONFIG_STORE_REDIS, .servers = {1, server}};
}

uint32_t owner_wait(struct owner *owner, const uint32_t *counter, uint32_t count)
{
	uint64_t began_us = clock_monotonic_us();
	for (;;) {
		uint64_t ms = (clock_monotonic_us() - began_us) / 1000;
		if (*counter >= count)
			return (uint32_t)ms;
		if (ms > WAIT_MS_MAX)
			fail_msg("waited in vain: %s", link_status(owner->link)->error);
		event_base_loop(owner->base, EVLOOP_ONCE);
	}
}

void owner_run(struct owner *owner, uint32_t ms)
{
	uint64_t until_us = clock_monotonic_us() + ms * UINT64_C(1000);
	while (clock_monotonic_us() < until_us)
		event_base_loop(owner->base, EVLOOP_ONCE);
}

void owner_wait_error(struct owner *owner, const char *words)
{
	uint64_t until_us = clock_monotonic_us() + WAIT_MS_MAX * UINT64_C(1000);
	while (!strstr(link_status(owner->link)->error, words)) {
		if (clock_monotonic_us() > until_us)
			fail_msg("not '%s' but '%s'", words, link_status(owner->link)->error);
		event_base_loop(owner->base, EVLOOP_ONCE);
	}
}

int owner_send(struct owner *owner, const char *key, const char *text)
{
	const char *words[] = {key, text};
	return link_send(owner->link, 1, 2, words, (size_t[]){strlen(key), strlen(text)});
}

void owner_batch(struct owner *owner, const char *key, const char *text)
{
	uint32_t replied = owner->replied;
	assert_int_equal(owner_send(owner, key, text), 0);
	owner_wait(owner, &owner->replied, replied + 1);
}
