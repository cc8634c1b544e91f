// The worker of the stories: keeps what clients send until a head is whole, begins exchanges, hands
// over bodies, and does with a client's stream what an exchange's end asks for.

#include "tests/unit/origin/story.h"

#include "dataplane/http/chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TURN_US 1000u
#define TURNS_MAX 1000

bool story_bytewise;

static const struct http_limits limits = {8192, 16384, HTTP_FIELDS_MAX};

static void on_command(void *user, enum exchange_command command)
{
	struct story_client *c = user;
	assert_non_null(c->x);
	if (command == EXCHANGE_COMMAND_END)
		c->commands_end++;
	else
		c->commands_renew++;
}

static void on_answered(void *user, uint16_t status, struct exchange_extra *extra)
{
	struct story_client *c = user;
	assert_non_null(c->x);
	c->answers++;
	c->status = status;
	*extra = c->story->extra;
}

static void on_tunnelled(void *user)
{
	struct story_client *c = user;
	assert_non_null(c->x);
	c->tunnels++;
	size_t held = c->held_len;
	if (held > 0)
		assert_int_equal(exchange_client_data(c->x, (struct span){c->held, held}), held);
	c->held_len = 0;
}

static void refuse(struct story_client *c, uint16_t status)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "HTTP/1.1 %u Refused\r\n\r\n", status);
	struct span answer = {text, (size_t)len};
	stream_write(&c->story->fake.driver, &c->s->stream, &answer, 1);
	stream_close(&c->story->fake.driver, &c->s->stream, false);
}

static void on_ended(void *user, const struct exchange_end *end)
{
	struct story_client *c = user;
	struct stream_driver *driver = &c->story->fake.driver;
	assert_non_null(c->x);
	assert_false(c->s->is_paused);
	c->x = NULL;
	c->end = *end;
	c->ends++;
	switch ((enum exchange_outcome)end->outcome) {
	case EXCHANGE_KEPT:
		return;
	case EXCHANGE_CLOSE:
		stream_close(driver, &c->s->stream, false);
		return;
	case EXCHANGE_LINGER:
		stream_shut(driver, &c->s->stream);
		return;
	case EXCHANGE_BROKEN:
		stream_close(driver, &c->s->stream, true);
		return;
	case EXCHANGE_FAILED:
		refuse(c, end->status);
		return;
	}
}

static const struct exchange_calls calls = {
	.command = on_command,
	.answered = on_answered,
	.tunnelled = on_tunnelled,
	.ended = on_ended,
};

struct story *story_plan(void)
{
	struct story *story = calloc(1, sizeof(*story));
	assert_non_null(story);
	fake_init(&story->fake);
	origin_plan_init(&story->plan, 4, STORY_SERVERS_MAX);
	story->now_us = 1000000;
	story->bytewise = story_bytewise;
	story->facts = (struct exchange_request){
		.host = SPAN("shop.example"),
		.ends_us = UINT64_MAX,
	};
	return story;
}

void story_start(struct story *story)
{
	story->o = origin_create(&story->plan, &story->fake.driver, NULL, &calls);
	assert_non_null(story->o);
	story_table(story, ORIGIN_TABLE_LEAST, 1, 1);
	story_turn(story);
}

struct story *story_new(void)
{
	struct story *story = story_plan();
	story_start(story);
	return story;
}

void story_end(struct story *story)
{
	assert_int_equal(origin_exchange_count(story->o), 0);
	origin_destroy(story->o);
	for (int i = 0; i < story->fake.count; i++)
		if (story->fake.streams[i].stream.listener == STREAM_CONNECTED)
			assert_false(story->fake.streams[i].is_used);
	fake_fini(&story->fake);
	free(story);
}

void story_table(struct story *story, uint8_t balance, uint32_t count, uint64_t first_id)
{
	for (uint32_t k = 0; k < count; k++)
		story->servers[k] = (struct origin_table_server){
			.id = first_id + k,
			.address = {.ip = {[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(k + 1)},
				.port = 80},
		};
	story->origin = (struct origin_table_origin){
		.id = 77, .name = SPAN("shop"), .balance = balance, .server_count = count};
	story->table = (struct origin_table){
		.generation = story->table.generation + 1,
		.origin_count = 1,
		.server_count = count,
		.origins = &story->origin,
		.servers = story->servers,
	};
	origin_set_table(story->o, &story->table);
}

struct story_client *story_client(struct story *story)
{
	assert_true(story->client_count < STORY_CLIENTS_MAX);
	struct story_client *c = &story->clients[story->client_count++];
	c->story = story;
	c->s = fake_accept(&story->fake);
	c->s->stream.user = c;
	return c;
}

int story_connection_count(const struct story *story)
{
	int count = 0;
	for (int i = 0; i < story->fake.count; i++)
		count += story->fake.streams[i].stream.listener == STREAM_CONNECTED;
	return count;
}

struct fake_stream *story_connection(struct story *story, int n)
{
	for (int i = 0; i < story->fake.count; i++)
		if (story->fake.streams[i].stream.listener == STREAM_CONNECTED && n-- == 0)
			return &story->fake.streams[i];
	fail_msg("there is no such connection");
	return NULL;
}

static void use(struct story_client *c, size_t bytes)
{
	c->held_len -= bytes;
	memmove(c->held, c->held + bytes, c->held_len);
}

// Begin an exchange with the head that is held, if it is whole. Returns whether it was.
static bool begin(struct story_client *c)
{
	struct span in = {c->held, c->held_len};
	uint32_t scanned = 0, head_bytes;
	if (http_head_end(in, &limits, &scanned, &head_bytes) != HTTP_OK)
		return false;
	struct http_head head;
	assert_int_equal(
		http_request_parse((struct span){in.at, head_bytes}, &limits, &head), HTTP_OK);
	struct exchange_request request = c->story->facts;
	request.client_driver = &c->story->fake.driver;
	request.client = &c->s->stream;
	request.user = c;
	request.head = &head;
	c->x = exchange_begin(c->story->o, &request, &c->refused);
	memset(&head, 0xaa, sizeof(head)); // nobody may keep it
	memset(c->held, 0xaa, head_bytes);
	use(c, head_bytes);
	if (!c->x)
		refuse(c, c->refused);
	return true;
}

// Use what is held, as far as it goes.
static void pump(struct story_client *c)
{
	while (c->held_len > 0 && c->s->is_used) {
		if (!c->x) {
			if (c->s->is_shut || !begin(c))
				return;
			continue;
		}
		size_t taken = exchange_client_data(c->x, (struct span){c->held, c->held_len});
		assert_true(taken <= c->held_len);
		use(c, taken);
		if (c->x)
			return;
	}
}

static void client_event(struct story_client *c, const struct stream_event *event)
{
	switch (event->kind) {
	case STREAM_DATA:
		assert_true(c->held_len + event->data.len <= sizeof(c->held));
		memcpy(c->held + c->held_len, event->data.at, event->data.len);
		c->held_len += event->data.len;
		break;
	case STREAM_WRITABLE:
		if (c->x)
			exchange_client_writable(c->x);
		break;
	case STREAM_EOF:
		c->has_ended = true;
		if (c->x)
			exchange_client_eof(c->x);
		break;
	case STREAM_CLOSED:
		if (c->x)
			exchange_client_closed(c->x);
		c->x = NULL;
		break;
	case STREAM_OPENED:
	case STREAM_NONE:
		break;
	}
}

int story_turn(struct story *story)
{
	struct stream_event events[64];
	story->now_us += TURN_US;
	int count = stream_poll(&story->fake.driver, events, 64, 0);
	origin_tick(story->o, story->now_us);
	for (int i = 0; i < count; i++) {
		if (events[i].kind == STREAM_CLOSED)
			fake_gone(events[i].stream);
		if (events[i].stream->listener == STREAM_CONNECTED)
			origin_event(story->o, &events[i]);
		else
			client_event(events[i].stream->user, &events[i]);
		for (int n = 0; story->pump_at_once && n < story->client_count; n++)
			pump(&story->clients[n]);
	}
	for (int i = 0; i < story->client_count; i++)
		pump(&story->clients[i]);
	return count;
}

void story_settle(struct story *story)
{
	for (int n = 0; story_turn(story) > 0; n++)
		assert_true(n < TURNS_MAX);
}

void story_wait(struct story *story, uint64_t us)
{
	story->now_us += us;
	story_settle(story);
}

static void say(struct story *story, struct fake_stream *s, const char *text)
{
	size_t len = strlen(text), step = story->bytewise ? 1 : len;
	for (size_t at = 0; at < len; at += step) {
		fake_peer_sends(&story->fake, s, (struct span){text + at, step});
		story_turn(story);
	}
	story_settle(story);
}

void story_client_says(struct story_client *client, const char *text)
{
	say(client->story, client->s, text);
}

void story_client_ends(struct story_client *client)
{
	fake_peer_ends(&client->story->fake, client->s);
	story_settle(client->story);
}

void story_client_leaves(struct story_client *client)
{
	fake_peer_closes(&client->story->fake, client->s, 104);
	story_settle(client->story);
}

void story_opens(struct story *story, struct fake_stream *connection)
{
	fake_peer_opens(&story->fake, connection);
	story_settle(story);
}

void story_origin_says(struct story *story, struct fake_stream *connection, const char *text)
{
	say(story, connection, text);
}

void story_origin_ends(struct story *story, struct fake_stream *connection)
{
	fake_peer_ends(&story->fake, connection);
	story_settle(story);
}

void story_origin_closes(struct story *story, struct fake_stream *connection, int error)
{
	fake_peer_closes(&story->fake, connection, error);
	story_settle(story);
}

void story_got_at(struct fake_stream *s, const char *text, const char *file, int line)
{
	size_t len = strlen(text);
	if (s->got.len != len || (len > 0 && memcmp(s->got.at, text, len) != 0)) {
		print_error("expected:\n%s\ngot:\n%.*s\n", text, (int)s->got.len,
			s->got.at ? s->got.at : "");
		_fail(file, line);
	}
	s->got.len = 0;
}

void story_got_chunks_at(struct fake_stream *s, const char *head, const char *body, bool is_whole,
	const char *file, int line)
{
	struct chunk_decoder decoder = {0};
	size_t at = strlen(head), body_at = 0;
	enum chunk_result result = CHUNK_MORE;
	bool is_as_expected = s->got.len >= at && memcmp(s->got.at, head, at) == 0;
	while (is_as_expected && at < s->got.len) {
		struct span data, in = {s->got.at + at, s->got.len - at};
		size_t consumed;
		result = chunk_decode(&decoder, in, &consumed, &data);
		at += consumed;
		if (result != CHUNK_DATA)
			break;
		is_as_expected = strlen(body + body_at) >= data.len &&
				 memcmp(body + body_at, data.at, data.len) == 0;
		body_at += data.len;
	}
	is_as_expected = is_as_expected && at == s->got.len && body[body_at] == 0 &&
			 (is_whole ? result == CHUNK_DONE : result != CHUNK_DONE);
	if (!is_as_expected) {
		print_error("expected:\n%s(chunks of) %s\ngot:\n%.*s\n", head, body,
			(int)s->got.len, s->got.at ? s->got.at : "");
		_fail(file, line);
	}
	s->got.len = 0;
}

struct fake_stream *story_asked(struct story_client *client, const char *request, const char *got)
{
	int n = story_connection_count(client->story);
	story_client_says(client, request);
	struct fake_stream *connection = story_connection(client->story, n);
	story_opens(client->story, connection);
	story_got(connection, got);
	return connection;
}

struct fake_stream *story_get(struct story_client *client, int n, bool is_new)
{
	struct story *story = client->story;
	story_client_says(client, STORY_GET);
	struct fake_stream *connection = story_connection(story, n);
	if (is_new)
		story_opens(story, connection);
	story_got(connection, STORY_GOT_GET);
	story_origin_says(story, connection, STORY_OK);
	story_got(client->s, STORY_OK);
	return connection;
}

int story_set_whole(void **state)
{
	(void)state;
	story_bytewise = false;
	return 0;
}

int story_set_bytewise(void **state)
{
	(void)state;
	story_bytewise = true;
	return 0;
}
