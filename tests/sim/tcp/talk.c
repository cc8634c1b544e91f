// Conversations. All that a side does follows from how much it has received and written; it acts
// through its ops, which may call back.

#include "tests/sim/tcp/talk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/sim/tcp/wire.h"
#include "tests/unit/controller/random.h"

#define WRITE_MAX 16384u // of one call

static uint64_t total(const struct talk_side *s, bool of_client)
{
	return (uint64_t)s->plan->exchanges *
	       (of_client ? s->plan->request_bytes : s->plan->answer_bytes);
}

bool talk_has_all(const struct talk_side *s)
{
	return s->received == total(s, !s->is_client);
}

void talk_init(struct talk_side *s, const struct talk_plan *plan, bool is_client,
	const struct talk_ops *ops, void *end, uint64_t *random)
{
	*s = (struct talk_side){.plan = plan,
		.ops = ops,
		.end = end,
		.is_client = is_client,
		.random = random,
		.next_us = UINT64_MAX};
}

static void close_end(struct talk_side *s, bool reset)
{
	s->is_over = true;
	s->next_us = UINT64_MAX;
	s->ops->close(s->end, reset);
}

static void break_off(struct talk_side *s, bool reset)
{
	s->error = ECANCELED;
	close_end(s, reset);
}

// --- writing

// Server: an answer for each request that is whole.
static void allow(struct talk_side *s)
{
	const uint64_t all = total(s, s->is_client);
	if (s->plan->is_eager)
		s->allowed = all;
	else if (!s->is_client)
		s->allowed = s->received / s->plan->request_bytes * s->plan->answer_bytes;
	s->allowed = s->allowed > all ? all : s->allowed;
}

static bool ends_now(const struct talk_side *s)
{
	if (s->written < total(s, s->is_client))
		return false;
	switch (s->plan->end) {
	case TALK_CLIENT_ENDS:
		return s->is_client ? talk_has_all(s) : s->has_eof;
	case TALK_SERVER_ENDS:
		return s->is_client ? s->has_eof : talk_has_all(s);
	case TALK_BOTH_END:
		return true;
	case TALK_HALF:
		return s->is_client || s->has_eof;
	default:
		return s->has_eof;
	}
}

// Write what may be written, and end if that was all.
static void go_on(struct talk_side *s)
{
	static char bytes[WRITE_MAX];
	allow(s);
	while (!s->is_over && s->written < s->allowed && !s->ops->is_high(s->end)) {
		uint64_t len = 1 + random_below(s->random, WRITE_MAX);
		len = len > s->allowed - s->written ? s->allowed - s->written : len;
		wire_fill(s->plan->salt + s->is_client, s->written, bytes, len);
		const uint64_t before = s->written;
		s->written += len;
		const size_t taken = s->ops->write(s->end, (struct span){bytes, len});
		s->written = before + taken;
		if (taken < len && !s->is_over)
			break_off(s, true);
	}
	if (s->is_over || s->has_shut || !ends_now(s))
		return;
	s->has_shut = true;
	// A server that has everything and has said everything lets go of it.
	if (!s->is_client && talk_has_all(s) && s->plan->end != TALK_BOTH_END)
		close_end(s, false);
	else
		s->ops->shut(s->end);
}

// --- what happens

// In the middle: whoever acts there acts.
static bool acts(struct talk_side *s)
{
	const enum talk_end end = s->plan->end;
	if (s->received < s->plan->middle_bytes)
		return false;
	if (s->is_client ? end == TALK_CLIENT_RESETS || end == TALK_CLIENT_VANISHES
			 : end == TALK_SERVER_RESETS || end == TALK_SERVER_LEAVES) {
		break_off(s, end != TALK_SERVER_LEAVES);
		return true;
	}
	return false;
}

void talk_opened(struct talk_side *s, uint64_t now_us)
{
	(void)now_us;
	if (s->is_client)
		s->allowed = s->plan->request_bytes;
	go_on(s);
}

static void maybe_pause(struct talk_side *s, uint64_t now_us)
{
	if (s->is_paused || s->next_us != UINT64_MAX || s->plan->pause == 0 ||
		random_below(s->random, 1000) >= s->plan->pause)
		return;
	s->is_paused = true;
	s->next_us = now_us + 1 + random_below(s->random, s->plan->pause_us);
	s->ops->pause(s->end);
}

void talk_data(struct talk_side *s, struct span bytes, uint64_t now_us)
{
	if (s->is_over || s->has_eof || bytes.len == 0 ||
		s->received + bytes.len > total(s, !s->is_client) ||
		!wire_matches(s->plan->salt + !s->is_client, s->received, bytes)) {
		fprintf(stderr, "%s: %zu bytes that nobody sent, at %llu of %llu\n",
			s->is_client ? "client" : "server", bytes.len,
			(unsigned long long)s->received,
			(unsigned long long)total(s, !s->is_client));
		abort();
	}
	const uint64_t answers = s->received / s->plan->answer_bytes;
	s->received += bytes.len;
	if (acts(s))
		return;
	if (s->is_client && s->received / s->plan->answer_bytes > answers && !s->is_paused) {
		const uint64_t think = s->plan->think_us;
		s->next_us = now_us + (think ? random_below(s->random, think) : 0);
	}
	maybe_pause(s, now_us);
	go_on(s);
}

void talk_time(struct talk_side *s, uint64_t now_us)
{
	(void)now_us;
	s->next_us = UINT64_MAX;
	if (s->is_over)
		return;
	if (s->is_paused) {
		s->is_paused = false;
		s->ops->resume(s->end);
	}
	if (s->is_over)
		return;
	if (s->is_client)
		s->allowed = (s->received / s->plan->answer_bytes + 1) * s->plan->request_bytes;
	go_on(s);
}

void talk_writable(struct talk_side *s, uint64_t now_us)
{
	(void)now_us;
	go_on(s);
}

void talk_eof(struct talk_side *s, uint64_t now_us)
{
	(void)now_us;
	if (s->has_eof || s->is_over)
		abort(); // told twice
	s->has_eof = true;
	// The other has ended before it said everything: no use in going on.
	if (!talk_has_all(s))
		break_off(s, true);
	else
		go_on(s);
}

void talk_closed(struct talk_side *s, int error)
{
	if (s->is_over)
		abort();
	s->is_over = true;
	s->error = error;
	s->next_us = UINT64_MAX;
}
