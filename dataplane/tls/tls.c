// The driver: rounds, connects, and calls out.
//
// A TLS stream is found by its inner stream's `user`, and told from other streams by lying in our
// table: no field of the inner stream is needed for it.
//
// Sealed bytes are never kept here. What a write seals goes to the inner stream at once, and what
// the inner stream brings is opened at once; so back-pressure is the inner stream's own.

#include "dataplane/tls/tls.h"

#include "dataplane/tls/channel.h"
#include "dataplane/tls/fault.h"
#include "dataplane/tls/identity.h"
#include "dataplane/tls/server.h"
#include "dataplane/tls/trust.h"
#include "drivers/tally.h"

#include <assert.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

static const struct stream_driver_ops ops;
static const struct ticket_keys no_keys;
static const struct identity *const nobody[TLS_LISTENERS_MAX];

static struct tls *tls_of(const struct stream_driver *driver)
{
	assert(driver->ops == &ops);
	return (struct tls *)(uintptr_t)driver;
}

static struct channel *channel_of(const struct stream *stream)
{
	return (struct channel *)(uintptr_t)stream;
}

struct stream_driver *tls_create(const struct tls_plan *plan)
{
	assert(plan->streams_max > 0);
	struct tls *tls = calloc(1, sizeof(*tls)); // COLD: at start
	if (!tls)
		return NULL;
	tls->driver = (struct stream_driver){.ops = &ops, .queue_high = plan->inner->queue_high};
	tls->inner = plan->inner;
	tls->worker = plan->worker;
	tls->now_s = plan->now_s;
	TAILQ_INIT(&tls->free);
	TAILQ_INIT(&tls->closed);
	TAILQ_INIT(&tls->waiting);
	tls->handshake_ns = plan->handshakes_per_s ? 1000000000 / plan->handshakes_per_s : 0;
	tls->service = (struct tls_service){nobody, &no_keys};
	tls->ticket_cipher = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	tls->channel_max = tls->uncut_count = plan->streams_max;
	tls->channels = calloc(plan->streams_max, sizeof(struct channel)); // COLD: at start
	tls->methods = bio_methods();
	if (tls->channels && tls->methods && tls->ticket_cipher)
		return &tls->driver;
	stream_destroy(&tls->driver);
	return NULL;
}

static void destroy(struct stream_driver *driver)
{
	struct tls *tls = tls_of(driver);
	for (uint32_t i = tls->uncut_count; tls->channels && i < tls->channel_max; i++)
		assert(!tls->channels[i].ssl);
	free(tls->channels);
	BIO_meth_free(tls->methods);
	EVP_CIPHER_free(tls->ticket_cipher);
	free(tls);
}

size_t tls_stream_bytes(void)
{
	return sizeof(struct channel);
}

size_t tls_fixed_bytes(void)
{
	return sizeof(struct tls);
}

const struct tls_counters *tls_counters(const struct stream_driver *tls)
{
	return &tls_of(tls)->counters;
}

// ---- Events in ----

static struct channel *carried_by(const struct tls *tls, const struct stream *inner)
{
	uintptr_t offset = (uintptr_t)inner->user - (uintptr_t)tls->channels;
	return offset < tls->channel_max * sizeof(struct channel) ? inner->user : NULL;
}

bool tls_carries(const struct stream_driver *tls, const struct stream *inner)
{
	return carried_by(tls_of(tls), inner);
}

void tls_take(struct stream_driver *driver, const struct stream_event *burst, int count)
{
	struct tls *tls = tls_of(driver);
	assert(tls->burst_at == tls->burst_count);
	tls->burst = burst;
	tls->burst_count = tls->used_count > 0 ? count : 0;
	tls->burst_at = 0;
	struct channel *channel;
	while ((channel = TAILQ_FIRST(&tls->closed))) {
		TAILQ_REMOVE(&tls->closed, channel, siblings);
		channel_give(tls, channel);
	}
}

static int poll_round(
	struct stream_driver *driver, struct stream_event *events, int events_max, uint32_t wait_us)
{
	struct tls *tls = tls_of(driver);
	(void)wait_us; // the inner driver has waited
	assert(events_max >= CHANNEL_EVENTS_MAX);
	driver->now_us = tls->inner->now_us;
	tls->events = events;
	tls->event_count = 0;
	tls->plain_bytes = 0;
	for (; tls->burst_at < tls->burst_count; tls->burst_at++) {
		const struct stream_event *event = &tls->burst[tls->burst_at];
		struct channel *channel =
			event->kind == STREAM_NONE ? NULL : carried_by(tls, event->stream);
		if (tls->event_count + CHANNEL_EVENTS_MAX > events_max)
			break;
		if (channel && !channel_event(tls, channel, event))
			break;
		tls->is_begun = false;
	}
	assert(tls->event_count > 0 || tls->burst_at == tls->burst_count);
	if (tls->burst_at == tls->burst_count)
		channel_go_on_waiting(tls, events_max);
	return tls->event_count;
}

uint64_t tls_due_us(const struct stream_driver *tls)
{
	return channel_turn_us(tls_of(tls));
}

// ---- Accepts ----

void tls_serve(struct stream_driver *tls, const struct tls_service *service)
{
	assert(service->identities);
	assert(service->ticket_keys);
	tls_of(tls)->service = *service;
}

bool tls_serves(const struct stream_driver *tls, unsigned listener)
{
	assert(listener < TLS_LISTENERS_MAX);
	return tls_of(tls)->service.identities[listener];
}

struct stream *tls_accept(struct stream_driver *driver, struct stream *inner, void *user)
{
	struct tls *tls = tls_of(driver);
	assert(tls_serves(driver, inner->listener));
	struct channel *channel = channel_take(tls);
	if (!channel) {
		tally_add(&tls->counters.stream_none, 1);
		return NULL;
	}
	channel->stream = *inner;
	channel->stream.user = user;
	channel_set_state(channel, CHANNEL_CONNECTING);
	channel->ssl = server_begin(tls, channel);
	if (!channel->ssl) {
		tally_add(&tls->counters.memory_none, 1);
		channel_give(tls, channel);
		return NULL;
	}
	channel->carrier.inner = inner;
	inner->user = channel;
	return &channel->stream;
}

// ---- Connects ----

// Verify the peer's name, and tell it by which name it is called unless that is an address
// (RFC 6066 3).
static bool set_name(SSL *ssl, const char *name)
{
	if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name))
		return true;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
}

static SSL *make_client(struct tls *tls, const struct tls_target *target, struct channel *channel)
{
	ERR_clear_error();
	SSL *ssl = SSL_new(trust_context(target->trust, tls->worker));
	BIO *bio = bio_new(tls->methods, &channel->carrier);
	if (!ssl || !bio || !set_name(ssl, target->name)) {
		BIO_free(bio);
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_bio(ssl, bio, bio); // takes it
	SSL_set_connect_state(ssl);
	peer_resume(channel->peer, ssl);
	return ssl;
}

struct stream *tls_connect(struct stream_driver *driver, const struct stream_address *to,
	const struct tls_target *target, struct peer *peer, void *user)
{
	struct tls *tls = tls_of(driver);
	struct channel *channel = channel_take(tls);
	if (!channel) {
		tally_add(&tls->counters.stream_none, 1);
		return NULL;
	}
	channel->stream = (struct stream){.user = user, .listener = STREAM_CONNECTED, .peer = *to};
	channel->peer = peer;
	channel_set_state(channel, CHANNEL_CONNECTING);
	channel->ssl = make_client(tls, target, channel);
	if (!channel->ssl)
		tally_add(&tls->counters.memory_none, 1);
	else
		channel->carrier.inner = stream_connect(tls->inner, to, channel);
	if (channel->carrier.inner)
		return &channel->stream;
	channel_release(channel);
	channel_give(tls, channel);
	return NULL;
}

// ---- Calls out ----
//
// After a channel has failed its owner may not know yet: until STREAM_CLOSED is seen, calls change
// nothing.

// The next bytes of the parts, at most a record of them, taken off the parts: where they lie if one
// part fills the record, else put together.
static struct span next_record(struct tls *tls, struct span *parts, unsigned count)
{
	size_t len = 0;
	for (unsigned i = 0; i < count && len < TLS_RECORD_BYTES; i++) {
		size_t room = TLS_RECORD_BYTES - len;
		struct span piece = {parts[i].at, parts[i].len < room ? parts[i].len : room};
		parts[i] = span_from(parts[i], piece.len);
		if (piece.len == TLS_RECORD_BYTES)
			return piece;
		if (piece.len > 0)
			memcpy(tls->record + len, piece.at, piece.len);
		len += piece.len;
	}
	return (struct span){tls->record, len};
}

// Returns whether the inner stream has taken the record.
static bool seal(struct channel *channel, struct span plain)
{
	size_t taken;
	channel->carrier.is_asked = true;
	ERR_clear_error();
	bool is_good = SSL_write_ex(channel->ssl, plain.at, plain.len, &taken) == 1;
	channel->carrier.is_asked = false;
	assert(!is_good || taken == plain.len);
	return is_good;
}

static size_t write_parts(struct stream_driver *driver, struct stream *stream,
	const struct span *parts, unsigned count)
{
	struct tls *tls = tls_of(driver);
	struct channel *channel = channel_of(stream);
	struct span rest[STREAM_PARTS_MAX];
	size_t total = 0, taken = 0;
	assert(count <= STREAM_PARTS_MAX);
	for (unsigned i = 0; i < count; i++) {
		rest[i] = parts[i];
		total += parts[i].len;
	}
	if (channel->state == CHANNEL_CLOSED)
		return total;
	assert(channel->state == CHANNEL_OPEN);
	assert(!channel->carrier.is_shut);
	while (taken < total) {
		struct span record = next_record(tls, rest, count);
		if (!seal(channel, record)) {
			tally_add(&tls->counters.full, 1);
			break;
		}
		taken += record.len;
	}
	return taken;
}

static size_t queued(const struct stream_driver *driver, const struct stream *stream)
{
	const struct stream *inner = channel_of(stream)->carrier.inner;
	return inner ? stream_queued(tls_of(driver)->inner, inner) : 0;
}

static void say_end(struct channel *channel)
{
	channel->carrier.is_asked = true;
	ERR_clear_error();
	SSL_shutdown(channel->ssl); // sends close_notify; what comes is still read
	channel->carrier.is_asked = false;
	channel->carrier.is_shut = true;
}

static void shut_stream(struct stream_driver *driver, struct stream *stream)
{
	struct channel *channel = channel_of(stream);
	if (channel->state == CHANNEL_CLOSED || channel->carrier.is_shut)
		return;
	assert(channel->state == CHANNEL_OPEN);
	say_end(channel);
	stream_shut(tls_of(driver)->inner, channel->carrier.inner);
}

static void close_stream(struct stream_driver *driver, struct stream *stream, bool reset)
{
	struct tls *tls = tls_of(driver);
	struct channel *channel = channel_of(stream);
	for (int i = 0; i < tls->event_count; i++)
		if (tls->events[i].stream == stream)
			tls->events[i].kind = STREAM_NONE;
	if (channel->state == CHANNEL_CLOSED)
		return; // the next turn frees it
	if (channel->state == CHANNEL_OPEN && !reset && !channel->carrier.is_shut)
		say_end(channel);
	stream_close(tls->inner, channel->carrier.inner, reset);
	channel_release(channel);
	channel_give(tls, channel);
}

static void pause_stream(struct stream_driver *driver, struct stream *stream)
{
	struct stream *inner = channel_of(stream)->carrier.inner;
	if (inner)
		stream_pause(tls_of(driver)->inner, inner);
}

static void resume_stream(struct stream_driver *driver, struct stream *stream)
{
	struct stream *inner = channel_of(stream)->carrier.inner;
	if (inner)
		stream_resume(tls_of(driver)->inner, inner);
}

void tls_late(struct stream_driver *tls, struct stream *stream)
{
	struct channel *channel = channel_of(stream);
	if (channel->state != CHANNEL_HANDSHAKE && channel->state != CHANNEL_WAITING)
		return; // the connection itself is late
	tally_add(&tls_of(tls)->counters.handshake_late, 1);
	if (channel->peer)
		peer_note(channel->peer, FAULT_LATE);
}

static const struct stream_driver_ops ops = {
	.poll = poll_round,
	.write = write_parts,
	.queued = queued,
	.shut = shut_stream,
	.close = close_stream,
	.pause = pause_stream,
	.resume = resume_stream,
	.destroy = destroy,
};
