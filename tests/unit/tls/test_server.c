// Visitors: who opens, with which certificate and protocol, who resumes, who waits, who is refused.

#include "dataplane/tls/channel.h"
#include "tests/unit/tls/pair.h"

#include <errno.h>
#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define SHOP "shop.example"

static const char *const shop[] = {"DNS:" SHOP};

static struct pair *pair_of_version(int version)
{
	struct pair *pair = pair_new(shop, 1);
	SSL_CTX_set_min_proto_version(pair_client(pair), version);
	SSL_CTX_set_max_proto_version(pair_client(pair), version);
	return pair;
}

static void says(struct stream_driver *driver, struct pair_end *end, struct span text)
{
	assert_int_equal(stream_write(driver, end->stream, &text, 1), text.len);
}

static void both_speak(struct pair *pair, struct pair_link *link)
{
	struct span text = rig_text(rig_bytewise ? 3000 : 3 * TLS_ROUND_BYTES + 77);
	says(pair->client, &link->client, SPAN("ask"));
	says(pair->server, &link->server, text);
	pair_settle(pair);
	rig_is(&link->server.heard.data, SPAN("ask"));
	rig_is(&link->client.heard.data, text);
}

static void opens_with_tls_1_2_and_1_3(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct pair *pair = pair_of_version(versions[i]);
		struct pair_link *link = pair_open(pair, SHOP, NULL);
		both_speak(pair, link);
		assert_int_equal(pair_count(pair, handshakes), 1);
		assert_int_equal(pair_count(pair, resumed), 0);
		assert_int_equal(link->peer.failures, 0);
		pair_end(pair);
	}
}

static void the_client_ends_first(void **state)
{
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	struct pair_link *link = pair_open(pair, SHOP, NULL);
	says(pair->client, &link->client, SPAN("last words"));
	stream_shut(pair->client, link->client.stream);
	pair_turn(pair);
	pair_settle(pair);
	rig_is(&link->server.heard.data, SPAN("last words"));
	assert_int_equal(link->server.heard.eof, 1); // close_notify
	pair_end(pair);
}

static void the_server_ends_first(void **state)
{
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	struct pair_link *link = pair_open(pair, SHOP, NULL);
	says(pair->server, &link->server, SPAN("last words"));
	stream_close(pair->server, link->server.stream, false);
	link->server.stream = NULL;
	pair_settle(pair);
	rig_is(&link->client.heard.data, SPAN("last words"));
	assert_int_equal(link->client.heard.eof, 1);
	pair_end(pair);
}

static void a_client_of_another_version_is_refused(void **state)
{
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	SSL_CTX_set_security_level(pair_client(pair), 0);
	SSL_CTX_set_min_proto_version(pair_client(pair), TLS1_VERSION);
	SSL_CTX_set_max_proto_version(pair_client(pair), TLS1_1_VERSION);
	struct pair_link *link = pair_connect(pair, SHOP, NULL);
	pair_settle(pair);
	assert_int_equal(link->server.heard.closed, 1);
	assert_int_equal(link->server.heard.error, EPROTO);
	assert_int_equal(pair_count(pair, handshake_protocol), 1);
	pair_end(pair);
}

// ---- Names and protocols ----

static void the_certificate_is_for_the_name(void **state)
{
	static const char *const names[] = {"DNS:first.example", "DNS:" SHOP ",DNS:*." SHOP};
	(void)state;
	struct pair *pair = pair_new(names, 2);
	static const char *const good[] = {"first.example", SHOP, ("a." SHOP)};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		pair_open(pair, good[i], NULL); // our client verifies the name
	struct pair_link *link = pair_connect(pair, "other.example", NULL);
	pair_settle(pair);
	assert_int_equal(link->client.heard.error, EKEYREJECTED);
	pair_end(pair);
}

static void a_listener_that_becomes_plain_within_a_handshake(void **state)
{
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	struct pair_link *link = pair_connect(pair, SHOP, NULL);
	pair->identities[1] = NULL;
	assert_false(tls_serves(pair->server, 1));
	pair_settle(pair);
	assert_int_equal(link->server.heard.opened, 1); // it goes on with what it began with
	both_speak(pair, link);
	pair_end(pair);
}

static void protocols(void **state)
{
	static const struct {
		const char *offers;
		bool is_taken;
	} table[] = {
		{"\x08http/1.1", true},
		{"\x02h2\x08http/1.1", true},
		{"\x02h2", false},
		{"\x08http/1.0\x02h2", false},
		{"\x09http/1.11", false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct pair *pair = pair_new(shop, 1);
		const char *offers = table[i].offers;
		SSL_CTX_set_alpn_protos(
			pair_client(pair), (const unsigned char *)offers, (unsigned)strlen(offers));
		struct pair_link *link = pair_connect(pair, SHOP, NULL);
		pair_settle(pair);
		assert_int_equal(link->server.heard.opened, table[i].is_taken);
		assert_int_equal(pair_count(pair, handshake_protocol), !table[i].is_taken);
		if (!table[i].is_taken)
			assert_int_equal(ERR_GET_REASON(link->peer.fault),
				SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
		pair_end(pair);
	}
}

// ---- Sessions ----

// Connect twice; returns whether the second one was resumed.
static bool resumes(struct pair *pair)
{
	uint64_t before = pair_count(pair, resumed);
	struct pair_link *link = pair_open(pair, SHOP, NULL);
	both_speak(pair, link);
	struct peer session = pair_take_session(link);
	assert_non_null(session.session);
	link = pair_open(pair, SHOP, &session);
	both_speak(pair, link);
	assert_non_null(link->peer.session); // of TLS 1.3 another one, since one is used but once
	return pair_count(pair, resumed) > before;
}

static void sessions_are_resumed(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct pair *pair = pair_of_version(versions[i]);
		assert_true(resumes(pair));
		pair_end(pair);
	}
}

// The ticket of a key that has been replaced still resumes, and is itself replaced; that of one
// that is gone means a whole handshake.
static void ticket_keys_follow_each_other(void **state)
{
	static const uint8_t seeds[3][TICKET_SEED_BYTES] = {"first", "second", "third"};
	static const struct {
		int seeds[TICKET_KEYS_MAX]; // the current one first; -1: none
		bool is_resumed;
	} steps[] = {
		{{0, -1, -1}, true},
		{{0, 1, -1}, true}, // the next one is known
		{{1, 0, -1}, true}, // and becomes the current one
		{{1, 2, -1}, true}, // by now its ticket is of the second
		{{2, -1, -1}, false},
	};
	(void)state;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct pair *pair = pair_of_version(version);
		struct peer session = pair_take_session(pair_open(pair, SHOP, NULL));
		for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
			uint64_t before = pair_count(pair, resumed);
			pair->ticket_keys.count = 0;
			for (int j = 0; j < 3 && steps[i].seeds[j] >= 0; j++)
				ticket_add(&pair->ticket_keys, seeds[steps[i].seeds[j]]);
			pair->far.driver.now_us += 1000000;
			struct pair_link *link = pair_open(pair, SHOP, &session);
			both_speak(pair, link);
			// OpenSSL's client does not take a new ticket of TLS 1.2.
			bool is_resumed =
				steps[i].is_resumed && !(i == 3 && version == TLS1_2_VERSION);
			assert_int_equal(pair_count(pair, resumed) - before, is_resumed);
			session = pair_take_session(link);
			stream_close(pair->client, link->client.stream, true);
			link->client.stream = NULL;
			pair_settle(pair);
		}
		peer_forget(&session);
		pair_end(pair);
	}
}

static void without_ticket_keys_nothing_is_resumed(void **state)
{
	(void)state;
	struct pair *pair = pair_of_version(TLS1_2_VERSION);
	pair->ticket_keys.count = 0;
	struct pair_link *link = pair_open(pair, SHOP, NULL);
	both_speak(pair, link);
	pair_end(pair);
}

// ---- Limits ----

static void streams_at_the_limit_and_beyond(void **state)
{
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	for (int i = 0; i < PAIR_STREAMS_MAX; i++)
		pair_open(pair, SHOP, NULL);
	assert_int_equal(pair_count(pair, stream_none), 0);
	struct pair_link *link = pair_connect(pair, SHOP, NULL);
	assert_null(link->server.stream);
	assert_int_equal(pair_count(pair, stream_none), 1);
	pair_settle(pair);
	assert_int_equal(link->client.heard.closed, 1);
	stream_close(pair->server, pair->links[0].server.stream, false);
	pair->links[0].server.stream = NULL;
	pair_open(pair, SHOP, NULL); // the place of the one that has gone
	pair_end(pair);
}

// With 1000 a second and a bucket of 20 ms, 20 go on at once. The rig has fewer streams: a clock
// that stands still, and a bucket that is nearly used up.
static void handshakes_at_the_rate_and_beyond(void **state)
{
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	for (int i = 0; i < 19; i++)
		assert_true(pair_use_turn(pair));
	assert_int_equal(tls_due_us(pair->server), UINT64_MAX);
	pair_open(pair, SHOP, NULL); // the twentieth
	assert_int_equal(pair_count(pair, put_off), 0);
	struct pair_link *late[3];
	for (int i = 0; i < 3; i++) {
		late[i] = pair_connect(pair, SHOP, NULL);
		pair_settle(pair);
		assert_int_equal(late[i]->server.heard.opened, 0);
		assert_true(late[i]->server.s->is_paused);
	}
	assert_int_equal(pair_count(pair, put_off), 3);
	uint64_t due_us = tls_due_us(pair->server);
	assert_int_equal(due_us, pair->far.driver.now_us + 1000);
	pair->far.driver.now_us = due_us - 1;
	pair_settle(pair);
	assert_int_equal(late[0]->server.heard.opened, 0);
	for (int i = 0; i < 3; i++) { // one a millisecond, in the order in which they came
		pair->far.driver.now_us = due_us + (uint64_t)i * 1000;
		pair_settle(pair);
		for (int j = 0; j < 3; j++)
			assert_int_equal(late[j]->server.heard.opened, j <= i);
	}
	assert_int_equal(tls_due_us(pair->server), UINT64_MAX);
	both_speak(pair, late[2]);
	pair_end(pair);
}

// Those that wait may go, be cut, or send more than they may: others are served in their place.
static void those_that_wait_may_end(void **state)
{
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	while (pair_use_turn(pair))
		;
	struct pair_link *links[4];
	for (int i = 0; i < 4; i++)
		links[i] = pair_connect(pair, SHOP, NULL);
	pair_settle(pair);
	assert_int_equal(pair_count(pair, put_off), 4);
	tls_late(pair->server, links[0]->server.stream); // its patience is over
	stream_close(pair->server, links[0]->server.stream, true);
	links[0]->server.stream = NULL;
	fake_peer_closes(&pair->far, links[1]->server.s, ECONNRESET);
	links[2]->server.s->is_paused = false; // bytes that were under way
	fake_peer_sends(&pair->far, links[2]->server.s, SPAN("more"));
	pair_settle(pair);
	assert_int_equal(pair_count(pair, handshake_late), 1);
	assert_int_equal(pair_count(pair, handshake_cut), 1);
	assert_int_equal(pair_count(pair, handshake_protocol), 1);
	pair->far.driver.now_us = tls_due_us(pair->server);
	pair_settle(pair);
	assert_int_equal(links[3]->server.heard.opened, 1);
	pair_end(pair);
}

// ---- Nonsense ----

static struct pair_link *nonsense(struct pair *pair, struct span bytes)
{
	struct pair_link *link = pair_connect(pair, SHOP, NULL);
	stream_close(pair->client, link->client.stream, true);
	link->client.stream = NULL;
	link->client.has_ended = true; // the test speaks in its place
	for (size_t i = 0; i < bytes.len; i++) {
		struct span one = {bytes.at + i, 1};
		if (link->server.stream)
			fake_peer_sends(&pair->far, link->server.s, rig_bytewise ? one : bytes);
		pair_settle(pair);
		if (!rig_bytewise)
			break;
	}
	return link;
}

static void hellos_that_are_none(void **state)
{
	static const struct {
		const char *what;
		struct span bytes;
		bool is_refused;
	} table[] = {
		{"plain HTTP", SPAN("GET / HTTP/1.1\r\n\r\n"), true},
		{"an alert", SPAN("\x15\x03\x01\x00\x02\x02\x28"), true},
		{"a message at the limit", SPAN("\x16\x03\x01\x02\x00\x01\x00\x40\x00"), false},
		{"one byte beyond", SPAN("\x16\x03\x01\x02\x00\x01\x00\x40\x01"), true},
		{"of 16 MB", SPAN("\x16\x03\x01\x02\x00\x01\xff\xff\xff"), true},
		{"a record that holds no message's head",
			SPAN("\x16\x03\x01\x00\x03\x01\x00\x00\x16"), true},
		{"one that just does", SPAN("\x16\x03\x01\x00\x04\x01\x00\x00\x16"), false},
		{"a part of one", SPAN("\x16\x03\x01"), false},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct pair *pair = pair_new(shop, 1);
		print_message("%s\n", table[i].what);
		struct pair_link *link = nonsense(pair, table[i].bytes);
		assert_int_equal(link->server.heard.opened, 0);
		assert_int_equal(link->server.heard.closed, table[i].is_refused);
		assert_int_equal(pair_count(pair, handshake_protocol), table[i].is_refused);
		pair_end(pair);
	}
}

// Whether a visitor who asks for the certificate's status hears of it, when it is `now_s`.
static bool hears_status(struct pair *pair, time_t now_s)
{
	unsigned char *response;
	pair->now_s = (uint32_t)now_s;
	struct pair_link *link = pair_open(pair, SHOP, NULL);
	SSL *ssl = ((struct channel *)link->client.stream)->ssl;
	bool does = SSL_get_tlsext_status_ocsp_resp(ssl, &response) > 0;
	stream_close(pair->client, link->client.stream, false);
	link->client.stream = NULL;
	pair_settle(pair);
	return does;
}

// It was good when it was read; from the second of its next update on it is not sent.
static void a_stapled_response_runs_out(void **state)
{
	const struct certificate_recipe recipe = {.subject = "server", .names = shop[0]};
	struct identity *stapled;
	struct identity_fault fault;
	(void)state;
	struct pair *pair = pair_new(shop, 1);
	struct certificate made = certificate_make(&recipe, &pair->root);
	struct identity_files files = certificate_pair(&made);
	time_t now = time(NULL);
	char *path = certificate_response(&made, &pair->root, 1000);
	files.ocsp = path;
	assert_int_equal(identity_create(&files, 1, 2, &stapled, &fault), 0);
	pair->identities[0] = pair->identities[1] = stapled;
	SSL_CTX_set_tlsext_status_type(pair_client(pair), TLSEXT_STATUSTYPE_ocsp);
	assert_true(hears_status(pair, now));
	assert_true(hears_status(pair, now + 999));
	assert_int_equal(pair_count(pair, staple_late), 0);
	assert_false(hears_status(pair, now + 1001)); // it may have been made a second later
	assert_int_equal(pair_count(pair, staple_late), 1);
	assert_true(hears_status(pair, 0)); // no time is known
	pair->identities[0] = pair->identities[1] = pair->identity;
	pair_end(pair);
	identity_give(stapled);
	certificate_remove_file(path);
	free(path);
	files.ocsp = NULL;
	certificate_remove_pair(&files);
	certificate_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_with_tls_1_2_and_1_3),
		cmocka_unit_test(the_client_ends_first),
		cmocka_unit_test(the_server_ends_first),
		cmocka_unit_test(a_client_of_another_version_is_refused),
		cmocka_unit_test(the_certificate_is_for_the_name),
		cmocka_unit_test(a_listener_that_becomes_plain_within_a_handshake),
		cmocka_unit_test(protocols),
		cmocka_unit_test(sessions_are_resumed),
		cmocka_unit_test(ticket_keys_follow_each_other),
		cmocka_unit_test(without_ticket_keys_nothing_is_resumed),
		cmocka_unit_test(streams_at_the_limit_and_beyond),
		cmocka_unit_test(handshakes_at_the_rate_and_beyond),
		cmocka_unit_test(those_that_wait_may_end),
		cmocka_unit_test(hellos_that_are_none),
		cmocka_unit_test(a_stapled_response_runs_out),
	};
	return rig_run(tests);
}
