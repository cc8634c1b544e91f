// A stream opens when the handshake is done and the peer is who it must be, and not otherwise.

#include "dataplane/tls/fault.h"
#include "tests/unit/tls/rig.h"

#include "dataplane/tls/trust.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void assert_fault(struct rig *rig, const char *text)
{
	assert_int_equal(rig->peer.failures, 1);
	assert_string_equal(fault_text(rig->peer.fault), text);
}

static void opens_by(int version, const char *name)
{
	struct rig *rig = rig_new();
	rig->far_version = version;
	rig_renew_far(rig);
	rig_open(rig);
	assert_string_equal(SSL_get_version(rig->far.ssl), name);
	assert_string_equal(SSL_get_servername(rig->far.ssl, TLSEXT_NAMETYPE_host_name), RIG_NAME);
	assert_int_equal(rig_says(rig, SPAN("ask")), 3);
	rig_settle(rig);
	rig_is(&rig->far.got, SPAN("ask"));
	rig_far_says(rig, SPAN("answer"));
	rig_settle(rig);
	rig_is(&rig->heard.data, SPAN("answer"));
	assert_int_equal(rig_count(rig, handshakes), 1);
	assert_int_equal(rig->peer.failures, 0);
	rig_end(rig);
}

static void opens_with_tls_1_2_and_1_3(void **state)
{
	(void)state;
	opens_by(TLS1_2_VERSION, "TLSv1.2");
	opens_by(TLS1_3_VERSION, "TLSv1.3");
	opens_by(0, "TLSv1.3");
}

static void an_address_is_verified_and_not_told(void **state)
{
	static const char *const good[] = {"192.0.2.1", "2001:db8::1"};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_new();
		rig->name = good[i];
		rig_open(rig);
		assert_null(SSL_get_servername(rig->far.ssl, TLSEXT_NAMETYPE_host_name));
		rig_end(rig);
	}
	struct rig *rig = rig_new();
	rig->name = "192.0.2.2";
	rig_fail(rig, EKEYREJECTED);
	assert_fault(rig, "IP address mismatch");
	rig_end(rig);
}

static void certificates_that_are_not_good(void **state)
{
	static const struct {
		const char *what;
		struct certificate_recipe recipe;
		const char *fault; // NULL: it is good
	} table[] = {
		{"all names of a domain", {.subject = "s", .names = "DNS:*.shop.example"},
			"hostname mismatch"},
		{"the name among others", {.subject = "s", .names = "DNS:a,DNS:shop.example"},
			NULL},
		{"the common name", {.subject = RIG_NAME}, NULL},
		{"another name", {.subject = "s", .names = "DNS:shop.example.net"},
			"hostname mismatch"},
		{"a common name beside other names",
			{.subject = RIG_NAME, .names = "DNS:other.example"}, "hostname mismatch"},
		{"all of a top-level domain", {.subject = "s", .names = "DNS:*.example"},
			"hostname mismatch"},
		{"part of a label", {.subject = "s", .names = "DNS:sh*.example"},
			"hostname mismatch"},
		{"expired", {.subject = "s", .names = "DNS:" RIG_NAME, NULL, false, -7200, -3600},
			"certificate has expired"},
		{"to come", {.subject = "s", .names = "DNS:" RIG_NAME, NULL, false, 3600, 7200},
			"certificate is not yet valid"},
		{"a client's", {.subject = "s", .names = "DNS:" RIG_NAME, .usage = "clientAuth"},
			"unsuitable certificate purpose"},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		print_message("  %s\n", table[i].what);
		struct rig *rig = rig_with(&table[i].recipe);
		if (table[i].fault) {
			rig_fail(rig, EKEYREJECTED);
			assert_fault(rig, table[i].fault);
			assert_int_equal(rig_count(rig, handshake_certificate), 1);
		} else {
			rig_open(rig);
		}
		rig_end(rig);
	}
}

// Make the far end's certificate one of somebody else.
static void replace_server(struct rig *rig, const struct certificate *issuer)
{
	static const struct certificate_recipe recipe = {
		.subject = "server", .names = "DNS:" RIG_NAME};
	certificate_free(&rig->server);
	rig->server = certificate_make(&recipe, issuer);
	rig_renew_far(rig);
}

static void a_certificate_for_all_names_of_a_domain(void **state)
{
	static const struct certificate_recipe recipe = {
		.subject = "s", .names = "DNS:*.shop.example"};
	struct rig *rig = rig_with(&recipe);
	(void)state;
	rig->name = "a.shop.example";
	rig_open(rig);
	rig_close(rig, false);
	peer_forget(&rig->peer);
	rig->name = "a.b.shop.example";
	rig_fail(rig, EKEYREJECTED);
	rig_end(rig);
}

static void an_authority_that_is_not_trusted(void **state)
{
	static const struct certificate_recipe recipe = {.subject = "root", .is_authority = true};
	struct certificate other = certificate_make(&recipe, NULL);
	struct rig *rig = rig_new();
	(void)state;
	replace_server(rig, &other);
	rig_fail(rig, EKEYREJECTED);
	assert_int_equal(rig_count(rig, handshake_certificate), 1);
	assert_int_equal(rig->peer.failures, 1);
	rig_end(rig);

	rig = rig_new();
	replace_server(rig, NULL);
	rig_fail(rig, EKEYREJECTED);
	assert_fault(rig, "self-signed certificate");
	rig_end(rig);
	certificate_free(&other);
}

static void what_stands_in_the_file_is_trusted_though_it_is_no_root(void **state)
{
	static const struct certificate_recipe recipe = {.subject = "middle", .is_authority = true};
	static const struct certificate_recipe root = {.subject = "far root", .is_authority = true};
	struct certificate far_root = certificate_make(&root, NULL);
	struct certificate middle = certificate_make(&recipe, &far_root);
	struct rig *rig = rig_new();
	char error[TRUST_ERROR_MAX];
	const struct certificate *list[] = {&middle};
	(void)state;

	replace_server(rig, &middle);
	rig_fail(rig, EKEYREJECTED);
	assert_fault(rig, "unable to get local issuer certificate");
	const char *path = certificate_file(list, 1);
	trust_give(rig->trust);
	assert_int_equal(trust_create(path, 2, &rig->trust, error), 0);
	certificate_remove_file(path);
	rig_open(rig);
	assert_int_equal(rig->peer.fault, 0); // it is good again
	rig_end(rig);
	certificate_free(&middle);
	certificate_free(&far_root);
}

static void a_server_that_speaks_only_what_is_too_old(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig->far_version = TLS1_1_VERSION;
	rig_renew_far(rig);
	rig_fail(rig, EPROTO);
	assert_fault(rig, "tlsv1 alert protocol version");
	assert_int_equal(rig_count(rig, handshake_protocol), 1);
	rig_end(rig);
}

static void a_server_that_speaks_something_else(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig_connect(rig);
	rig_turn(rig);
	fake_peer_sends(&rig->fake, rig->far.s, SPAN("HTTP/1.1 400 Bad Request\r\n\r\n"));
	rig_turn(rig);
	assert_int_equal(rig->heard.closed, 1);
	assert_int_equal(rig->heard.error, EPROTO);
	assert_fault(rig, "wrong version number");
	rig_end(rig);
}

static void a_connection_that_is_refused_is_none_of_ours(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig_connect(rig);
	rig->fake.event_count = 0; // it does not open
	fake_peer_closes(&rig->fake, rig->far.s, ECONNREFUSED);
	rig_turn(rig);
	assert_int_equal(rig->heard.closed, 1);
	assert_int_equal(rig->heard.error, ECONNREFUSED);
	assert_int_equal(rig->peer.failures, 0);
	rig_end(rig);
}

static void a_connection_that_ends_within_the_handshake(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct rig *rig = rig_new();
		rig_connect(rig);
		rig_turn(rig);
		if (reset)
			fake_peer_closes(&rig->fake, rig->far.s, ECONNRESET);
		else
			fake_peer_ends(&rig->fake, rig->far.s);
		rig_turn(rig);
		assert_int_equal(rig->heard.closed, 1);
		assert_int_equal(rig->heard.error, ECONNRESET);
		assert_fault(rig, "the connection ended within the handshake");
		assert_int_equal(rig_count(rig, handshake_cut), 1);
		rig_end(rig);
	}
}

static void an_owner_whose_patience_is_over(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig_connect(rig);
	tls_late(rig->tls, rig->stream); // the connection is not open yet: none of ours
	assert_int_equal(rig->peer.failures, 0);
	rig_turn(rig);
	tls_late(rig->tls, rig->stream);
	rig_close(rig, true);
	assert_true(rig->far.s->was_reset);
	assert_fault(rig, "the handshake was not done in time");
	assert_int_equal(rig_count(rig, handshake_late), 1);
	rig_end(rig);
}

static void a_session_is_resumed(void **state)
{
	static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct rig *rig = rig_new();
		rig->far_version = versions[i];
		rig_renew_far(rig);
		rig_open(rig);
		rig_close(rig, true); // also after a reset
		assert_non_null(rig->peer.session);
		for (int n = 1; n <= 2; n++) {
			rig_open(rig);
			assert_true(SSL_session_reused(rig->far.ssl));
			assert_int_equal(rig_count(rig, resumed), n);
			rig_close(rig, false);
		}
		peer_forget(&rig->peer);
		rig_open(rig);
		assert_false(SSL_session_reused(rig->far.ssl));
		rig_end(rig);
	}
}

static void a_session_that_the_server_has_forgotten(void **state)
{
	struct rig *rig = rig_new();
	(void)state;
	rig_open(rig);
	rig_close(rig, false);
	rig_renew_far(rig);
	rig_open(rig);
	assert_false(SSL_session_reused(rig->far.ssl));
	rig_end(rig);
}

static void streams_max(void **state)
{
	struct rig *rig = rig_new();
	struct tls_target target = {rig->trust, rig->name};
	struct stream_address to = {.port = 443};
	struct stream *streams[RIG_STREAMS_MAX];
	(void)state;
	for (int i = 0; i < RIG_STREAMS_MAX; i++)
		assert_non_null(streams[i] = tls_connect(rig->tls, &to, &target, &rig->peer, NULL));
	assert_null(tls_connect(rig->tls, &to, &target, &rig->peer, NULL));
	assert_int_equal(rig_count(rig, stream_none), 1);
	stream_close(rig->tls, streams[0], true);
	assert_non_null(streams[0] = tls_connect(rig->tls, &to, &target, &rig->peer, NULL));
	for (int i = 0; i < RIG_STREAMS_MAX; i++)
		stream_close(rig->tls, streams[i], true);
	rig->fake.refuses = true;
	assert_null(tls_connect(rig->tls, &to, &target, &rig->peer, NULL));
	rig_end(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_with_tls_1_2_and_1_3),
		cmocka_unit_test(an_address_is_verified_and_not_told),
		cmocka_unit_test(certificates_that_are_not_good),
		cmocka_unit_test(a_certificate_for_all_names_of_a_domain),
		cmocka_unit_test(an_authority_that_is_not_trusted),
		cmocka_unit_test(what_stands_in_the_file_is_trusted_though_it_is_no_root),
		cmocka_unit_test(a_server_that_speaks_only_what_is_too_old),
		cmocka_unit_test(a_server_that_speaks_something_else),
		cmocka_unit_test(a_connection_that_is_refused_is_none_of_ours),
		cmocka_unit_test(a_connection_that_ends_within_the_handshake),
		cmocka_unit_test(an_owner_whose_patience_is_over),
		cmocka_unit_test(a_session_is_resumed),
		cmocka_unit_test(a_session_that_the_server_has_forgotten),
		cmocka_unit_test(streams_max),
	};
	return rig_run(tests);
}
