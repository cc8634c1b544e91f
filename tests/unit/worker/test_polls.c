// Stories of polls that are read by others that were alike (recall.h): they are answered byte for
// byte as those that are read by themselves, whatever has happened meanwhile.

#include "tests/unit/http/dice.h"
#include "tests/unit/worker/stage.h"

#include "dataplane/gate/place.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define TEXT_BYTES_MAX 512u
#define PEOPLE 12u
#define ROUNDS 3000u
#define HEAD "GET /.sluice/derby/status HTTP/1.1\r\nHost: localhost\r\n"

static struct stage stage;
static char tickets[PEOPLE][65];

static int begin(void **state)
{
	(void)state;
	stage_begin(&stage);
	for (unsigned i = 0; i < PEOPLE; i++) {
		struct fake_stream *visitor = stage_visitor(&stage);
		stage_says(&stage, visitor, "GET /derby/ HTTP/1.1\r\nHost: localhost\r\n\r\n");
		stage_cookie(visitor, "sluice-t-derby", tickets[i]);
		fake_peer_closes(&stage.fake, visitor, 0);
		stage_turn(&stage, PLACE_SLOT_MS);
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	stage_end(&stage);
	return 0;
}

static uint64_t recalled(void)
{
	return stage_counter(&stage, COUNTER_recalled);
}

static void poll(struct fake_stream *visitor, const char *cookie)
{
	char text[TEXT_BYTES_MAX];
	snprintf(text, sizeof(text), HEAD "Cookie: sluice-t-derby=%s\r\n\r\n", cookie);
	stage_forget(visitor);
	stage_says(&stage, visitor, text);
}

static void test_another_ticket_is_another_place(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	poll(visitor, tickets[0]);
	assert_int_equal(recalled(), 0);
	assert_int_equal(stage_heard(visitor, "\"ahead\":0,"), 1);
	poll(visitor, tickets[5]);
	assert_int_equal(recalled(), 1);
	assert_int_equal(stage_heard(visitor, "\"ahead\":5,"), 1);
	poll(stage_visitor(&stage), tickets[0]);
	assert_int_equal(recalled(), 2);
	assert_int_equal(stage_counter(&stage, COUNTER_tokens), 3);
	poll(visitor, tickets[5]); // remembered as well
	assert_int_equal(recalled(), 3);
	assert_int_equal(stage_counter(&stage, COUNTER_tokens), 3);
}

static void test_nothing_is_believed_for_being_alike(void **state)
{
	(void)state;
	char other[65];
	struct fake_stream *visitor = stage_visitor(&stage);
	poll(visitor, tickets[0]);
	memcpy(other, tickets[0], sizeof(other));
	other[40] = other[40] == 'A' ? 'B' : 'A';
	poll(visitor, other);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 401"), 1);
	poll(visitor, "");
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 401"), 1);
	assert_int_equal(recalled(), 2);
	memset(stage.snapshot->secrets.state, 0, sizeof(stage.snapshot->secrets.state)); // rotated
	poll(visitor, tickets[0]);
	assert_int_equal(recalled(), 3);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 401"), 1);
}

static void test_a_reload_is_seen_at_once(void **state)
{
	(void)state;
	struct fake_stream *visitor = stage_visitor(&stage);
	poll(visitor, tickets[0]);
	poll(visitor, tickets[0]);
	assert_int_equal(recalled(), 1);
	stage.snapshot->map.room_count = 1; // derby is the second
	stage.snapshot->version++;
	poll(visitor, tickets[0]);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 404"), 1);
	assert_int_equal(recalled(), 1);
	stage.snapshot->map.room_count = 2;
	stage.snapshot->version++;
	poll(visitor, tickets[0]);
	assert_int_equal(stage_heard(visitor, "HTTP/1.1 200"), 1);
	assert_int_equal(recalled(), 1);
}

// What may come to pass between two polls.
static void something_happens(void)
{
	static uint64_t threshold;
	switch (dice(8)) {
	case 0:
		stage.snapshot->version++;
		break;
	case 1:
		stage_turn(&stage, dice(5000));
		break;
	case 2:
		stage.control_is_late = !stage.control_is_late;
		stage_turn(&stage, dice(2) * (SNAPSHOT_HOLD_US / 1000 + 1));
		break;
	case 3:
		threshold += dice(3) * PLACE_SLOT_MS;
		atomic_store(&stage.derby->floor, threshold);
		break;
	case 4:
		stage.snapshot->map.rooms[1].message_json =
			dice(2) ? SPAN("\"soon\"") : (struct span){0};
		stage.snapshot->version++;
		break;
	default:
		break;
	}
}

// The same poll twice in one turn: as ever, and with a field that no poll before has had.
static void assert_answers_are_equal(
	struct fake_stream *one, struct fake_stream *other, const char *cookies)
{
	char text[TEXT_BYTES_MAX];
	static unsigned number;
	stage_forget(one);
	stage_forget(other);
	snprintf(text, sizeof(text), HEAD "Cookie: %s\r\n\r\n", cookies);
	fake_peer_sends(&stage.fake, one, (struct span){text, strlen(text)});
	snprintf(text, sizeof(text), HEAD "A: %u\r\nCookie: %s\r\n\r\n", number++, cookies);
	stage_says(&stage, other, text);
	assert_true(one->got.len > 0);
	assert_int_equal(one->got.len, other->got.len);
	assert_memory_equal(one->got.at, other->got.at, one->got.len);
}

static void test_answers_are_the_same(void **state)
{
	(void)state;
	dice_begin();
	struct fake_stream *one = stage_visitor(&stage), *other = stage_visitor(&stage);
	for (unsigned round = 0; round < ROUNDS; round++) {
		char cookies[TEXT_BYTES_MAX];
		something_happens();
		snprintf(cookies, sizeof(cookies), "%ssluice-t-derby=%.*s%s",
			dice(4) ? "" : "sluice-t-cup=x; ", dice(16) ? 64 : (int)dice(64),
			tickets[dice(PEOPLE)], dice(4) ? "" : "; sluice-p-derby=y");
		assert_answers_are_equal(one, other, cookies);
	}
	assert_in_range(recalled(), ROUNDS / 4, ROUNDS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_another_ticket_is_another_place, begin, end),
		cmocka_unit_test_setup_teardown(
			test_nothing_is_believed_for_being_alike, begin, end),
		cmocka_unit_test_setup_teardown(test_a_reload_is_seen_at_once, begin, end),
		cmocka_unit_test_setup_teardown(test_answers_are_the_same, begin, end),
	};
	return stage_open() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
