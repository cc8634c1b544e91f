// When an exchange is due, and what it gets when it is.
//
// Three clocks run beside each other: the state's (something has to move), the request body's (it
// has to be whole in time, and not slower than a rate), and the session's. `wake` in the heap is
// never later than the first of them, but may be earlier, so that the many events that put a
// deadline off cost nothing; when it fires it is set anew.

#include "dataplane/origin/relay.h"

#include "drivers/tally.h"

#include <assert.h>

static uint64_t min_us(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t after_us(uint64_t at_us, uint64_t more_us)
{
	return at_us > DEADLINE_NEVER - more_us ? DEADLINE_NEVER : at_us + more_us;
}

// The body must have ended by `late`, and on average be as fast as the plan says by `slow`.
static uint64_t body_late_us(const struct exchange *x)
{
	return x->body_since_us + x->origin->plan.body_us;
}

static uint64_t body_slow_us(const struct exchange *x)
{
	return x->body_since_us + x->origin->plan.body_grace_us +
	       (x->ask_bytes >> 10) * x->origin->body_kib_us;
}

static uint64_t body_due_us(const struct exchange *x)
{
	if (x->ask.has_ended || x->body_is_refused || x->client_is_paused || !x->body_since_us)
		return DEADLINE_NEVER;
	return min_us(body_late_us(x), body_slow_us(x));
}

static uint64_t session_due_us(const struct exchange *x)
{
	return after_us(x->ends_us, x->state == RELAY_TUNNEL ? 0 : x->origin->plan.late_us);
}

void relay_schedule(struct exchange *x)
{
	uint64_t due = min_us(min_us(x->stage_until_us, body_due_us(x)), session_due_us(x));
	if (!x->wake.place || due < x->wake.at_us)
		deadline_set(&x->origin->deadlines, &x->wake, due);
}

void relay_touch(struct exchange *x)
{
	uint64_t now = x->origin->now_us;
	switch ((enum relay_state)x->state) {
	case RELAY_CONNECTING:
		x->stage_until_us = now + x->limits.connect_us;
		break;
	case RELAY_ASKED:
	case RELAY_ANSWERING:
		x->stage_until_us = now + x->limits.answer_us;
		break;
	case RELAY_TUNNEL:
		x->stage_until_us = now + x->origin->plan.tunnel_us;
		break;
	case RELAY_FREE:
		assert(!"a free exchange has no time");
	}
	relay_schedule(x);
}

static void expire_body(struct exchange *x)
{
	struct origin_counters *counters = &x->origin->counters;
	if (body_late_us(x) <= x->origin->now_us)
		tally_add(&counters->request_body_late, 1);
	else
		tally_add(&counters->request_body_slow, 1);
	relay_fail(x, 408);
}

static void expire_stage(struct exchange *x)
{
	struct origin_counters *counters = &x->origin->counters;
	switch ((enum relay_state)x->state) {
	case RELAY_CONNECTING:
		tally_add(&counters->connects_late, 1);
		connection_late(&x->origin->connections, x->connection);
		relay_lost(x, true, 504);
		return;
	case RELAY_ASKED:
		tally_add(&counters->answer_late, 1);
		relay_blame(x, false);
		relay_fail(x, 504);
		return;
	case RELAY_ANSWERING:
		tally_add(&counters->stalls, 1);
		relay_fail(x, 504);
		return;
	case RELAY_TUNNEL:
		tally_add(&counters->stalls, 1);
		relay_close_tunnel(x);
		return;
	case RELAY_FREE:
		assert(!"a free exchange has no time");
	}
}

void relay_expire(struct exchange *x)
{
	uint64_t now = x->origin->now_us;
	if (session_due_us(x) <= now) {
		tally_add(&x->origin->counters.session_ends, 1);
		x->state == RELAY_TUNNEL ? relay_close_tunnel(x) : relay_fail(x, 504);
	} else if (body_due_us(x) <= now) {
		expire_body(x);
	} else if (x->stage_until_us <= now) {
		expire_stage(x);
	} else {
		deadline_clear(&x->origin->deadlines, &x->wake);
		relay_schedule(x);
	}
}
