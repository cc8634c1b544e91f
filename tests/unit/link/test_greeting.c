// What servers say when they are met, byte by byte, read by hiredis and judged by us.

#include "controlplane/link/link_greeting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ID_A "0123456789abcdef0123456789abcdef01234567"
#define ID_B "89abcdef0123456789abcdef0123456789abcdef"
#define A10 "aaaaaaaaaa"
#define A50 A10 A10 A10 A10 A10
#define A250 A50 A50 A50 A50 A50

// The reply that `bytes` are.
static redisReply *must_read(const char *bytes)
{
	void *reply = NULL;
	redisReader *reader = redisReaderCreate();
	redisReaderFeed(reader, bytes, strlen(bytes));
	assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
	assert_non_null(reply);
	redisReaderFree(reader);
	return reply;
}

// A bulk string of `text`.
static const char *bulk(const char *text)
{
	static char bytes[2048];
	snprintf(bytes, sizeof(bytes), "$%zu\r\n%s\r\n", strlen(text), text);
	return bytes;
}

struct reply_case {
	const char *bytes, *error; // NULL: taken
};

static void check(
	bool (*take)(const redisReply *, char *), const struct reply_case *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char error[LINK_GREETING_TEXT_BYTES] = "";
		redisReply *reply = must_read(table[i].bytes);
		print_message("%s", table[i].bytes);
		assert_int_equal(take(reply, error), table[i].error == NULL);
		assert_string_equal(error, table[i].error ? table[i].error : "");
		freeReplyObject(reply);
	}
}

#define CHECK(take, table) check(take, table, sizeof(table) / sizeof(table[0]))

static void test_ok(void **state)
{
	(void)state;
	static const struct reply_case table[] = {
		{"+OK\r\n", NULL},
		{"$2\r\nOK\r\n", NULL},
		{"+OKAY\r\n", "is no Redis"},
		{"+PONG\r\n", "is no Redis"},
		{":1\r\n", "is no Redis"},
		{"$-1\r\n", "is no Redis"},
		{"*0\r\n", "is no Redis"},
		{"-WRONGPASS invalid username-password pair\r\n",
			"WRONGPASS invalid username-password pair"},
		{"-ERR \x1b[2J\x7f\r\n", "ERR ?[2J?"},
		{"-ERR unknown command 'AUTH', with args beginning with: 'u' 'secret' \r\n",
			"ERR unknown command 'AUTH'"},
		{"-" A250 "\r\n", A50 A50 A50 "aaaaaaaaa"},
		{"-\r\n", ""},
	};
	CHECK(link_greeting_take_ok, table);
}

static void test_role(void **state)
{
	(void)state;
	static const struct reply_case table[] = {
		{"*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n", NULL},
		{"*1\r\n$6\r\nmaster\r\n", NULL},
		{"*5\r\n$5\r\nslave\r\n$8\r\n10.0.0.1\r\n:6379\r\n$9\r\nconnected\r\n:1\r\n",
			"is a replica, of 10.0.0.1:6379"},
		{"*3\r\n$5\r\nslave\r\n$3\r\n\x1b[m\r\n:-5\r\n", "is a replica"},
		{"*1\r\n$5\r\nslave\r\n", "is a replica"},
		{"*3\r\n$5\r\nslave\r\n:1\r\n:1\r\n", "is a replica"},
		{"*3\r\n$5\r\nslave\r\n$1\r\na\r\n$1\r\nb\r\n", "is a replica"},
		{"*3\r\n$5\r\nslave\r\n$254\r\n" A250 "aaaa\r\n:1\r\n", "is a replica"},
		{"*2\r\n$8\r\nsentinel\r\n*0\r\n",
			"is a sentinel, not the server; allowed: sentinel://"},
		{"*1\r\n$7\r\nmasters\r\n", "has an unknown role"},
		{"*1\r\n:1\r\n", "has an unknown role"},
		{"*0\r\n", "has an unknown role"},
		{"*-1\r\n", "has an unknown role"},
		{"+master\r\n", "has an unknown role"},
		{"-NOPERM no\r\n", "NOPERM no"},
	};
	CHECK(link_greeting_take_role, table);
}

#define WHO "run_id:" ID_A "\r\nmaster_replid:" ID_B "\r\n"
#define GOOD "# Server\r\nredis_version:7.0.15\r\n" WHO "master_repl_offset:1234\r\n"

static void test_info(void **state)
{
	(void)state;
	static const char nobody[] = "does not tell who it is";
	static const struct {
		const char *text, *error;
		uint64_t offset;
		uint32_t replicas;
		const char *version;
	} table[] = {
		{GOOD, NULL, 1234, 0, "7.0.15"},
		{GOOD "connected_slaves:2\r\nloading:0\r\n", NULL, 1234, 2, "7.0.15"},
		{WHO "master_repl_offset:0", NULL, 0, 0, ""},
		{"run_id:" ID_A "\nmaster_replid:" ID_B "\nmaster_repl_offset:9\n", NULL, 9, 0, ""},
		{GOOD "connected_slaves:99999999999\r\n", NULL, 1234, UINT32_MAX, "7.0.15"},
		{GOOD "connected_slaves:-1\r\n", NULL, 1234, 0, "7.0.15"},
		{"redis_version:7.0.15-very-long-indeed\r\n" WHO "master_repl_offset:1\r\n", NULL,
			1, 0, "7.0.15"},
		{"redis_version:\x1b[2J\r\n" WHO "master_repl_offset:1\r\n", NULL, 1, 0, ""},
		{GOOD "loading:1\r\n", "is still loading", 0, 0, NULL},
		{WHO, nobody, 0, 0, NULL},
		{WHO "master_repl_offset:\r\n", nobody, 0, 0, NULL},
		{WHO "master_repl_offset:-1\r\n", nobody, 0, 0, NULL},
		{WHO "master_repl_offset:1234567890123456789\r\n", nobody, 0, 0, NULL},
		{WHO "xmaster_repl_offset:1\r\n", nobody, 0, 0, NULL},
		{WHO "master_repl_offset2:1\r\n", nobody, 0, 0, NULL},
		{"master_replid:" ID_B "\r\nmaster_repl_offset:1\r\n", nobody, 0, 0, NULL},
		{"run_id:" ID_A "0\r\nmaster_replid:" ID_B "\r\nmaster_repl_offset:1\r\n", nobody,
			0, 0, NULL},
		{"run_id:0123456789ABCDEF0123456789abcdef01234567\r\nmaster_replid:" ID_B
		 "\r\nmaster_repl_offset:1\r\n",
			nobody, 0, 0, NULL},
		{"run_id:\r\n", nobody, 0, 0, NULL},
		{"run_id", nobody, 0, 0, NULL},
		{"", nobody, 0, 0, NULL},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct link_server server;
		char error[LINK_GREETING_TEXT_BYTES] = "";
		redisReply *reply = must_read(bulk(table[i].text));
		print_message("%s\n", table[i].text);
		assert_int_equal(
			link_greeting_take_info(reply, &server, error), table[i].error == NULL);
		freeReplyObject(reply);
		assert_string_equal(error, table[i].error ? table[i].error : "");
		if (table[i].error)
			continue;
		assert_string_equal(server.run_id, ID_A);
		assert_string_equal(server.replication_id, ID_B);
		assert_string_equal(server.version, table[i].version);
		assert_int_equal(server.offset, table[i].offset);
		assert_int_equal(server.replicas, table[i].replicas);
	}
}

static bool take_info(const redisReply *reply, char *error)
{
	struct link_server server;
	return link_greeting_take_info(reply, &server, error);
}

static void test_info_of_another_kind(void **state)
{
	(void)state;
	static const struct reply_case table[] = {
		{"*0\r\n", "does not tell who it is"},
		{"$-1\r\n", "does not tell who it is"},
		{"-NOPERM no\r\n", "NOPERM no"},
	};
	CHECK(take_info, table);
}

#define POLICY(value) "$16\r\nmaxmemory-policy\r\n" value
#define NOEVICTION POLICY("$10\r\nnoeviction\r\n")
#define REPLICAS(n) "$21\r\nmin-replicas-to-write\r\n$1\r\n" n "\r\n"
#define APPEND(yes) "$10\r\nappendonly\r\n" yes
#define YES APPEND("$3\r\nyes\r\n")
#define FSYNC(how) "$11\r\nappendfsync\r\n" how
#define ALWAYS FSYNC("$6\r\nalways\r\n")

static void test_config(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		bool has_replicas;
		const char *words[4];
	} table[] = {
		{"*8\r\n" NOEVICTION REPLICAS("1") YES ALWAYS, true, {NULL}},
		{"*8\r\n" ALWAYS YES REPLICAS("9") NOEVICTION, true, {NULL}},
		{"*8\r\n" NOEVICTION REPLICAS("0") YES ALWAYS, true,
			{"min-replicas-to-write is 0"}},
		{"*8\r\n" NOEVICTION REPLICAS("0") YES ALWAYS, false, {NULL}},
		{"*8\r\n" POLICY("$11\r\nallkeys-lru\r\n") REPLICAS("0") YES ALWAYS, false,
			{"maxmemory-policy is allkeys-lru"}},
		{"*8\r\n" NOEVICTION REPLICAS("0") APPEND("$2\r\nno\r\n") ALWAYS, false,
			{"appendonly is no"}},
		{"*8\r\n" NOEVICTION REPLICAS("0") YES FSYNC("$8\r\neverysec\r\n"), false,
			{"appendfsync is everysec"}},
		{"*0\r\n", true,
			{"maxmemory-policy is ?", "min-replicas-to-write is ?", "appendonly is ?"}},
		{"*1\r\n$10\r\nappendonly\r\n", false,
			{"maxmemory-policy is ?", "appendonly is ?"}},
		{"*2\r\n$10\r\nappendonly\r\n*0\r\n", false,
			{"maxmemory-policy is ?", "appendonly is ?"}},
		{"-NOPERM no\r\n", true, {"CONFIG GET is refused"}},
		{"+OK\r\n", true, {"CONFIG GET is refused"}},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct link_warnings warnings = {.count = 99};
		redisReply *reply = must_read(table[i].bytes);
		link_greeting_take_config(reply, table[i].has_replicas, &warnings);
		freeReplyObject(reply);
		uint32_t count = 0;
		for (; table[i].words[count]; count++)
			assert_non_null(strstr(warnings.texts[count], table[i].words[count]));
		assert_int_equal(warnings.count, count);
	}
}

static bool take_script(const redisReply *reply, char *error)
{
	char name[LINK_GREETING_ID_BYTES];
	bool is_taken = link_greeting_take_script(reply, name, error);
	if (is_taken)
		assert_string_equal(name, ID_A);
	return is_taken;
}

static void test_script(void **state)
{
	(void)state;
	static const char wrong[] = "does not name the script that it was given";
	static const struct reply_case table[] = {
		{"$40\r\n" ID_A "\r\n", NULL},
		{"$41\r\n" ID_A "0\r\n", wrong},
		{"$39\r\n0123456789abcdef0123456789abcdef0123456\r\n", wrong},
		{"$40\r\n0123456789abcdef0123456789abcdef0123456g\r\n", wrong},
		{"$-1\r\n", wrong},
		{":5\r\n", wrong},
		{"-ERR Error compiling script\r\n", "ERR Error compiling script"},
	};
	CHECK(take_script, table);
}

static bool take_primary(const redisReply *reply, char *error)
{
	char host[LINK_GREETING_HOST_BYTES];
	uint16_t port;
	bool is_taken = link_greeting_take_primary(reply, host, &port, error);
	if (is_taken)
		assert_int_equal(port, 65535);
	return is_taken;
}

static void test_primary(void **state)
{
	(void)state;
	static const char wrong[] = "does not tell where the primary is";
	static const struct reply_case table[] = {
		{"*2\r\n$8\r\n10.0.0.1\r\n$5\r\n65535\r\n", NULL},
		{"*2\r\n$253\r\n" A250 "aaa\r\n$5\r\n65535\r\n", NULL},
		{"*2\r\n$254\r\n" A250 "aaaa\r\n$5\r\n65535\r\n", wrong},
		{"*2\r\n$8\r\n10.0.0.1\r\n$5\r\n65536\r\n", wrong},
		{"*2\r\n$8\r\n10.0.0.1\r\n$1\r\n0\r\n", wrong},
		{"*2\r\n$8\r\n10.0.0.1\r\n$2\r\n-1\r\n", wrong},
		{"*2\r\n$8\r\n10.0.0.1\r\n$6\r\n065535\r\n", wrong},
		{"*2\r\n$8\r\n10.0.0.1\r\n$0\r\n\r\n", wrong},
		{"*2\r\n$8\r\n10.0.0.1\r\n:6379\r\n", wrong},
		{"*2\r\n$0\r\n\r\n$4\r\n6379\r\n", wrong},
		{"*1\r\n$8\r\n10.0.0.1\r\n", wrong},
		{"$2\r\nOK\r\n", wrong},
		{"*-1\r\n", "knows no primary of that name"},
		{"-ERR unknown command 'SENTINEL'\r\n", "ERR unknown command 'SENTINEL'"},
	};
	CHECK(take_primary, table);
}

// A text with a zero in it is no host.
static void test_zeroes(void **state)
{
	(void)state;
	char host[LINK_GREETING_HOST_BYTES], error[LINK_GREETING_TEXT_BYTES];
	uint16_t port;
	redisReply name = {.type = REDIS_REPLY_STRING, .str = (char[]){"a\0b"}, .len = 3};
	redisReply number = {.type = REDIS_REPLY_STRING, .str = (char[]){"1"}, .len = 1};
	redisReply reply = {.type = REDIS_REPLY_ARRAY,
		.elements = 2,
		.element = (redisReply *[]){&name, &number}};
	assert_false(link_greeting_take_primary(&reply, host, &port, error));
	name.len = 1;
	assert_true(link_greeting_take_primary(&reply, host, &port, error));
}

static void test_errors_of_a_batch(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		bool is_demoted, is_forgotten;
	} table[] = {
		{"-READONLY You can't write against a read only replica.\r\n", true, false},
		{"-MASTERDOWN Link with MASTER is down\r\n", true, false},
		{"-LOADING Redis is loading the dataset in memory\r\n", true, false},
		{"-NOSCRIPT No matching script.\r\n", false, true},
		{"-NOREPLICAS Not enough good replicas to write.\r\n", false, false},
		{"-OOM command not allowed\r\n", false, false},
		{"-READONLY\r\n", false, false},
		{"-READONLYX a\r\n", false, false},
		{"-\r\n", false, false},
		{"+READONLY a\r\n", false, false},
		{"$10\r\nNOSCRIPT a\r\n", false, false},
		{":1\r\n", false, false},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		redisReply *reply = must_read(table[i].bytes);
		assert_int_equal(link_greeting_is_demoted(reply), table[i].is_demoted);
		assert_int_equal(link_greeting_is_forgotten(reply), table[i].is_forgotten);
		freeReplyObject(reply);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ok),
		cmocka_unit_test(test_role),
		cmocka_unit_test(test_info),
		cmocka_unit_test(test_info_of_another_kind),
		cmocka_unit_test(test_config),
		cmocka_unit_test(test_script),
		cmocka_unit_test(test_primary),
		cmocka_unit_test(test_zeroes),
		cmocka_unit_test(test_errors_of_a_batch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
