// A far end, or somebody on the way, that means no good: bounded, counted, and never believed.

#include "dataplane/tls/bio.h"
#include "tests/unit/tls/pair.h"
#include "tests/unit/tls/rig.h"

#include <errno.h>
#include <malloc.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 400

// What OpenSSL holds for the driver now, and the most it held since last asked.
static size_t held, held_peak;
static int until_failure; // of an allocation for the driver; 0: none is to come

static void note(size_t more, size_t less)
{
	if (!rig_is_inside)
		return;
	held += more - less;
	if (held > held_peak)
		held_peak = held;
}

static void *count_malloc(size_t len, const char *file, int line)
{
	(void)file;
	(void)line;
	if (rig_is_inside && until_failure > 0 && --until_failure == 0)
		return NULL;
	void *at = malloc(len);
	note(malloc_usable_size(at), 0);
	return at;
}

static void *count_realloc(void *at, size_t len, const char *file, int line)
{
	(void)file;
	(void)line;
	size_t before = at ? malloc_usable_size(at) : 0;
	void *now = realloc(at, len);
	note(malloc_usable_size(now), before);
	return now;
}

static void count_free(void *at, const char *file, int line)
{
	(void)file;
	(void)line;
	note(0, at ? malloc_usable_size(at) : 0);
	free(at);
}

#define NAMES_BYTES_MAX 31000 // a certificate of these still passes

// As many names as `room` holds, after the right one.
static const struct certificate_recipe *fill_names(
	struct certificate_recipe *recipe, char *names, size_t room)
{
	size_t len = (size_t)snprintf(names, room, "DNS:%s", RIG_NAME);
	for (int i = 0; len + 32 < room; i++)
		len += (size_t)snprintf(names + len, room - len, ",DNS:n%d.example", i);
	recipe->names = names;
	return recipe;
}

static int lengthen_ticket(SSL *ssl, void *unused)
{
	static const char data[60000];
	(void)unused;
	return SSL_SESSION_set1_ticket_appdata(SSL_get_session(ssl), data, sizeof(data));
}

struct use {
	size_t peak, idle, session;
};

// What a connection to the far end takes: records both ways, then nothing under way.
static struct use use_of(struct rig *rig)
{
	struct span text = rig_text(BIO_REPLY_BYTES_MAX);
	size_t before = held_peak = held;
	rig_open(rig);
	rig_far_says(rig, text);
	rig_says(rig, text);
	rig_settle(rig);
	rig->heard.data.len = rig->far.got.len = 0;
	size_t open = held;
	rig_close(rig, false);
	size_t session = held;
	rig_is_inside = true;
	peer_forget(&rig->peer);
	rig_is_inside = false;
	assert_true(held <= before); // all is given back
	return (struct use){held_peak - before, open - session, session - held};
}

static void memory_of_a_stream_is_bounded_and_given_back(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	use_of(rig); // what is allocated once is allocated now
	for (int i = 0; i < 20; i++) {
		struct use use = use_of(rig);
		if (i == 0)
			print_message("  at most %zu, idle %zu, session %zu bytes\n", use.peak,
				use.idle, use.session);
		assert_true(use.peak < TLS_STREAM_BYTES);
		assert_true(use.idle < TLS_STREAM_BYTES / 3);
		assert_true(use.session < TLS_STREAM_BYTES / 8);
	}
	rig_end(rig);
}

// All that a server can make a stream hold: a chain as long as may be, and long tickets.
static void memory_of_a_stream_to_a_hostile_server(void **state)
{
	static char names[NAMES_BYTES_MAX];
	struct certificate_recipe recipe = {.subject = "s"};
	struct rig *rig = rig_with(fill_names(&recipe, names, sizeof(names)));
	(void)state;
	SSL_CTX_set_session_ticket_cb(rig->far_context, lengthen_ticket, NULL, NULL);
	use_of(rig);
	for (int i = 0; i < 20; i++) {
		struct use use = use_of(rig);
		if (i == 0)
			print_message("  at most %zu, idle %zu, session %zu bytes\n", use.peak,
				use.idle, use.session);
		assert_true(use.peak < TLS_STREAM_BYTES_HOSTILE);
		assert_int_equal(use.session, 0);
	}
	rig_end(rig);
}

// ---- Visitors ----

static void close_server(struct pair *pair, struct pair_link *link)
{
	rig_is_inside = true;
	stream_close(pair->server, link->server.stream, true);
	rig_is_inside = false;
	link->server.stream = NULL;
	pair_settle(pair);
}

// The most that is held between turns from now on until nothing happens any more.
static size_t held_while_settling(struct pair *pair)
{
	size_t most = held;
	while (pair_turn(pair))
		most = held > most ? held : most;
	return most;
}

// A handshake that comes byte by byte, and then a record of which most is there: what a slow
// visitor can make us hold. Within a call it is more, but for one visitor at a time.
static void memory_of_a_visitor(void **state)
{
	static const char *const names[] = {"DNS:" RIG_NAME};
	(void)state;
	rig_bytewise = true;
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		struct pair *pair = pair_new(names, 1);
		SSL_CTX_set_max_proto_version(pair_client(pair), version);
		close_server(pair, pair_open(pair, RIG_NAME, NULL)); // once for all is done now
		for (int i = 0; i < 3; i++) {
			size_t before = held_peak = held;
			struct pair_link *link = pair_connect(pair, RIG_NAME, NULL);
			size_t opening = held_while_settling(pair) - before;
			size_t idle = held - before, call = held_peak - before;
			struct span text = rig_text(TLS_RECORD_BYTES);
			stream_write(pair->client, link->client.stream, &text, 1);
			size_t reading = held_while_settling(pair) - before;
			rig_is(&link->server.heard.data, text);
			close_server(pair, link);
			if (i == 0)
				print_message("  opening %zu, idle %zu, within a record %zu, "
					      "within a call %zu\n",
					opening, idle, reading, call);
			assert_true(opening < TLS_VISITOR_BYTES);
			assert_true(reading < TLS_VISITOR_BYTES);
			assert_true(idle < TLS_VISITOR_BYTES / 6 + 1024);
			assert_true(call < TLS_STREAM_BYTES);
			assert_true(held <= before);
		}
		pair_end(pair);
	}
	rig_bytewise = false;
}

// Each allocation of an accept fails once.
static void memory_runs_out_in_an_accept(void **state)
{
	static const char *const names[] = {"DNS:" RIG_NAME};
	struct pair *pair = pair_new(names, 1);
	bool has_failed = true;
	uint64_t refused = 0;
	(void)state;
	for (int n = 1; has_failed; n++) {
		struct fake_stream *s = fake_accept(&pair->far);
		until_failure = n;
		rig_is_inside = true;
		struct stream *stream = tls_accept(pair->server, &s->stream, NULL);
		has_failed = until_failure == 0;
		until_failure = 0;
		refused += !stream;
		if (stream)
			stream_close(pair->server, stream, true);
		else
			stream_close(&pair->far.driver, &s->stream, true);
		ERR_clear_error();
		rig_is_inside = false;
		pair->far.count = 0; // its places are used again
		assert_int_equal(pair_count(pair, memory_none), refused);
	}
	assert_true(refused > 10);
	pair_end(pair);
}

// Each allocation of a handshake fails once: the visitor goes, nobody else.
static void memory_runs_out_in_a_handshake(void **state)
{
	static const char *const names[] = {"DNS:" RIG_NAME};
	bool has_failed = true;
	(void)state;
	for (int n = 1; has_failed; n += 7) {
		struct pair *pair = pair_new(names, 1);
		struct pair_link *link = pair_connect(pair, RIG_NAME, NULL);
		until_failure = n;
		pair_settle(pair);
		has_failed = until_failure == 0;
		until_failure = 0;
		assert_int_equal(link->server.heard.opened + link->server.heard.closed > 0, 1);
		pair_open(pair, RIG_NAME, NULL);
		pair_end(pair);
	}
}

// Each allocation of a connect fails once.
static void memory_runs_out_in_a_connect(void **state)
{
	struct rig *rig = rig_new();
	struct tls_target target = {rig->trust, rig->name};
	struct stream_address to = {.port = 443};
	uint64_t refused = 0;
	bool has_failed = true;
	(void)state;
	rig_open(rig);
	rig_close(rig, false);
	size_t before = held;
	for (int n = 1; has_failed; n++) {
		until_failure = n;
		rig_is_inside = true;
		struct stream *stream = tls_connect(rig->tls, &to, &target, &rig->peer, NULL);
		has_failed = until_failure == 0;
		until_failure = 0;
		refused += !stream;
		if (stream)
			stream_close(rig->tls, stream, true);
		ERR_clear_error(); // texts of the thread's queue, which the next call would clear
		rig_is_inside = false;
		assert_int_equal(rig_count(rig, memory_none), refused);
		assert_true(held <= before); // a session is used up
	}
	assert_true(refused > 10);
	rig_open(rig);
	rig_end(rig);
}

// Each makes us answer; whoever does not take the answers gets no more of them.
static void key_updates_without_end(void **state)
{
	struct rig *rig = rig_new();
	int count = 0;
	(void)state;
	rig->bytewise = false;
	rig_open(rig);
	for (; count < 100; count++) { // taken: not a flood
		SSL_key_update(rig->far.ssl, SSL_KEY_UPDATE_REQUESTED);
		SSL_do_handshake(rig->far.ssl);
		rig_settle(rig);
	}
	assert_int_equal(rig->heard.closed, 0);
	fake_peer_takes(&rig->fake, rig->far.s, 0);
	while (!rig->heard.closed && count < 10000) {
		SSL_key_update(rig->far.ssl, SSL_KEY_UPDATE_REQUESTED);
		SSL_do_handshake(rig->far.ssl);
		rig_far_flush(rig);
		rig_turn(rig);
		count++;
	}
	assert_int_equal(rig->heard.closed, 1);
	assert_int_equal(rig->heard.error, ENOBUFS);
	assert_true(rig->far.s->queued_peak <= BIO_REPLY_BYTES_MAX);
	assert_int_equal(rig_count(rig, full), 1);
	rig_end(rig);
}

static void no_renegotiation(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig->far_version = TLS1_2_VERSION;
	rig_renew_far(rig);
	rig_open(rig);
	SSL_renegotiate(rig->far.ssl);
	SSL_do_handshake(rig->far.ssl);
	rig_far_flush(rig);
	rig_settle(rig);
	assert_int_equal(rig_count(rig, handshakes), 1);
	assert_int_equal(SSL_CTX_sess_accept_good(rig->far_context), 1);
	assert_int_equal(SSL_CTX_sess_accept_renegotiate(rig->far_context), 1); // in vain
	rig_end(rig);
}

static void a_chain_that_is_too_long_to_be_true(void **state)
{
	static char names[2 * NAMES_BYTES_MAX];
	struct certificate_recipe recipe = {.subject = "s"};
	struct rig *rig = rig_with(fill_names(&recipe, names, sizeof(names)));
	(void)state;
	rig_fail(rig, EPROTO);
	assert_int_equal(rig_count(rig, handshake_protocol), 1);
	rig_end(rig);
}

static void an_alert(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	// A server that wants to know who we are cannot be told, and says so when we are open.
	SSL_CTX_set_verify(
		rig->far_context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	rig_connect(rig);
	rig_settle(rig);
	assert_int_equal(rig->heard.closed, 1);
	assert_int_equal(rig->heard.error, EPROTO);
	assert_int_equal(rig_count(rig, broken), 1);
	rig_end(rig);
}

// One byte of all that the far end sends is altered. What is handed over is a prefix of the truth.
static void an_altered_byte(struct rig *rig, size_t at, unsigned char mask)
{
	struct span text = rig_text(40000);
	bool has_said = false;
	size_t seen = 0;
	rig_connect(rig);
	for (int quiet = 0; quiet < 3;) {
		char bytes[4096];
		int len;
		bool has_moved = rig_turn(rig) > 0;
		struct rig_far *far = &rig->far;
		if (far->s->got.len > far->taken)
			BIO_write(SSL_get_rbio(far->ssl), far->s->got.at + far->taken,
				(int)(far->s->got.len - far->taken));
		far->taken = far->s->got.len;
		SSL_do_handshake(far->ssl);
		if (SSL_is_init_finished(far->ssl) && !has_said) {
			has_said = true;
			SSL_write(far->ssl, text.at, (int)text.len);
		}
		while ((len = BIO_read(SSL_get_wbio(far->ssl), bytes, sizeof(bytes))) > 0) {
			if (at >= seen && at - seen < (size_t)len)
				bytes[at - seen] ^= (char)mask;
			seen += (size_t)len;
			fake_peer_sends(&rig->fake, far->s, (struct span){bytes, (size_t)len});
			has_moved = true;
		}
		quiet = has_moved ? 0 : quiet + 1;
	}
	assert_true(rig->heard.data.len <= text.len);
	if (rig->heard.data.len > 0)
		assert_memory_equal(rig->heard.data.at, text.at, rig->heard.data.len);
	if (rig->stream)
		rig_close(rig, true);
	rig_turn(rig);
}

static void altered_bytes(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	(void)state;
	unsigned seed = 4711;
	print_message("  seed %u\n", seed);
	srandom(seed);
	for (int v = 0; v < 2; v++) {
		struct rig *rig = NULL;
		int closed = 0;
		for (int i = 0; i < ROUNDS; i++) {
			if (i % 64 == 0) { // a network in memory has only so many streams
				if (rig)
					rig_end(rig);
				rig = rig_new();
				rig->far_version = versions[v];
				rig_renew_far(rig);
			}
			peer_forget(&rig->peer);
			size_t at = (size_t)(i < ROUNDS / 2 ? random() % 1500 : random() % 42000);
			an_altered_byte(rig, at, (unsigned char)(1u << random() % 8));
			closed += rig->heard.closed;
		}
		assert_true(closed > ROUNDS / 2);
		rig_end(rig);
	}
}

static void random_bytes(void **state)
{
	(void)state;
	struct rig *rig = NULL;
	for (int i = 0; i < ROUNDS; i++) {
		char bytes[600];
		if (i % 64 == 0) {
			if (rig)
				rig_end(rig);
			rig = rig_new();
		}
		rig_connect(rig);
		rig_turn(rig);
		for (size_t j = 0; j < sizeof(bytes); j++)
			bytes[j] = (char)random();
		if (i % 2) // a record by its head
			memcpy(bytes, "\x16\x03\x03\x02\x00", 5);
		fake_peer_sends(&rig->fake, rig->far.s, (struct span){bytes, sizeof(bytes)});
		rig_turn(rig);
		assert_int_equal(rig->heard.opened, 0);
		assert_int_equal(rig->heard.closed, 1);
	}
	rig_end(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_a_stream_is_bounded_and_given_back),
		cmocka_unit_test(memory_of_a_stream_to_a_hostile_server),
		cmocka_unit_test(memory_runs_out_in_a_connect),
		cmocka_unit_test(key_updates_without_end),
		cmocka_unit_test(no_renegotiation),
		cmocka_unit_test(a_chain_that_is_too_long_to_be_true),
		cmocka_unit_test(an_alert),
		cmocka_unit_test(altered_bytes),
		cmocka_unit_test(random_bytes),
		cmocka_unit_test(memory_of_a_visitor),
		cmocka_unit_test(memory_runs_out_in_an_accept),
		cmocka_unit_test(memory_runs_out_in_a_handshake),
	};
	CRYPTO_set_mem_functions(count_malloc, count_realloc, count_free);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
