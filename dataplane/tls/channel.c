// Events in. Each ends with OpenSSL having read all there is, so nothing is left for later but what
// finds no room in the round, and that is gone on with in the next round of the same turn.
//
// OpenSSL's queue of errors is the thread's: it is cleared before each call that may add to it.

#include "dataplane/tls/channel.h"

#include "dataplane/tls/fault.h"
#include "drivers/tally.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

// From each state to which others.
static const uint8_t moves[] = {
	[CHANNEL_FREE] = 1 << CHANNEL_CONNECTING,
	[CHANNEL_CONNECTING] = 1 << CHANNEL_HANDSHAKE | 1 << CHANNEL_CLOSED | 1 << CHANNEL_FREE,
	[CHANNEL_HANDSHAKE] =
		1 << CHANNEL_WAITING | 1 << CHANNEL_OPEN | 1 << CHANNEL_CLOSED | 1 << CHANNEL_FREE,
	[CHANNEL_WAITING] = 1 << CHANNEL_HANDSHAKE | 1 << CHANNEL_CLOSED | 1 << CHANNEL_FREE,
	[CHANNEL_OPEN] = 1 << CHANNEL_CLOSED | 1 << CHANNEL_FREE,
	[CHANNEL_CLOSED] = 1 << CHANNEL_FREE,
};

void channel_set_state(struct channel *channel, enum channel_state to)
{
	assert(moves[channel->state] & 1u << to);
	if (channel->state == CHANNEL_WAITING)
		TAILQ_REMOVE(&channel->tls->waiting, channel, siblings);
	if (to == CHANNEL_WAITING)
		TAILQ_INSERT_TAIL(&channel->tls->waiting, channel, siblings);
	channel->state = (uint8_t)to;
}

struct channel *channel_take(struct tls *tls)
{
	struct channel *channel = TAILQ_FIRST(&tls->free);
	if (channel)
		TAILQ_REMOVE(&tls->free, channel, siblings);
	else if (tls->uncut_count > 0)
		channel = &tls->channels[--tls->uncut_count];
	else
		return NULL;
	*channel = (struct channel){.tls = tls, .carrier = {.inner_driver = tls->inner}};
	tls->used_count++;
	return channel;
}

void channel_give(struct tls *tls, struct channel *channel)
{
	assert(!channel->ssl);
	channel_set_state(channel, CHANNEL_FREE);
	TAILQ_INSERT_HEAD(&tls->free, channel, siblings);
	tls->used_count--;
}

void channel_release(struct channel *channel)
{
	// Else OpenSSL would take the session for that of a connection that was cut.
	if (channel->state == CHANNEL_OPEN)
		SSL_set_shutdown(channel->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(channel->ssl);
	channel->ssl = NULL;
}

static struct stream_event *emit(
	struct tls *tls, struct channel *channel, enum stream_event_kind kind)
{
	struct stream_event *event = &tls->events[tls->event_count++];
	*event = (struct stream_event){.kind = kind, .stream = &channel->stream};
	return event;
}

// The channel's last event. The inner stream, if there still is one, sends what is queued: an
// alert, perhaps.
static void end(struct tls *tls, struct channel *channel, int error)
{
	channel_release(channel);
	if (channel->carrier.inner)
		stream_close(tls->inner, channel->carrier.inner, false);
	channel->carrier.inner = NULL;
	channel_set_state(channel, CHANNEL_CLOSED);
	TAILQ_INSERT_TAIL(&tls->closed, channel, siblings);
	emit(tls, channel, STREAM_CLOSED)->error = error;
}

// ---- The handshake ----

static uint32_t fault_of(const SSL *ssl)
{
	long verified = SSL_get_verify_result(ssl);
	unsigned long error = ERR_peek_error(); // the first is the cause
	if (verified != X509_V_OK)
		return (uint32_t)verified;
	return error ? (uint32_t)error : FAULT_UNKNOWN;
}

static void fail_handshake(struct tls *tls, struct channel *channel, uint32_t fault)
{
	int error = EPROTO;
	if (fault == FAULT_CUT) {
		tally_add(&tls->counters.handshake_cut, 1);
		error = ECONNRESET;
	} else if (fault < FAULT_CUT) {
		tally_add(&tls->counters.handshake_certificate, 1);
		error = EKEYREJECTED;
	} else {
		tally_add(&tls->counters.handshake_protocol, 1);
	}
	if (channel->peer)
		peer_note(channel->peer, fault);
	end(tls, channel, error);
}

static void fail_full(struct tls *tls, struct channel *channel)
{
	tally_add(&tls->counters.full, 1);
	end(tls, channel, ENOBUFS);
}

// ---- Turns ----
//
// Handshakes are the costliest thing that a visitor can ask for before we know anything of it.
// Their rate is bounded by a bucket that holds HANDSHAKE_BURST_NS of it, kept as the time up to
// which it is used up; who finds it empty waits behind who came before.

#define HANDSHAKE_BURST_NS 20000000u // a turn that takes longer, others would feel

static uint64_t now_ns(const struct tls *tls)
{
	return tls->driver.now_us * 1000;
}

// How far the bucket may be used up ahead of time, before one more.
static uint64_t slack_ns(const struct tls *tls)
{
	return tls->handshake_ns < HANDSHAKE_BURST_NS ? HANDSHAKE_BURST_NS - tls->handshake_ns : 0;
}

static bool has_turn_left(const struct tls *tls)
{
	return tls->turns_ns <= now_ns(tls) + slack_ns(tls);
}

static void use_turn(struct tls *tls)
{
	if (tls->turns_ns < now_ns(tls))
		tls->turns_ns = now_ns(tls);
	tls->turns_ns += tls->handshake_ns;
}

bool channel_take_turn(struct tls *tls)
{
	if (!TAILQ_EMPTY(&tls->waiting) || !has_turn_left(tls))
		return false;
	use_turn(tls);
	return true;
}

uint64_t channel_turn_us(const struct tls *tls)
{
	if (TAILQ_EMPTY(&tls->waiting))
		return UINT64_MAX;
	uint64_t slack = slack_ns(tls);
	return tls->turns_ns <= slack ? 0 : (tls->turns_ns - slack + 999) / 1000;
}

// Its hello is all that a client has to say for now; what comes behind is none that we asked for.
static void wait_for_turn(struct tls *tls, struct channel *channel)
{
	if (channel->carrier.in.len > 0) {
		fail_handshake(tls, channel, FAULT_UNKNOWN);
		return;
	}
	tally_add(&tls->counters.put_off, 1);
	channel_set_state(channel, CHANNEL_WAITING);
	stream_pause(tls->inner, channel->carrier.inner);
}

static void go_on_with_handshake(struct tls *tls, struct channel *channel)
{
	SSL *ssl = channel->ssl;
	ERR_clear_error();
	int ret = SSL_do_handshake(ssl);
	if (ret != 1) {
		int reason = SSL_get_error(ssl, ret);
		if (reason == SSL_ERROR_WANT_CLIENT_HELLO_CB)
			wait_for_turn(tls, channel);
		else if (reason == SSL_ERROR_WANT_READ)
			return;
		else if (channel->carrier.is_full)
			fail_full(tls, channel);
		else
			fail_handshake(tls, channel, fault_of(ssl));
		return;
	}
	if (channel->peer) {
		assert(SSL_get_verify_mode(ssl) == SSL_VERIFY_PEER);
		assert(SSL_get_verify_result(ssl) == X509_V_OK);
		peer_note(channel->peer, 0);
	}
	tally_add(&tls->counters.handshakes, 1);
	tally_add(&tls->counters.resumed, SSL_session_reused(ssl));
	channel_set_state(channel, CHANNEL_OPEN);
	emit(tls, channel, STREAM_OPENED);
}

void channel_go_on_waiting(struct tls *tls, int events_max)
{
	struct channel *channel;
	while ((channel = TAILQ_FIRST(&tls->waiting)) && has_turn_left(tls) &&
		tls->event_count + CHANNEL_EVENTS_MAX <= events_max) {
		use_turn(tls);
		channel->has_turn = true;
		channel_set_state(channel, CHANNEL_HANDSHAKE);
		stream_resume(tls->inner, channel->carrier.inner);
		go_on_with_handshake(tls, channel);
	}
}

// ---- Plain text ----

// Read as much as there is, or as the round has room for. Returns the bytes; *result is that of the
// last SSL_read().
static size_t read_plain(struct tls *tls, struct channel *channel, int *result)
{
	char *begin = tls->plain + tls->plain_bytes;
	size_t len = 0, got;
	*result = 1;
	while (tls->plain_bytes + TLS_RECORD_BYTES <= TLS_ROUND_BYTES) {
		ERR_clear_error();
		*result = SSL_read_ex(channel->ssl, begin + len, TLS_RECORD_BYTES, &got);
		if (*result <= 0)
			break;
		len += got;
		tls->plain_bytes += got;
	}
	return len;
}

static void take_end(struct tls *tls, struct channel *channel)
{
	channel->has_ended = true;
	channel->carrier.in = SPAN(""); // what follows is none of its
	emit(tls, channel, STREAM_EOF);
}

static bool take_plain(struct tls *tls, struct channel *channel)
{
	int result;
	char *begin = tls->plain + tls->plain_bytes;
	size_t len = read_plain(tls, channel, &result);
	int reason = SSL_get_error(channel->ssl, result);
	if (len > 0)
		emit(tls, channel, STREAM_DATA)->data = (struct span){begin, len};
	if (reason == SSL_ERROR_NONE)
		return false; // no room: there may be more
	if (reason == SSL_ERROR_WANT_READ) {
		assert(channel->carrier.in.len == 0);
	} else if (reason == SSL_ERROR_ZERO_RETURN) {
		take_end(tls, channel);
	} else if (channel->carrier.is_full) {
		fail_full(tls, channel);
	} else {
		tally_add(&tls->counters.broken, 1);
		end(tls, channel, EPROTO);
	}
	return true;
}

// ---- Events of the inner stream ----

// A few bytes can say that a hello of 128 kB follows, for which OpenSSL makes room at once. No
// honest one comes near, nor in a record too short for the message's head.
static bool hello_is_sane(struct channel *channel)
{
	uint8_t room = CHANNEL_HELLO_BYTES - channel->hello_seen;
	size_t len = channel->carrier.in.len < room ? channel->carrier.in.len : room;
	const uint8_t *hello = channel->hello;
	memcpy(channel->hello + channel->hello_seen, channel->carrier.in.at, len);
	channel->hello_seen += (uint8_t)len;
	if (channel->hello_seen < CHANNEL_HELLO_BYTES || hello[0] != SSL3_RT_HANDSHAKE)
		return true; // OpenSSL says what is wrong with it
	unsigned record = hello[3] << 8 | hello[4];
	unsigned message = hello[6] << 16 | hello[7] << 8 | hello[8];
	return record >= 4 && message <= TLS_HELLO_BYTES_MAX;
}

static bool take_data(struct tls *tls, struct channel *channel)
{
	if (channel->state == CHANNEL_WAITING) {
		fail_handshake(tls, channel, FAULT_UNKNOWN);
		return true;
	}
	if (channel->state == CHANNEL_HANDSHAKE) {
		if (!channel->peer && channel->hello_seen < CHANNEL_HELLO_BYTES &&
			!hello_is_sane(channel)) {
			fail_handshake(tls, channel, FAULT_UNKNOWN);
			return true;
		}
		go_on_with_handshake(tls, channel);
	}
	if (channel->state == CHANNEL_OPEN && !channel->has_ended)
		return take_plain(tls, channel);
	channel->carrier.in = SPAN("");
	return true;
}

// The connection ends in one direction, or in both, with an error or without.
static void take_cut(struct tls *tls, struct channel *channel, int error)
{
	if (channel->state == CHANNEL_HANDSHAKE || channel->state == CHANNEL_WAITING) {
		fail_handshake(tls, channel, FAULT_CUT);
		return;
	}
	if (channel->state == CHANNEL_OPEN && !channel->has_ended) {
		tally_add(&tls->counters.cut, 1);
		error = error ? error : ECONNRESET;
	}
	end(tls, channel, error);
}

bool channel_event(struct tls *tls, struct channel *channel, const struct stream_event *event)
{
	switch (event->kind) {
	case STREAM_NONE:
		return true;
	case STREAM_OPENED:
		channel->stream.local = event->stream->local;
		channel_set_state(channel, CHANNEL_HANDSHAKE);
		go_on_with_handshake(tls, channel);
		return true;
	case STREAM_DATA:
		if (!tls->is_begun)
			channel->carrier.in = event->data;
		tls->is_begun = true;
		return take_data(tls, channel);
	case STREAM_WRITABLE:
		if (channel->state == CHANNEL_OPEN)
			emit(tls, channel, STREAM_WRITABLE);
		return true;
	case STREAM_EOF:
		if (!channel->has_ended)
			take_cut(tls, channel, 0);
		return true;
	case STREAM_CLOSED:
		channel->carrier.inner = NULL; // the inner driver has taken it back
		take_cut(tls, channel, event->error);
		return true;
	}
	return true;
}
