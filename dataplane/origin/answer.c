// Answers are parsed as strictly as requests: an origin that can be made to write something
// ambiguous is how the next visitor gets somebody else's answer. What is against the grammar ends
// the exchange and its connection; bytes after an answer, or before a request, end the connection.
//
// A head that comes whole is parsed where it lies; only a part of one is copied. It goes out in one
// write with what came of the body. The first bytes of the body are looked at before anything goes
// out, so that nonsense in them is still answered with 502.

#include "dataplane/origin/answer.h"

#include "dataplane/origin/answer_head.h"
#include "dataplane/origin/relay.h"
#include "drivers/tally.h"

#include <assert.h>

static void take_data(struct exchange *x, struct span in);
static void take_eof(struct exchange *x);
static void take_close(struct exchange *x, int error);

void answer_event(struct exchange *x, const struct stream_event *event)
{
	assert(x->state != RELAY_CONNECTING || event->kind == STREAM_OPENED ||
		event->kind == STREAM_CLOSED);
	switch (event->kind) {
	case STREAM_NONE: // origin_event() has skipped it
		return;
	case STREAM_OPENED:
		relay_opened(x);
		return;
	case STREAM_DATA:
		take_data(x, event->data);
		return;
	case STREAM_WRITABLE:
		relay_origin_is_writable(x);
		return;
	case STREAM_EOF:
		x->origin_has_ended = true;
		take_eof(x);
		return;
	case STREAM_CLOSED:
		x->origin_has_ended = true;
		x->connection->stream = NULL;
		take_close(x, event->error);
		return;
	}
}

// What the origin sends is no answer.
static bool reject(struct exchange *x, _Atomic uint64_t *counter)
{
	tally_add(counter, 1);
	relay_blame(x, false);
	return relay_fail(x, 502);
}

// Pass on the next bytes of the body; finish the exchange when it is whole.
static void pass_body(struct exchange *x, struct span in)
{
	while (in.len > 0 && !x->answer.has_ended) {
		struct body_step step;
		if (!body_step(&x->answer, in, SPAN(""), &step)) {
			reject(x, &x->origin->counters.answer_body_bad);
			return;
		}
		in = span_from(in, step.consumed);
		if (step.count > 0 && !relay_to_client(x, step.parts, step.count))
			return;
	}
	if (x->answer.has_ended)
		relay_finish(x, in.len > 0);
}

// Write the head as the client gets it, into the scratch.
static struct span write_head(struct exchange *x, const struct http_head *head,
	enum answer_head_then then, const struct exchange_extra *extra)
{
	struct origin *origin = x->origin;
	size_t len = answer_head_write(
		origin->scratch, origin->scratch_bytes, head, x->answer.out, then, extra);
	return (struct span){origin->scratch, len};
}

static void report_commands(struct exchange *x, const struct http_head *head)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_sluice_command);
	for (; field; field = http_field_next(head, field)) {
		struct span value = http_field_value(head, field);
		if (span_is_equal_caseless(value, SPAN("end")))
			x->origin->calls->command(x->user, EXCHANGE_COMMAND_END);
		else if (span_is_equal_caseless(value, SPAN("renew")))
			x->origin->calls->command(x->user, EXCHANGE_COMMAND_RENEW);
	}
}

// How the body leaves: HTTP/1.0 knows no chunks (RFC 9112 6.1).
static enum http_body leaves_as(const struct exchange *x, enum http_body in)
{
	if (in == HTTP_BODY_NONE || in == HTTP_BODY_LENGTH)
		return in;
	return x->client_minor == 0 ? HTTP_BODY_CLOSE : HTTP_BODY_CHUNKED;
}

// An answer before the request's body has ended: what the client still sends cannot be told from a
// next request, so its connection ends with this answer. If it waits for 100, its body is not sent
// on any more, and the origin's connection, which may wait for it, ends too.
static void note_early(struct exchange *x)
{
	if (x->ask.has_ended)
		return;
	tally_add(&x->origin->counters.answer_early, 1);
	x->client_keeps = false;
	x->body_is_refused = x->expects_continue && x->ask_bytes == 0;
	x->origin_keeps &= !x->body_is_refused;
}

static void take_final(struct exchange *x, const struct http_head *head, struct span rest)
{
	struct origin *origin = x->origin;
	struct body_step step = {.count = 1}; // parts[0] is for the head
	body_begin(&x->answer, head->body, head->content_length, leaves_as(x, head->body));
	if (!x->answer.has_ended && !body_step(&x->answer, rest, SPAN("head"), &step)) {
		reject(x, &origin->counters.answer_body_bad);
		return;
	}
	server_answered(x->connection->server);
	tally_add(&origin->counters.answers, 1);
	x->origin_keeps = head->keep_alive;
	note_early(x);

	report_commands(x, head);
	struct exchange_extra extra = {0};
	origin->calls->answered(x->user, head->status, &extra);
	if (extra.close || x->client_has_ended || x->answer.out == HTTP_BODY_CLOSE)
		x->client_keeps = false;
	enum answer_head_then then = !x->client_keeps       ? ANSWER_HEAD_CLOSE
				     : x->client_minor == 0 ? ANSWER_HEAD_KEEP_ALIVE
							    : ANSWER_HEAD_GOES_ON;
	step.parts[0] = write_head(x, head, then, &extra);
	relay_set_state(x, RELAY_ANSWERING);
	relay_touch(x);
	if (relay_to_client(x, step.parts, step.count))
		pass_body(x, span_from(rest, step.consumed));
}

static void take_switch(struct exchange *x, const struct http_head *head, struct span rest)
{
	struct origin *origin = x->origin;
	if (!x->may_upgrade || !head->has_upgrade) {
		reject(x, &origin->counters.answer_switched);
		return;
	}
	server_answered(x->connection->server);
	tally_add(&origin->counters.answers, 1);
	tally_add(&origin->counters.tunnels, 1);
	report_commands(x, head);
	struct exchange_extra extra = {0};
	origin->calls->answered(x->user, head->status, &extra);
	struct span parts[] = {write_head(x, head, ANSWER_HEAD_UPGRADE, &extra), rest};
	relay_set_state(x, RELAY_TUNNEL);
	relay_touch(x);
	if (!relay_to_client(x, parts, rest.len > 0 ? 2 : 1))
		return;
	stream_resume(x->client_driver, x->client);
	uint64_t serial = x->serial;
	origin->calls->tunnelled(x->user);
	if (x->serial == serial && x->state == RELAY_TUNNEL && x->client_has_ended)
		stream_shut(x->connection->driver, x->connection->stream); // after what was held
}

// Returns whether the exchange waits for another head.
static bool take_interim(struct exchange *x, const struct http_head *head)
{
	static const struct exchange_extra nothing;
	struct origin *origin = x->origin;
	tally_add(&origin->counters.interims, 1);
	if (++x->interims > RELAY_INTERIMS_MAX)
		return reject(x, &origin->counters.answer_flood);
	if (head->status == 100 && x->expects_continue) {
		x->expects_continue = false;
		if (!x->body_since_us && !x->ask.has_ended)
			x->body_since_us = origin->now_us;
		relay_schedule(x);
	}
	if (x->client_minor == 0)
		return true;
	struct span out = write_head(x, head, ANSWER_HEAD_GOES_ON, &nothing);
	return relay_to_client(x, &out, 1);
}

// A whole head, and what follows it. Returns whether another head follows in `rest`.
static bool take_parsed(struct exchange *x, struct span bytes, struct span rest)
{
	struct origin *origin = x->origin;
	struct http_head *head = &origin->answer;
	enum http_result result = http_answer_parse(bytes, &origin->plan.answer, x->method, head);
	if (result != HTTP_OK)
		return reject(x, result == HTTP_TOO_LARGE ? &origin->counters.answer_too_large
							  : &origin->counters.answer_bad);
	if (head->status == 101)
		take_switch(x, head, rest);
	else if (head->status >= 200)
		take_final(x, head, rest);
	else
		return take_interim(x, head);
	return false;
}

// Look for a head in what was kept and what comes now. Returns whether another head follows in what
// is left of `in`.
static bool take_head(struct exchange *x, struct span *in)
{
	struct origin *origin = x->origin;
	struct buffer *held = x->answer_head;
	uint32_t held_bytes = held ? held->len : 0, head_bytes;
	struct span bytes = *in;
	if (held) {
		buffer_append(&origin->buffers, held, *in);
		bytes = (struct span){held->bytes, held->len};
	}
	enum http_result result =
		http_head_end(bytes, &origin->plan.answer, &x->answer_scanned, &head_bytes);
	if (result == HTTP_MORE) {
		if (held)
			return false;
		x->answer_head = buffer_take(&origin->buffers);
		if (x->answer_head) {
			buffer_append(&origin->buffers, x->answer_head, *in);
			return false;
		}
		tally_add(&origin->counters.buffer_none, 1);
		return relay_fail(x, 503);
	}
	if (result != HTTP_OK)
		return reject(x, result == HTTP_BAD ? &origin->counters.answer_bad
						    : &origin->counters.answer_too_large);
	*in = span_from(*in, head_bytes - held_bytes);
	x->answer_scanned = 0;
	x->answer_head = NULL;
	bool goes_on = take_parsed(x, (struct span){bytes.at, head_bytes}, *in);
	buffer_give(&origin->buffers, held); // the exchange may be gone, the pool is not
	return goes_on;
}

static void take_data(struct exchange *x, struct span in)
{
	struct origin *origin = x->origin;
	if (x->state == RELAY_TUNNEL) {
		relay_touch(x);
		relay_to_client(x, &in, 1);
	} else if (x->state == RELAY_ANSWERING) {
		relay_touch(x);
		pass_body(x, in);
	} else if (x->asked_turn == origin->turn) {
		tally_add(&origin->counters.answer_unasked, 1); // it was on its way before we asked
		relay_lost(x, false, 502);
	} else {
		buffer_give(&origin->buffers, x->asks); // not to be asked again
		x->asks = NULL;
		while (in.len > 0 && take_head(x, &in))
			;
	}
}

static void take_eof(struct exchange *x)
{
	struct origin *origin = x->origin;
	if (x->state == RELAY_ASKED) {
		tally_add(&origin->counters.answer_none, 1);
		relay_lost(x, false, 502);
	} else if (x->state == RELAY_TUNNEL) {
		if (x->client_has_ended)
			relay_close_tunnel(x);
		else
			stream_shut(x->client_driver, x->client);
	} else {
		struct body_step step;
		if (!body_close(&x->answer, &step))
			reject(x, &origin->counters.answer_body_cut);
		else if (step.count == 0 || relay_to_client(x, step.parts, step.count))
			relay_finish(x, false);
	}
}

static void take_close(struct exchange *x, int error)
{
	struct origin *origin = x->origin;
	if (x->state == RELAY_CONNECTING) {
		tally_add(&origin->counters.connects_failed, 1);
		relay_lost(x, true, 502);
	} else if (x->state == RELAY_TUNNEL) {
		error ? relay_fail(x, 502) : relay_close_tunnel(x);
	} else if (x->state == RELAY_ANSWERING && error) {
		reject(x, &origin->counters.answer_body_cut); // perhaps not all of it came
	} else {
		take_eof(x);
	}
}
