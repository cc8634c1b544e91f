// Whatever an origin answers, through the whole proxy: what the client gets must be one whole
// answer, or visibly none, by the same strict grammar.
//
// Input: a byte that chooses the request, a byte that says how many bytes come at a time (0: all),
// then the origin's bytes; then it closes.

#include "dataplane/http/chunk.h"
#include "dataplane/origin/exchange.h"
#include "dataplane/origin/origin.h"
#include "tests/unit/origin/fake.c"

#include <stdio.h>

#define FIELDS_MAX 100 // fewer than the parser's limit, since some are added

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const char *const requests[] = {
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET / HTTP/1.0\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
	"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n",
	"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
};
#define REQUESTS (sizeof(requests) / sizeof(requests[0]))

static const struct http_limits limits = {65535, 65535, HTTP_FIELDS_MAX};

// What the worker heard.
struct heard {
	struct exchange_end end;
	int ends, answers;
	bool is_tunnel;
};

static void on_command(void *user, enum exchange_command command)
{
	(void)user;
	assert(command == EXCHANGE_COMMAND_END || command == EXCHANGE_COMMAND_RENEW);
}

static void on_answered(void *user, uint16_t status, struct exchange_extra *extra)
{
	struct heard *heard = user;
	assert(status == 101 || (status >= 200 && status <= 599));
	heard->answers++;
	extra->fields = SPAN("Sluice-Pass: p\r\n");
	extra->is_private = true;
}

static void on_tunnelled(void *user)
{
	((struct heard *)user)->is_tunnel = true;
}

static void on_ended(void *user, const struct exchange_end *end)
{
	((struct heard *)user)->end = *end;
	((struct heard *)user)->ends++;
}

static const struct exchange_calls calls = {on_command, on_answered, on_tunnelled, on_ended};

// Whether the body after the final head is whole; it never goes on beyond its end.
static bool body_is_whole(const struct http_head *head, struct span body)
{
	struct chunk_decoder decoder = {0};
	switch ((enum http_body)head->body) {
	case HTTP_BODY_NONE:
		assert(body.len == 0);
		return true;
	case HTTP_BODY_LENGTH:
		assert(body.len <= head->content_length);
		return body.len == head->content_length;
	case HTTP_BODY_CLOSE:
		return true;
	case HTTP_BODY_CHUNKED:
		break;
	}
	for (;;) {
		struct span piece;
		size_t consumed;
		enum chunk_result result = chunk_decode(&decoder, body, &consumed, &piece);
		body = span_from(body, consumed);
		if (result == CHUNK_DATA)
			continue;
		assert(result == CHUNK_DONE || result == CHUNK_MORE);
		assert(body.len == 0);
		return result == CHUNK_DONE;
	}
}

// Read what the client got as strictly as we read.
static void check_client(struct span got, enum http_method method, const struct heard *heard)
{
	struct http_head head;
	uint32_t scanned, head_bytes;
	int finals = 0;
	while (got.len > 0) {
		scanned = 0;
		assert(http_head_end(got, &limits, &scanned, &head_bytes) == HTTP_OK);
		struct span bytes = {got.at, head_bytes};
		assert(http_answer_parse(bytes, &limits, method, &head) == HTTP_OK);
		got = span_from(got, head_bytes);
		assert(!http_field_first(&head, HTTP_FIELD_sluice_command));
		if (head.status >= 200 || head.status == 101) {
			finals++;
			break;
		}
	}
	assert(finals == heard->answers);
	if (finals == 0)
		assert(got.len == 0 && heard->end.outcome == EXCHANGE_FAILED);
	else if (!heard->is_tunnel)
		assert(body_is_whole(&head, got) == (heard->end.outcome != EXCHANGE_BROKEN) ||
			head.body == HTTP_BODY_CLOSE);
}

static void turn(struct fake *fake, struct origin *origin, uint64_t *now_us)
{
	static struct stream_event events[8]; // the driver's until the next turn
	origin_tick(origin, *now_us += 1000);
	int count = stream_poll(&fake->driver, events, 8, 0);
	for (int i = 0; i < count; i++) {
		if (events[i].kind == STREAM_CLOSED)
			fake_gone(events[i].stream);
		origin_event(origin, &events[i]);
	}
}

static struct origin *make_origin(struct fake *fake, const struct origin_table *table)
{
	struct origin_plan plan;
	origin_plan_init(&plan, 2, 1);
	plan.answer = (struct http_limits){1000, 2000, FIELDS_MAX};
	struct origin *origin = origin_create(&plan, &fake->driver, NULL, &calls);
	assert(origin);
	origin_set_table(origin, table);
	return origin;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct origin_table_server server = {.id = 1, .address = {.port = 80}};
	static const struct origin_table_origin one = {.id = 1, .server_count = 1};
	static const struct origin_table table = {1, 1, 1, &one, &server};
	static struct fake fake;
	if (len < 2 || len > 4000)
		return 0;
	fake_init(&fake);
	struct origin *origin = make_origin(&fake, &table);
	struct heard heard = {0};
	uint64_t now_us = 1;
	struct http_head head;
	const char *text = requests[data[0] % REQUESTS];
	struct span in = {text, strlen(text)};
	assert(http_request_parse(in, &limits, &head) == HTTP_OK);
	struct fake_stream *client = fake_accept(&fake);
	struct exchange_request request = {.client_driver = &fake.driver,
		.client = &client->stream,
		.user = &heard,
		.head = &head,
		.host = SPAN("a"),
		.ends_us = UINT64_MAX};
	uint16_t status;
	turn(&fake, origin, &now_us);
	struct exchange *x = exchange_begin(origin, &request, &status);
	assert(x);
	if (head.body != HTTP_BODY_NONE && !head.expect_continue)
		exchange_client_data(x, SPAN("123456789"));
	struct fake_stream *connection = &fake.streams[1];
	fake_peer_opens(&fake, connection);
	turn(&fake, origin, &now_us);
	size_t step = data[1] ? data[1] : len;
	for (size_t at = 2; at < len && connection->is_used; at += step) {
		size_t piece = len - at < step ? len - at : step;
		fake_peer_sends(&fake, connection, (struct span){(const char *)data + at, piece});
		turn(&fake, origin, &now_us);
	}
	fake_peer_ends(&fake, connection);
	turn(&fake, origin, &now_us);
	if (heard.is_tunnel && heard.ends == 0)
		exchange_client_eof(x);
	assert(heard.ends == 1);
	check_client((struct span){client->got.at, client->got.len}, head.method, &heard);
	assert(origin_exchange_count(origin) == 0);
	origin_destroy(origin);
	fake_fini(&fake);
	return 0;
}
