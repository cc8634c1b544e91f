// The far end has BIOs in memory: what the driver has written is fed in, what comes out is sent.

#include "tests/unit/tls/rig.h"

#include "dataplane/tls/trust.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

bool rig_bytewise;
bool rig_is_inside;

int rig_set_whole(void **state)
{
	(void)state;
	rig_bytewise = false;
	return 0;
}

int rig_set_bytewise(void **state)
{
	(void)state;
	rig_bytewise = true;
	return 0;
}

static void append(struct fake_bytes *to, const char *at, size_t len)
{
	if (to->len + len > to->room) {
		to->room = (to->len + len) * 2;
		to->at = realloc(to->at, to->room);
		assert_non_null(to->at);
	}
	if (len > 0)
		memcpy(to->at + to->len, at, len);
	to->len += len;
}

struct span rig_text(size_t len)
{
	static char text[1 << 20];
	assert_true(len <= sizeof(text));
	for (size_t i = 0; i < len; i++)
		text[i] = (char)(i * 31 + (i >> 8) * 7);
	return (struct span){text, len};
}

void rig_is(struct fake_bytes *got, struct span text)
{
	assert_int_equal(got->len, text.len);
	if (text.len > 0)
		assert_memory_equal(got->at, text.at, text.len);
	got->len = 0;
}

void rig_renew_far(struct rig *rig)
{
	SSL_CTX_free(rig->far_context);
	rig->far_context = SSL_CTX_new(TLS_server_method());
	assert_non_null(rig->far_context);
	SSL_CTX_set_security_level(rig->far_context, 0);
	SSL_CTX_set_min_proto_version(rig->far_context, rig->far_version);
	SSL_CTX_set_max_proto_version(rig->far_context, rig->far_version);
	assert_true(SSL_CTX_use_certificate(rig->far_context, rig->server.x509));
	assert_true(SSL_CTX_use_PrivateKey(rig->far_context, rig->server.key));
}

static void trust_root(struct rig *rig)
{
	char error[TRUST_ERROR_MAX];
	const struct certificate *roots[] = {&rig->root};
	const char *path = certificate_file(roots, 1);
	assert_int_equal(trust_create(path, 2, &rig->trust, error), 0);
	certificate_remove_file(path);
}

struct rig *rig_with(const struct certificate_recipe *recipe)
{
	static const struct certificate_recipe root = {.subject = "root", .is_authority = true};
	struct rig *rig = calloc(1, sizeof(*rig));
	assert_non_null(rig);
	fake_init(&rig->fake);
	rig->fake.driver.now_us = 1000;
	rig->bytewise = rig_bytewise;
	rig->name = RIG_NAME;
	rig->root = certificate_make(&root, NULL);
	rig->server = certificate_make(recipe, &rig->root);
	trust_root(rig);
	rig_renew_far(rig);
	struct tls_plan plan = {
		.inner = &rig->fake.driver, .worker = 1, .streams_max = RIG_STREAMS_MAX};
	rig->tls = tls_create(&plan);
	assert_non_null(rig->tls);
	return rig;
}

struct rig *rig_new(void)
{
	static const struct certificate_recipe good = {
		.subject = "server", .names = "DNS:" RIG_NAME ",IP:192.0.2.1,IP:2001:db8::1"};
	return rig_with(&good);
}

static void forget_far(struct rig_far *far)
{
	SSL_free(far->ssl);
	free(far->got.at);
	*far = (struct rig_far){0};
}

void rig_end(struct rig *rig)
{
	if (rig->stream)
		rig_close(rig, false);
	rig_turn(rig);
	for (int i = 0; i < rig->fake.count; i++)
		assert_false(rig->fake.streams[i].is_used);
	for (int i = 0; i < rig->other_count; i++)
		forget_far(&rig->others[i]);
	forget_far(&rig->far);
	stream_destroy(rig->tls);
	peer_forget(&rig->peer);
	trust_give(rig->trust);
	SSL_CTX_free(rig->far_context);
	certificate_free(&rig->root);
	certificate_free(&rig->server);
	fake_fini(&rig->fake);
	free(rig->heard.data.at);
	free(rig);
}

static void begin_far(struct rig *rig)
{
	if (rig->far.ssl) {
		if (rig->other_count == RIG_STREAMS_MAX)
			forget_far(&rig->others[--rig->other_count]);
		rig->others[rig->other_count++] = rig->far;
	}
	rig->far = (struct rig_far){.ssl = SSL_new(rig->far_context)};
	SSL_set_bio(rig->far.ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_accept_state(rig->far.ssl);
}

void rig_connect(struct rig *rig)
{
	struct tls_target target = {rig->trust, rig->name};
	struct stream_address to = {.ip = {[10] = 0xff, 0xff, 192, 0, 2, 1}, .port = 443};
	begin_far(rig);
	free(rig->heard.data.at);
	rig->heard = (struct rig_heard){0};
	rig_is_inside = true;
	rig->stream = tls_connect(rig->tls, &to, &target, &rig->peer, rig);
	rig_is_inside = false;
	assert_non_null(rig->stream);
	assert_ptr_equal(rig->stream->user, rig);
	assert_int_equal(rig->stream->listener, STREAM_CONNECTED);
	assert_int_equal(rig->stream->peer.port, 443);
	rig->far.s = &rig->fake.streams[rig->fake.count - 1];
	assert_true(tls_carries(rig->tls, &rig->far.s->stream));
	fake_peer_opens(&rig->fake, rig->far.s);
}

static void hear(struct rig *rig, const struct stream_event *event)
{
	struct rig_heard *heard = &rig->heard;
	if (event->kind == STREAM_NONE)
		return;
	assert_ptr_equal(event->stream, rig->stream);
	assert_int_equal(heard->closed, 0);
	switch (event->kind) {
	case STREAM_NONE:
		break;
	case STREAM_OPENED:
		assert_int_equal(heard->opened++, 0);
		if (rig->closes_when_opened)
			rig_close(rig, true);
		break;
	case STREAM_DATA:
		assert_int_equal(heard->opened, 1);
		assert_int_equal(heard->eof, 0);
		assert_true(event->data.len > 0);
		append(&heard->data, event->data.at, event->data.len);
		break;
	case STREAM_WRITABLE:
		heard->writable++;
		break;
	case STREAM_EOF:
		assert_int_equal(heard->eof++, 0);
		break;
	case STREAM_CLOSED:
		heard->closed++;
		heard->error = event->error;
		rig->stream = NULL;
		break;
	}
}

// A stream whose only event is its end can take no call from now on.
static void mark_gone(const struct stream_event *events, int count)
{
	for (int i = 0; i < count; i++) {
		int mine = 0;
		for (int j = 0; j < count; j++)
			mine += events[j].stream == events[i].stream;
		if (events[i].kind == STREAM_CLOSED && mine == 1)
			fake_gone(events[i].stream);
	}
}

static int poll_inside(struct rig *rig, struct stream_event *events, int max)
{
	rig_is_inside = true;
	int count = stream_poll(rig->tls, events, max, 0);
	rig_is_inside = false;
	return count;
}

int rig_turn(struct rig *rig)
{
	struct stream_event events[64], outer[4];
	int max = rig->max ? rig->max : 64;
	int count = stream_poll(&rig->fake.driver, events, max, 0), round;
	mark_gone(events, count);
	tls_take(rig->tls, events, count);
	while ((round = poll_inside(rig, outer, 4)) > 0) {
		assert_int_equal(rig->tls->now_us, rig->fake.driver.now_us);
		for (int i = 0; i < round; i++)
			hear(rig, &outer[i]);
	}
	for (int i = 0; i < count; i++)
		if (events[i].kind == STREAM_CLOSED)
			fake_gone(events[i].stream);
	return count;
}

void rig_far_flush(struct rig *rig)
{
	char bytes[4096];
	int len;
	while ((len = BIO_read(SSL_get_wbio(rig->far.ssl), bytes, sizeof(bytes))) > 0) {
		if (!rig->bytewise)
			fake_peer_sends(&rig->fake, rig->far.s, (struct span){bytes, (size_t)len});
		for (int i = 0; rig->bytewise && i < len; i++) {
			fake_peer_sends(&rig->fake, rig->far.s, (struct span){bytes + i, 1});
			rig_turn(rig);
		}
	}
}

// What the far end does by itself. Returns whether it had anything new to read.
static bool run_far(struct rig *rig)
{
	struct rig_far *far = &rig->far;
	char bytes[4096];
	int len;
	if (!far->ssl || !far->s->is_open)
		return false;
	size_t fresh = far->s->got.len - far->taken;
	if (fresh > 0)
		BIO_write(SSL_get_rbio(far->ssl), far->s->got.at + far->taken, (int)fresh);
	far->taken += fresh;
	if (!SSL_is_init_finished(far->ssl))
		SSL_do_handshake(far->ssl);
	while ((len = SSL_read(far->ssl, bytes, sizeof(bytes))) > 0)
		append(&far->got, bytes, (size_t)len);
	far->has_ended = SSL_get_shutdown(far->ssl) & SSL_RECEIVED_SHUTDOWN;
	rig_far_flush(rig);
	return fresh > 0;
}

void rig_settle(struct rig *rig)
{
	int quiet = 0;
	while (quiet < 2) {
		bool has_moved = rig_turn(rig) > 0;
		has_moved |= run_far(rig);
		quiet = has_moved ? 0 : quiet + 1;
	}
}

void rig_open(struct rig *rig)
{
	rig_connect(rig);
	rig_settle(rig);
	assert_int_equal(rig->heard.opened, 1);
	assert_int_equal(rig->heard.closed, 0);
}

void rig_fail(struct rig *rig, int error)
{
	rig_connect(rig);
	rig_settle(rig);
	assert_int_equal(rig->heard.opened, 0);
	assert_int_equal(rig->heard.closed, 1);
	assert_int_equal(rig->heard.error, error);
}

size_t rig_says(struct rig *rig, struct span data)
{
	rig_is_inside = true;
	size_t taken = stream_write(rig->tls, rig->stream, &data, 1);
	rig_is_inside = false;
	return taken;
}

void rig_far_says(struct rig *rig, struct span data)
{
	assert_int_equal(SSL_write(rig->far.ssl, data.at, (int)data.len), (int)data.len);
	rig_far_flush(rig);
}

void rig_close(struct rig *rig, bool reset)
{
	rig_is_inside = true;
	stream_close(rig->tls, rig->stream, reset);
	rig_is_inside = false;
	rig->stream = NULL;
}
