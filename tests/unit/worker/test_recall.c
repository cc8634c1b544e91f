// Polls by models, against reading each of them: whichever way it went, the same was found.

#include "dataplane/recall.h"
#include "tests/unit/gate/guard.h"
#include "tests/unit/gate/town.h"
#include "tests/unit/http/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT_BYTES_MAX 2048u
#define SCRATCH_BYTES GATE_REQUEST_SCRATCH_BYTES(TEXT_BYTES_MAX)
#define ROUNDS 100000u
#define SHAPES 64u // of polls, in the time of one map
#define POLL "GET /.sluice/derby/status HTTP/1.1\r\nHost: shop.example\r\n"

static const struct http_limits limits = {.line_bytes = 200, .head_bytes = 1500, .fields = 20};

// What one way of reading found.
struct found {
	struct http_head head;
	struct gate_request request;
	char *scratch;
};

static struct recall *recall;
static struct gate_room other_rooms[TOWN_ROOMS - 1];
static struct gate_map maps[2]; // of even versions, and of odd ones: without the last room
static struct found by_model, by_itself;
static unsigned recalled;

static int begin(void **state)
{
	(void)state;
	recall = recall_create();
	assert_non_null(recall);
	memcpy(other_rooms, town_rooms, sizeof(other_rooms));
	maps[0] = maps[1] = town;
	maps[1].rooms = other_rooms;
	maps[1].room_count = TOWN_ROOMS - 1;
	by_model.scratch = malloc(SCRATCH_BYTES);
	by_itself.scratch = malloc(SCRATCH_BYTES);
	recalled = 0;
	return 0;
}

static int end(void **state)
{
	(void)state;
	recall_destroy(recall);
	free(by_model.scratch);
	free(by_itself.scratch);
	return 0;
}

// Spans into the scratch, of which only the bytes can be the same.
static void assert_same_and_clear(struct span *a, struct span *b)
{
	assert_true(span_is_equal(*a, *b));
	assert_true(!a->at == !b->at);
	*a = *b = (struct span){0};
}

static void assert_same(struct found *a, struct found *b)
{
	assert_memory_equal(&a->head, &b->head,
		offsetof(struct http_head, fields) +
			a->head.field_count * sizeof(a->head.fields[0]));
	assert_same_and_clear(&a->request.host, &b->request.host);
	assert_same_and_clear(&a->request.redirect, &b->request.redirect);
	assert_memory_equal(&a->request, &b->request, offsetof(struct gate_request, tokens));
	for (uint32_t i = 0; i < a->request.token_count; i++) {
		const struct gate_token *one = &a->request.tokens[i], *two = &b->request.tokens[i];
		assert_ptr_equal(one->carried.text.at, two->carried.text.at);
		assert_int_equal(one->carried.text.len, two->carried.text.len);
		assert_int_equal(one->carried.carrier, two->carried.carrier);
		assert_int_equal(one->carried.kind, two->carried.kind);
		assert_int_equal(one->state, two->state);
	}
}

// Read some text as a worker does, and again without models. Returns whether it was recalled.
static bool read_text(struct span text, uint64_t version)
{
	static char *guard;
	struct recall_trace trace;
	if (!guard)
		guard = guard_make();
	struct span in = {guard_put(guard, text.at, text.len), text.len};
	memset(&by_model.request, 0xee, sizeof(by_model.request));
	memset(&by_model.head, 0xee, sizeof(by_model.head));
	bool was_recalled = recall_read(recall, version, in, &limits, &trace, &by_model.head,
		by_model.scratch, &by_model.request);
	uint32_t scanned = 0;
	enum http_result result = http_request_read(in, &limits, &scanned, &by_itself.head);
	assert_true(result == HTTP_OK || !was_recalled);
	if (result != HTTP_OK)
		return false;
	gate_request_read(
		&maps[version % 2], &by_itself.head, by_itself.scratch, &by_itself.request);
	if (was_recalled)
		assert_same(&by_model, &by_itself);
	else
		recall_keep(recall, &trace, &by_itself.head, &by_itself.request);
	recalled += was_recalled;
	return was_recalled;
}

static bool says(const char *text)
{
	return read_text((struct span){text, strlen(text)}, 0);
}

// One of the choices: always the same one for a shape and place.
static char *add(
	char *at, uint32_t shape, uint32_t place, const char *const *choices, unsigned count)
{
	uint32_t mix = (shape * 8 + place) * UINT32_C(2654435761);
	return stpcpy(at, choices[(mix >> 16) % count]);
}

static char *add_cookies(char *at)
{
	static const char *const cookies[] = {"sluice-t-derby=one", "sluice-t-xy=two", "a=b",
		"sluice-p-derby=three", "_ga=GA1.1.1111111111", " ", "\r", "\n", "\x80", "=", ";",
		"\""};
	unsigned count = 1 + dice(4), kinds = dice(8) ? 5 : LENGTH(cookies);
	for (unsigned i = 0; i < count; i++)
		at = stpcpy(stpcpy(at, cookies[dice(kinds)]), i + 1 < count ? "; " : "");
	return at;
}

// A poll, or nearly one, of that shape, with any cookies.
static size_t write_poll(char *text, uint32_t shape)
{
	static const char *const lines[] = {"GET /.sluice/derby/status HTTP/1.1\r\n",
		"GET /.sluice/xy/status HTTP/1.1\r\n", "GET /.sluice/xy/status HTTP/1.0\r\n",
		"GET /.sluice/derby/status?sluice_ticket=a&b HTTP/1.1\r\n",
		"GET /.sluice/derby/draw HTTP/1.1\r\n", "POST /.sluice/xy/status HTTP/1.1\r\n"};
	static const char *const hosts[] = {"Host: shop.example\r\n", "Host: SHOP.example:80\r\n",
		"Host: 127.0.0.1\r\n", "Host: nobody.example\r\n", ""};
	static const char *const fields[] = {"", "", "Connection: close\r\n",
		"Connection: a, Keep-Alive\r\n", "Sluice-Pass: p\r\n", "Content-Length: 3\r\n",
		"Content-Length: 0\r\n", "Accept: application/json\r\n"};
	static const char *const browsers[] = {
		"User-Agent: a/1\r\n", "User-Agent: a/2\r\n", "User-Agent: b\r\n"};
	char *at = add(text, shape, 0, lines, LENGTH(lines));
	bool is_host_first = shape % 2;
	if (is_host_first)
		at = add(at, shape, 1, hosts, LENGTH(hosts));
	at = add(at, shape, 2, fields, LENGTH(fields));
	at = add(at, shape, 4, browsers, LENGTH(browsers));
	if (shape % 4 > 0)
		at = stpcpy(add_cookies(stpcpy(at, "Cookie: ")), "\r\n");
	at = add(at, shape, 3, fields, LENGTH(fields));
	if (!is_host_first)
		at = add(at, shape, 1, hosts, LENGTH(hosts));
	return (size_t)(stpcpy(at, "\r\n") - text);
}

static void test_whichever_way_it_goes(void **state)
{
	(void)state;
	char text[TEXT_BYTES_MAX];
	uint64_t version = 0;
	dice_begin();
	for (unsigned round = 0; round < ROUNDS; round++) {
		size_t len = write_poll(text, (uint32_t)version * SHAPES + dice(SHAPES));
		if (dice(8) == 0)
			text[dice((uint32_t)len)] = (char)dice(256);
		version += dice(3000) == 0; // another map
		read_text((struct span){text, len}, version);
	}
	printf("%u of %u recalled\n", recalled, ROUNDS);
	assert_in_range(recalled, ROUNDS / 10, ROUNDS);
}

static void test_what_is_recalled(void **state)
{
	(void)state;
	assert_false(says(POLL "Cookie: a=b\r\n\r\n"));
	assert_true(says(POLL "Cookie: sluice-t-derby=c\r\n\r\n"));
	assert_int_equal(by_model.request.token_count, 1);
	assert_false(says(POLL "Cookie: a=b\r\nConnection: close\r\n\r\n"));
	assert_false(says(POLL "Cookie: a=b\r\n\r\nGET")); // pipelined
	assert_true(says(POLL "Cookie: a=b\r\n\r\n"));
}

// One of RECALL_EVERY polls of no model becomes one.
static void test_some_become_models(void **state)
{
	(void)state;
	char text[TEXT_BYTES_MAX];
	unsigned models = 0;
	for (unsigned i = 0; i < 10 * RECALL_EVERY; i++) {
		snprintf(text, sizeof(text), POLL "User-Agent: browser/%u\r\n\r\n", i);
		assert_false(says(text));
	}
	for (unsigned i = 0; i < 10 * RECALL_EVERY; i += RECALL_EVERY) {
		snprintf(text, sizeof(text), POLL "User-Agent: browser/%u\r\n\r\n", i);
		models += says(text);
	}
	assert_int_equal(models, 10);
}

static void test_no_other_requests_become_models(void **state)
{
	(void)state;
	const char *texts[] = {"GET /derby HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"POST /.sluice/derby/status HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"GET /.sluice/derby/draw HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		"GET /.sluice/health HTTP/1.1\r\nHost: shop.example\r\n\r\n",
		POLL "Content-Length: 1\r\n\r\n", POLL "Transfer-Encoding: chunked\r\n\r\n"};
	for (unsigned i = 0; i < 2 * RECALL_EVERY; i++)
		for (size_t t = 0; t < LENGTH(texts); t++)
			assert_false(says(texts[t]));
}

// More browsers than there is room for: the latest are known.
static void test_the_latest_push_out_others(void **state)
{
	(void)state;
	char text[TEXT_BYTES_MAX];
	const unsigned many = 4 * RECALL_SETS * RECALL_WAYS;
	for (unsigned i = 0; i < many * RECALL_EVERY; i++) {
		snprintf(text, sizeof(text), POLL "User-Agent: browser/%u\r\n\r\n",
			i / RECALL_EVERY);
		says(text);
	}
	unsigned latest = 0, first = 0;
	for (unsigned i = 0; i < RECALL_SETS; i++) {
		snprintf(text, sizeof(text), POLL "User-Agent: browser/%u\r\n\r\n", many - 1 - i);
		latest += says(text);
		snprintf(text, sizeof(text), POLL "User-Agent: browser/%u\r\n\r\n", i);
		first += says(text);
	}
	assert_in_range(latest, RECALL_SETS * 3 / 4, RECALL_SETS);
	assert_in_range(first, 0, RECALL_SETS / 4);
}

static void test_another_map(void **state)
{
	(void)state;
	struct span text = SPAN(POLL "Cookie: a=b\r\n\r\n");
	assert_false(read_text(text, 4));
	assert_true(read_text(text, 4));
	assert_false(read_text(text, 5));
	assert_true(read_text(text, 5));
	assert_ptr_equal(by_model.request.room, &other_rooms[TOWN_DERBY]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_whichever_way_it_goes, begin, end),
		cmocka_unit_test_setup_teardown(test_what_is_recalled, begin, end),
		cmocka_unit_test_setup_teardown(test_some_become_models, begin, end),
		cmocka_unit_test_setup_teardown(test_no_other_requests_become_models, begin, end),
		cmocka_unit_test_setup_teardown(test_the_latest_push_out_others, begin, end),
		cmocka_unit_test_setup_teardown(test_another_map, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
