// The link against real servers: what an operator does to them, and what the kernel does.

#include "tests/unit/link/owner.h"
#include "tests/unit/link/redis.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_batches_and_news(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait(&owner, &owner.ready, 1);
	owner_wait(&owner, &owner.subscribed, 1);
	const struct link_status *status = link_status(owner.link);
	assert_int_equal(owner.others, 1);
	assert_int_equal(strlen(status->server.run_id), 40);
	assert_int_equal(strlen(status->server.replication_id), 40);
	assert_string_equal(status->server.run_id,
		redis_ask("a", "EVAL %s 0",
			"return string.match(redis.call('INFO'), 'run_id:(%x+)')"));
	assert_true(status->has_news);
	assert_int_equal(status->server.version[0], '7');

	owner_batch(&owner, "key", "first");
	assert_string_equal(owner.reply, "first");
	owner_wait(&owner, &owner.told, 1);
	assert_string_equal(owner.news, "first");
	assert_string_equal(redis_ask("a", "GET key"), "first");
	assert_true(link_status(owner.link)->round_us > 0);

	// Bytes of any kind, and none.
	const char *words[] = {"key", "\0\r\n\xff"};
	assert_int_equal(link_send(owner.link, 1, 2, words, (size_t[]){3, 4}), 0);
	owner_wait(&owner, &owner.replied, 2);
	assert_int_equal(owner.reply_bytes, 4);
	assert_memory_equal(owner.reply, words[1], 4);
	owner_batch(&owner, "key", "");
	assert_int_equal(owner.reply_bytes, 0);

	// The script's error is its own affair.
	owner_batch(&owner, "key", "wrong");
	assert_int_equal(owner.reply_type, REDIS_REPLY_ERROR);
	assert_memory_equal(owner.reply, "WRONG batch", 11);
	assert_int_equal(owner.lost, 0);
	assert_int_equal(link_status(owner.link)->batches_total, 4);
	owner_fini(&owner);
	redis_stop(redis);
}

static void test_bounds(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait(&owner, &owner.ready, 1);
	assert_int_equal(owner_send(&owner, "key", "one"), 0);
	assert_int_equal(owner_send(&owner, "key", "two"), -EAGAIN);
	owner_wait(&owner, &owner.replied, 1);
	static char large[LINK_BATCH_BYTES_MAX + 1];
	memset(large, 'x', sizeof(large) - 1);
	assert_int_equal(owner_send(&owner, "key", large), -E2BIG);
	large[sizeof(large) - 300] = '\0'; // room for EVALSHA, name and heads
	owner_batch(&owner, "key", large);
	assert_int_equal(owner.reply_bytes, strlen(large));
	owner_fini(&owner);
	redis_stop(redis);
}

static void test_script_flush(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait(&owner, &owner.ready, 1);
	for (uint32_t i = 1; i <= 3; i++) {
		redis_tell("a", "SCRIPT FLUSH");
		owner_batch(&owner, "key", "again");
		assert_string_equal(owner.reply, "again");
		assert_int_equal(link_status(owner.link)->reloads_total, i);
	}
	assert_int_equal(owner.replied, 3);
	assert_int_equal(owner.lost, 0);
	owner_fini(&owner);
	redis_stop(redis);
}

// Killed with a batch in flight, away for a while, and back with an empty memory.
static void test_kill(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait(&owner, &owner.subscribed, 1);
	redis_signal(redis, SIGSTOP);
	assert_int_equal(owner_send(&owner, "key", "last"), 0);
	owner_run(&owner, 20);
	redis_stop(redis);
	assert_true(owner_wait(&owner, &owner.lost, 1) < 500);
	assert_int_equal(owner.replied, 0);
	assert_false(link_status(owner.link)->has_batch);
	assert_int_equal(owner_send(&owner, "key", "too late"), -EAGAIN);
	uint64_t tries = link_status(owner.link)->tries_total;
	owner_run(&owner, 1100);
	assert_true(link_status(owner.link)->tries_total - tries >= 2); // every 500 ms
	redis = redis_start("a", 0, NULL);
	assert_true(owner_wait(&owner, &owner.ready, 2) < 1000);
	assert_int_equal(owner.others, 2);
	owner_batch(&owner, "key", "anew");
	owner_wait(&owner, &owner.subscribed, 2);
	owner_fini(&owner);
	redis_stop(redis);
}

// Stopped, and going on: nobody closes anything but we.
static void test_stop(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 200);
	owner_wait(&owner, &owner.ready, 1);
	redis_signal(redis, SIGSTOP);
	assert_int_equal(owner_send(&owner, "key", "lost?"), 0);
	uint32_t ms = owner_wait(&owner, &owner.lost, 1);
	assert_in_range(ms, 150, 600);
	assert_non_null(strstr(owner.reason, "no reply to a batch in time"));
	owner_wait_error(&owner, "no greeting in time");
	redis_signal(redis, SIGCONT);
	assert_true(owner_wait(&owner, &owner.ready, 2) < 1000);
	assert_int_equal(owner.others, 1); // it is the same
	assert_int_equal(owner.replied, 0); // what it says of the lost one is not heard
	owner_batch(&owner, "key", "found");
	owner_fini(&owner);
	redis_stop(redis);
}

// News stop first: no batch is on its way.
static void test_news(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 200);
	owner_wait(&owner, &owner.subscribed, 1);
	redis_tell("a", "CLIENT KILL TYPE pubsub");
	owner_wait(&owner, &owner.subscribed, 2);
	redis_tell("a", "PUBLISH " OWNER_CHANNEL " hello");
	owner_wait(&owner, &owner.told, 1);
	assert_string_equal(owner.news, "hello");
	redis_tell("a", "PUBLISH other hello");

	// Redis closes on who does not read.
	redis_tell("a", "CONFIG SET client-output-buffer-limit %s", "pubsub 64kb 0 0");
	static char large[1 << 20];
	memset(large, 'x', sizeof(large) - 1);
	for (int i = 0; i < 4; i++)
		redis_tell("a", "PUBLISH " OWNER_CHANNEL " %s", large);
	owner_wait(&owner, &owner.subscribed, 3);
	assert_int_equal(link_status(owner.link)->news_lost_total, 2);

	redis_signal(redis, SIGSTOP);
	owner_run(&owner, 900); // a look, and no reply
	assert_false(link_status(owner.link)->has_news);
	assert_int_equal(owner.lost, 0); // it was asked nothing
	redis_signal(redis, SIGCONT);
	owner_wait(&owner, &owner.subscribed, 4);
	assert_int_equal(link_status(owner.link)->news_lost_total, 3);
	owner_fini(&owner);
	redis_stop(redis);
}

static void test_passwords(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	redis_tell("a", "ACL SETUSER sluice on >right ~* &* +@all -config -select");
	redis_tell("a", "ACL SETUSER default off");
	static const struct {
		const char *user, *password, *error;
	} table[] = {
		{NULL, NULL, "NOAUTH"},
		{"sluice", "wrong", "WRONGPASS"},
		{NULL, "right", "ERR AUTH"},
		{"sluice", "right", NULL},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct config_store store = owner_socket("a");
		store.user = table[i].user;
		struct owner owner;
		owner_init(&owner, &store, table[i].password, 0);
		if (table[i].error) {
			owner_wait_error(&owner, table[i].error);
			assert_int_equal(owner.ready, 0);
		} else {
			owner_wait(&owner, &owner.subscribed, 1);
			owner_batch(&owner, "key", "in");
			const struct link_warnings *warnings = &link_status(owner.link)->warnings;
			assert_int_equal(warnings->count, 1);
			assert_non_null(strstr(warnings->texts[0], "CONFIG GET is refused"));
		}
		owner_fini(&owner);
	}
	char password[LINK_PASSWORD_BYTES_MAX + 2];
	memset(password, 'x', sizeof(password) - 1);
	password[sizeof(password) - 1] = '\0';
	struct link *link;
	struct config_store store = owner_socket("a");
	struct link_options options = {.store = &store, .password = password};
	assert_int_equal(link_create(NULL, &options, NULL, NULL, &link), -EINVAL);
	redis_stop(redis);
}

// A replica is refused; a primary that becomes one is left with the next batch.
static void test_replica(void **state)
{
	(void)state;
	uint16_t port = redis_port();
	char port_text[8];
	snprintf(port_text, sizeof(port_text), "%u", port);
	pid_t primary = redis_start("a", port, NULL);
	pid_t replica = redis_start("b", 0, "--replicaof", "127.0.0.1", port_text, NULL);
	struct config_store store = owner_socket("b");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	char expected[64];
	snprintf(expected, sizeof(expected), "is a replica, of 127.0.0.1:%u", port);
	owner_wait_error(&owner, expected);
	assert_int_equal(owner.ready, 0);
	redis_tell("b", "REPLICAOF NO ONE");
	owner_wait(&owner, &owner.ready, 1);
	redis_tell("b", "REPLICAOF 127.0.0.1 %u", port);
	if (owner.lost == 0 && owner_send(&owner, "key", "refused") == 0)
		owner_wait(&owner, &owner.lost, 1);
	owner_wait_error(&owner, "is a replica");
	assert_int_equal(owner.replied, 0);
	owner_fini(&owner);
	redis_stop(replica);
	redis_stop(primary);
}

static void test_names_and_db(void **state)
{
	(void)state;
	uint16_t port = redis_port();
	pid_t redis = redis_start("a", port, NULL);
	struct config_server server;
	static const char *const hosts[] = {"localhost", "127.0.0.1"};
	for (size_t i = 0; i < 2; i++) {
		struct config_store store = owner_server(&server, hosts[i], port);
		store.db = 3;
		struct owner owner;
		owner_init(&owner, &store, NULL, 0);
		owner_wait(&owner, &owner.ready, 1);
		owner_batch(&owner, "third", hosts[i]);
		assert_string_equal(
			redis_ask("a", "EVAL %s 0",
				"redis.call('SELECT', 3) return redis.call('GET', 'third')"),
			hosts[i]);
		owner_fini(&owner);
	}
	struct config_store store = owner_server(&server, "none.invalid", port);
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait_error(&owner, "none.invalid");
	assert_int_equal(owner.ready, 0);
	owner_fini(&owner); // with a request under way, perhaps
	store = owner_server(&server, "127.0.0.1", redis_port());
	owner_init(&owner, &store, NULL, 0);
	owner_wait_error(&owner, "refused");
	owner_fini(&owner);
	redis_stop(redis);
}

static void test_drop(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	link_drop(owner.link, "not yet");
	owner_wait(&owner, &owner.ready, 1);
	link_drop(owner.link, "not believed");
	assert_int_equal(owner.lost, 0);
	owner_wait(&owner, &owner.lost, 1);
	assert_non_null(strstr(owner.reason, "not believed"));
	assert_true(owner_wait(&owner, &owner.ready, 2) < 500);
	owner_fini(&owner);
	redis_stop(redis);
}

// Who can be greeted, and is not believed, is not asked all the time.
static void test_drops_in_a_row(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	uint32_t ms = 0;
	owner_init(&owner, &store, NULL, 0);
	for (uint32_t i = 1; i <= 7; i++) {
		ms = owner_wait(&owner, &owner.ready, i);
		link_drop(owner.link, "not believed");
		link_drop(owner.link, "said twice, counted once");
	}
	assert_in_range(ms, 370, 600);
	owner_wait(&owner, &owner.ready, 8);
	owner_batch(&owner, "sluice:t:1", "good"); // and from then on it is
	link_drop(owner.link, "once");
	assert_true(owner_wait(&owner, &owner.ready, 9) < 200);
	owner_fini(&owner);
	redis_stop(redis);
}

static void test_warnings(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, "--maxmemory-policy", "allkeys-lru", NULL);
	struct config_store store = owner_socket("a");
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait(&owner, &owner.ready, 1);
	const struct link_warnings *warnings = &link_status(owner.link)->warnings;
	assert_int_equal(warnings->count, 2);
	assert_non_null(strstr(warnings->texts[0], "maxmemory-policy is allkeys-lru"));
	assert_non_null(strstr(warnings->texts[1], "appendonly is no"));
	owner_fini(&owner);
	redis_stop(redis);
}

// The primary is killed, its replica promoted, and the old one comes back as a replica.
static void test_failover(void **state)
{
	(void)state;
	uint16_t ports[3] = {redis_port(), redis_port(), redis_port()};
	char port_text[8], text[512], conf[REDIS_PATH_BYTES];
	snprintf(port_text, sizeof(port_text), "%u", ports[0]);
	pid_t a = redis_start("a", ports[0], "--repl-ping-replica-period", "1", NULL);
	pid_t b = redis_start("b", ports[1], "--replicaof", "127.0.0.1", port_text, NULL);
	snprintf(text, sizeof(text),
		"port %u\nbind 127.0.0.1\nsentinel monitor club 127.0.0.1 %u 1\n"
		"sentinel down-after-milliseconds club 300\nsentinel failover-timeout club 3000\n",
		ports[2], ports[0]);
	redis_write("sentinel.conf", text, 0600);
	pid_t sentinel = redis_run("sentinel.log",
		(const char *[]){"redis-sentinel", redis_path("sentinel.conf", conf), NULL});

	struct config_server servers[] = {
		{.host = "127.0.0.1", .port = redis_port()}, // nobody
		{.host = "127.0.0.1", .port = ports[2]},
	};
	struct config_store store = {
		.kind = CONFIG_STORE_SENTINEL, .servers = {2, servers}, .name = "club"};
	struct owner owner;
	owner_init(&owner, &store, NULL, 300);
	owner_wait(&owner, &owner.ready, 1);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ports[0]);
	assert_string_equal(link_status(owner.link)->primary, text);
	owner_batch(&owner, "key", "before");
	assert_non_null(strstr(link_status(owner.link)->warnings.texts[0], "min-replicas"));

	for (int i = 0; i < 300 && strcmp(redis_ask("b", "GET key"), "before") != 0; i++)
		owner_run(&owner, 20);
	// Until the sentinel knows of the replica, it has none to promote.
	for (int i = 0; i < 300; i++) {
		redisContext *redis = redisConnect("127.0.0.1", ports[2]);
		redisReply *reply = redisCommand(redis, "SENTINEL REPLICAS club");
		bool is_known = reply && reply->elements == 1;
		freeReplyObject(reply);
		redisFree(redis);
		if (is_known)
			break;
		owner_run(&owner, 20);
	}
	redis_stop(a);
	uint32_t ms = owner_wait(&owner, &owner.ready, 2);
	print_message("fail-over seen after %u ms\n", ms);
	snprintf(text, sizeof(text), "127.0.0.1:%u", ports[1]);
	assert_string_equal(link_status(owner.link)->primary, text);
	assert_int_equal(owner.others, 2);
	assert_string_equal(redis_ask("b", "GET key"), "before");
	owner_batch(&owner, "key", "after");
	owner_fini(&owner);

	store.name = "nobody";
	owner_init(&owner, &store, NULL, 300);
	owner_wait_error(&owner, "knows no primary of that name");
	owner_fini(&owner);
	redis_stop(sentinel);
	redis_stop(b);
}

// The user of the manual: what it may do is enough.
static void test_user_of_the_manual(void **state)
{
	(void)state;
	pid_t redis = redis_start("a", 0, NULL);
	redis_tell("a", "ACL SETUSER sluice on >secret ~sluice:* &sluice:* +@all -@admin "
			"-@dangerous +role +info +config|get");
	struct config_store store = owner_socket("a");
	store.user = "sluice";
	struct owner owner;
	owner_init(&owner, &store, "secret", 0);
	owner_wait(&owner, &owner.subscribed, 1);
	owner_batch(&owner, "sluice:t:key", "in");
	assert_string_equal(owner.reply, "in");
	owner_wait(&owner, &owner.told, 1);
	assert_int_equal(link_status(owner.link)->warnings.count, 1); // appendonly
	owner_batch(&owner, "other:key", "out");
	assert_int_equal(owner.reply_type, REDIS_REPLY_ERROR);
	owner_fini(&owner);
	redis_stop(redis);
}

#define STUNNEL "foreground = yes\npid =\n[redis]\n"
#define CERTIFICATE \
	"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 " \
	"-subj /CN=redis.example -addext subjectAltName=DNS:redis.example " \
	"-keyout redis.key -out redis.pem 2>/dev/null"

static pid_t run_stunnel(const char *name, const char *format, uint16_t accept, uint16_t connect)
{
	char text[512], path[REDIS_PATH_BYTES];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(text, sizeof(text), format, accept, connect);
#pragma GCC diagnostic pop
	redis_write(name, text, 0600);
	pid_t pid = redis_run(
		"stunnel.log", (const char *[]){"stunnel4", redis_path(name, path), NULL});
	redis_wait_port(accept);
	return pid;
}

// TLS as the manual shows it: a stunnel on either side.
static void test_tls(void **state)
{
	(void)state;
	static const char server[] = STUNNEL "accept = 127.0.0.1:%u\nconnect = 127.0.0.1:%u\n"
					     "cert = redis.pem\nkey = redis.key\n";
	static const char client[] = STUNNEL "client = yes\naccept = 127.0.0.1:%u\n"
					     "connect = 127.0.0.1:%u\nCAfile = redis.pem\n"
					     "verifyChain = yes\ncheckHost = redis.example\n";
	static const char stranger[] = STUNNEL "client = yes\naccept = 127.0.0.1:%u\n"
					       "connect = 127.0.0.1:%u\nCAfile = redis.pem\n"
					       "verifyChain = yes\ncheckHost = other.example\n";
	uint16_t ports[] = {redis_port(), redis_port(), redis_port(), redis_port()};
	char command[512];
	snprintf(command, sizeof(command), "cd %s && " CERTIFICATE, redis_folder());
	assert_int_equal(system(command), 0);
	pid_t redis = redis_start("a", ports[0], NULL);
	pid_t far = run_stunnel("server.conf", server, ports[1], ports[0]);
	pid_t near = run_stunnel("client.conf", client, ports[2], ports[1]);
	pid_t wrong = run_stunnel("stranger.conf", stranger, ports[3], ports[1]);

	struct config_server at;
	struct config_store store = owner_server(&at, "127.0.0.1", ports[2]);
	struct owner owner;
	owner_init(&owner, &store, NULL, 0);
	owner_wait(&owner, &owner.subscribed, 1);
	owner_batch(&owner, "key", "sealed");
	owner_wait(&owner, &owner.told, 1);
	redis_stop(far);
	owner_wait(&owner, &owner.lost, 1);
	far = run_stunnel("server.conf", server, ports[1], ports[0]);
	owner_wait(&owner, &owner.ready, 2);
	owner_fini(&owner);

	store = owner_server(&at, "127.0.0.1", ports[3]);
	owner_init(&owner, &store, NULL, 0);
	owner_run(&owner, 300);
	assert_true(link_status(owner.link)->tries_total > 1 && owner.ready == 0);
	owner_fini(&owner);
	redis_stop(wrong);
	redis_stop(near);
	redis_stop(far);
	redis_stop(redis);
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
		cmocka_unit_test(test_batches_and_news),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_script_flush),
		cmocka_unit_test(test_kill),
		cmocka_unit_test(test_stop),
		cmocka_unit_test(test_news),
		cmocka_unit_test(test_passwords),
		cmocka_unit_test(test_replica),
		cmocka_unit_test(test_names_and_db),
		cmocka_unit_test(test_drop),
		cmocka_unit_test(test_drops_in_a_row),
		cmocka_unit_test(test_warnings),
		cmocka_unit_test(test_failover),
		cmocka_unit_test(test_user_of_the_manual),
		cmocka_unit_test(test_tls),
	};
	return cmocka_run_group_tests(tests, NULL, remove_folder);
}
