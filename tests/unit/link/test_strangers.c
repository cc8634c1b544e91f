// The link against servers that are none: what they say instead of a greeting, and instead of news.

#include "tests/unit/link/owner.h"
#include "tests/unit/link/redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// Whatever else may listen where Redis should.
static void test_others(void **state)
{
	(void)state;
	enum { reply_bytes_max = 256 << 10 }; // a slow machine reads it within the time of a try
	static const struct {
		const char *text;
		size_t bytes;
		const char *error;
	} table[] = {
		{"HTTP/1.1 400 Bad Request\r\n\r\n", 0, "Protocol error"},
		{"+OK hello\r\n", 0, "has an unknown role"},
		{"-ERR max number of clients reached\r\n", 0, "max number of clients reached"},
		{"", 0, "no greeting in time"},
		{"$99999999\r\n", reply_bytes_max + (64 << 10), "too long"},
		{"$99999999\r\n", reply_bytes_max - (64 << 10), "no greeting in time"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		pid_t other = redis_pretend("other", table[i].text, table[i].bytes);
		struct config_store store = owner_socket("other");
		struct owner owner;
		owner_init_bounded(&owner, &store, reply_bytes_max);
		owner_wait_error(&owner, table[i].error);
		assert_int_equal(owner.ready, 0);
		owner_fini(&owner);
		redis_stop(other);
	}
}

// What a server says of itself, as it should be, in `text`; and `more`.
static void greet(char text[1024], const char *more)
{
	static const char info[] = "run_id:0123456789012345678901234567890123456789\r\n"
				   "master_replid:0123456789012345678901234567890123456789\r\n"
				   "role:master\r\nloading:0\r\nredis_version:7.0.15\r\n"
				   "connected_slaves:0\r\nmaster_repl_offset:0\r\n";
	snprintf(text, 1024,
		"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n$%zu\r\n%s\r\n*0\r\n"
		"$40\r\n0123456789012345678901234567890123456789\r\n%s",
		sizeof(info) - 1, info, more);
}

// A greeting, and one reply more.
static void test_unasked(void **state)
{
	(void)state;
	char text[1024];
	greet(text, "+unasked\r\n");
	pid_t other = redis_pretend("unasked", text, 0);
	struct config_store store = owner_socket("unasked");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait(&owner, &owner.lost, 1);
	assert_int_equal(owner.ready, 1);
	assert_non_null(strstr(owner.reason, "nobody asked for"));
	owner_fini(&owner);
	redis_stop(other);
}

#define CHANNEL "$13\r\n" OWNER_CHANNEL "\r\n"
#define CONFIRMED "*3\r\n$9\r\nsubscribe\r\n" CHANNEL ":1\r\n"
#define DEEP "*1\r\n*1\r\n*1\r\n"

// Whatever it is sent instead of news, it subscribes again, and batches do not care.
static void test_nonsense(void **state)
{
	(void)state;
	static const char *const table[] = {
		"*0\r\n",
		"*-1\r\n",
		"*1\r\n$7\r\nmessage\r\n",
		"*2\r\n$7\r\nmessage\r\n" CHANNEL,
		"*2\r\n:1\r\n:2\r\n",
		"*3\r\n:1\r\n:2\r\n:3\r\n",
		"*3\r\n$-1\r\n$-1\r\n$-1\r\n",
		"*3\r\n$7\r\nmessage\r\n:1\r\n$1\r\nx\r\n",
		"*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\nx\r\n",
		"*3\r\n$7\r\nmessage\r\n" CHANNEL "*1\r\n+x\r\n",
		"*3\r\n$11\r\nunsubscribe\r\n" CHANNEL "$1\r\nx\r\n",
		"*3\r\n$11\r\nunsubscribe\r\n" CHANNEL ":0\r\n",
		"*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n" CHANNEL "$1\r\nx\r\n",
		"+PONG\r\n",
		"-ERR it is over\r\n",
		":7\r\n",
		"$-1\r\n",
		"$5\r\nhello\r\n",
		"*1025\r\n",
		"*2147483647\r\n",
		"*2147483648\r\n",
		"*x\r\n",
		"$x\r\n",
		"!\r\n",
		DEEP DEEP DEEP,
	};
	char greeting[1024], text[256];
	greet(greeting, "");
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", CONFIRMED, table[i]);
		pid_t other = redis_pretend_news("nonsense", greeting, text);
		struct config_store store = owner_socket("nonsense");
		struct owner owner;
		owner_init(&owner, &store, NULL, 0);
		owner_wait(&owner, &owner.subscribed, 1);
		for (int ms = 0; ms < 400 && link_status(owner.link)->news_lost_total == 0; ms += 5)
			owner_run(&owner, 5);
		if (link_status(owner.link)->news_lost_total == 0 || owner.told > 0)
			fail_msg("%zu: heard", i);
		assert_int_equal(owner.lost, 0);
		owner_fini(&owner);
		redis_stop(other);
	}
}

static int remove_folder(void **state)
{
	(void)state;
	redis_folder_remove();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_others),
		cmocka_unit_test(test_unasked),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, remove_folder);
}
