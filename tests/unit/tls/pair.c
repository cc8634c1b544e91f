// The server's accepts are done as a worker does them: before the burst goes to tls_take().

#include "tests/unit/tls/pair.h"

#include "dataplane/tls/channel.h"
#include "dataplane/tls/trust.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static void make_identity(struct pair *pair, const char *const *names, unsigned count)
{
	struct identity_files files[IDENTITY_CERTIFICATES_MAX];
	struct identity_fault fault;
	for (unsigned i = 0; i < count; i++) {
		struct certificate_recipe recipe = {.subject = "server", .names = names[i]};
		struct certificate made = certificate_make(&recipe, &pair->root);
		files[i] = certificate_pair(&made);
		certificate_free(&made);
	}
	assert_int_equal(identity_create(files, count, 2, &pair->identity, &fault), 0);
	for (unsigned i = 0; i < count; i++)
		certificate_remove_pair(&files[i]);
}

static void make_drivers(struct pair *pair)
{
	struct tls_plan near = {
		.inner = &pair->near.driver, .worker = 0, .streams_max = PAIR_LINKS_MAX};
	struct tls_plan far = {.inner = &pair->far.driver,
		.worker = 1,
		.streams_max = PAIR_STREAMS_MAX,
		.handshakes_per_s = PAIR_PER_S,
		.now_s = &pair->now_s};
	pair->client = tls_create(&near);
	pair->server = tls_create(&far);
	assert_non_null(pair->client);
	assert_non_null(pair->server);
	assert_false(tls_serves(pair->server, 0));
	struct tls_service service = {pair->identities, &pair->ticket_keys};
	tls_serve(pair->server, &service);
}

struct pair *pair_new(const char *const *names, unsigned count)
{
	static const struct certificate_recipe root = {.subject = "root", .is_authority = true};
	static const uint8_t seed[TICKET_SEED_BYTES] = "first";
	struct pair *pair = calloc(1, sizeof(*pair));
	assert_non_null(pair);
	fake_init(&pair->near);
	fake_init(&pair->far);
	pair->near.driver.now_us = pair->far.driver.now_us = 1000000;
	pair->root = certificate_make(&root, NULL);
	const struct certificate *roots[] = {&pair->root};
	const char *path = certificate_file(roots, 1);
	char error[TRUST_ERROR_MAX];
	assert_int_equal(trust_create(path, 1, &pair->trust, error), 0);
	certificate_remove_file(path);
	make_identity(pair, names, count);
	pair->identities[0] = pair->identities[1] = pair->identity;
	ticket_add(&pair->ticket_keys, seed);
	make_drivers(pair);
	return pair;
}

SSL_CTX *pair_client(struct pair *pair)
{
	return trust_context(pair->trust, 0);
}

static void end_one(struct stream_driver *driver, struct pair_end *end)
{
	if (end->stream)
		stream_close(driver, end->stream, false);
	end->stream = NULL;
	free(end->heard.data.at);
	end->heard.data = (struct fake_bytes){0};
}

void pair_end(struct pair *pair)
{
	for (int i = 0; i < pair->link_count; i++) {
		end_one(pair->client, &pair->links[i].client);
		end_one(pair->server, &pair->links[i].server);
		peer_forget(&pair->links[i].peer);
	}
	pair_turn(pair);
	for (int i = 0; i < pair->far.count; i++)
		assert_false(pair->far.streams[i].is_used);
	stream_destroy(pair->client);
	stream_destroy(pair->server);
	trust_give(pair->trust);
	identity_give(pair->identity);
	certificate_free(&pair->root);
	fake_fini(&pair->near);
	fake_fini(&pair->far);
	free(pair);
}

struct pair_link *pair_connect(struct pair *pair, const char *name, const struct peer *peer)
{
	assert_true(pair->link_count < PAIR_LINKS_MAX);
	struct pair_link *link = &pair->links[pair->link_count++];
	struct tls_target target = {pair->trust, name};
	struct stream_address to = {.ip = {[10] = 0xff, 0xff, 192, 0, 2, 1}, .port = 443};
	if (peer)
		link->peer = *peer;
	link->client.stream = tls_connect(pair->client, &to, &target, &link->peer, &link->client);
	assert_non_null(link->client.stream);
	link->client.s = &pair->near.streams[pair->near.count - 1];
	fake_peer_opens(&pair->near, link->client.s);

	link->server.s = fake_accept(&pair->far);
	link->server.s->stream.listener = 1;
	assert_true(tls_serves(pair->server, 1));
	rig_is_inside = true;
	link->server.stream = tls_accept(pair->server, &link->server.s->stream, &link->server);
	rig_is_inside = false;
	if (!link->server.stream) {
		stream_close(&pair->far.driver, &link->server.s->stream, true);
		return link;
	}
	assert_true(tls_carries(pair->server, &link->server.s->stream));
	assert_ptr_equal(link->server.stream->user, &link->server);
	assert_int_equal(link->server.stream->listener, 1);
	assert_int_equal(link->server.stream->peer.port, 4711);
	fake_peer_opens(&pair->far, link->server.s);
	return link;
}

static void hear(const struct stream_event *event)
{
	struct pair_end *end = event->stream->user;
	struct rig_heard *heard = &end->heard;
	struct fake_bytes *data = &heard->data;
	assert_int_equal(heard->closed, 0);
	if (event->kind == STREAM_OPENED)
		assert_int_equal(heard->opened++, 0);
	else
		assert_true(heard->opened == 1 || event->kind == STREAM_CLOSED);
	heard->eof += event->kind == STREAM_EOF;
	heard->writable += event->kind == STREAM_WRITABLE;
	if (event->kind == STREAM_DATA) {
		data->at = realloc(data->at, data->len + event->data.len);
		memcpy(data->at + data->len, event->data.at, event->data.len);
		data->len += event->data.len;
	}
	if (event->kind == STREAM_CLOSED) {
		heard->closed++;
		heard->error = event->error;
		end->stream = NULL;
	}
}

static int poll_counted(
	struct stream_driver *driver, struct stream_event *events, int max, bool is_counted)
{
	rig_is_inside = is_counted;
	int count = stream_poll(driver, events, max, 0);
	rig_is_inside = false;
	return count;
}

// What the server allocates is counted by who counts.
static bool turn_of(struct fake *fake, struct stream_driver *driver, bool is_counted)
{
	struct stream_event events[64], outer[8];
	int count = stream_poll(&fake->driver, events, 64, 0), round;
	bool has_moved = count > 0;
	tls_take(driver, events, count);
	while ((round = poll_counted(driver, outer, 8, is_counted)) > 0) {
		has_moved = true;
		for (int i = 0; i < round; i++)
			if (outer[i].kind != STREAM_NONE)
				hear(&outer[i]);
	}
	for (int i = 0; i < count; i++)
		if (events[i].kind == STREAM_CLOSED)
			fake_gone(events[i].stream);
	return has_moved;
}

// What one end has written, and how it ended, gets to the other.
static bool carry(struct pair_end *from, struct fake *fake, struct pair_end *to)
{
	size_t fresh = from->s->got.len - from->taken;
	size_t len = rig_bytewise && fresh > 0 ? 1 : fresh;
	const char *next = from->taken > 0 ? from->s->got.at + from->taken : from->s->got.at;
	struct span data = {next, len};
	from->taken += len;
	if (len > 0 && to->s->is_used)
		fake_peer_sends(fake, to->s, data);
	bool ends = (from->s->is_shut || !from->s->is_used) && len == fresh && !from->has_ended;
	if (ends && to->s->is_used)
		fake_peer_closes(fake, to->s, from->s->was_reset ? ECONNRESET : 0);
	from->has_ended |= ends;
	return len > 0 || ends;
}

bool pair_turn(struct pair *pair)
{
	bool has_moved = turn_of(&pair->near, pair->client, false);
	has_moved |= turn_of(&pair->far, pair->server, true);
	for (int i = 0; i < pair->link_count; i++) {
		struct pair_link *link = &pair->links[i];
		has_moved |= carry(&link->client, &pair->far, &link->server);
		has_moved |= carry(&link->server, &pair->near, &link->client);
	}
	return has_moved;
}

void pair_settle(struct pair *pair)
{
	while (pair_turn(pair))
		;
}

struct pair_link *pair_open(struct pair *pair, const char *name, const struct peer *peer)
{
	struct pair_link *link = pair_connect(pair, name, peer);
	pair_settle(pair);
	assert_int_equal(link->client.heard.opened, 1);
	assert_int_equal(link->server.heard.opened, 1);
	assert_int_equal(link->client.heard.closed, 0);
	return link;
}

struct peer pair_take_session(struct pair_link *link)
{
	struct peer taken = {.session = link->peer.session};
	link->peer.session = NULL;
	return taken;
}

bool pair_use_turn(struct pair *pair)
{
	struct tls *tls = (struct tls *)pair->server;
	tls->driver.now_us = pair->far.driver.now_us;
	return channel_take_turn(tls);
}
