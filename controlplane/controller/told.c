// Told: what was published in each of the last TOLD_SECONDS seconds, at its worst.
//
// Somebody of rank r who was told at the time u to come again after P(r - rank of threshold then,
// wait then) is yet to come at the time t only if u + P >= t. P never falls with the distance, so
// the smallest rank of the threshold and the largest wait of a second bound all that was told in
// it.

#include "controlplane/controller/told.h"

#include "dataplane/gate/pace.h"

// What is in force was seen in this second too. Ranks never fall, so the first one is the smallest.
static void carry(struct told *t, uint64_t second)
{
	struct told_second *s = &t->seconds[second % TOLD_SECONDS];
	if (s->second != second) {
		*s = t->now;
		s->second = second;
		return;
	}
	if (t->now.wait > s->wait)
		s->wait = t->now.wait;
	s->unknown |= t->now.unknown;
}

// Fill in the seconds up to now: nothing else was published in them.
static void catch_up(struct told *t, uint64_t second)
{
	uint64_t from = t->now.second;
	if (from + TOLD_SECONDS < second)
		from = second - TOLD_SECONDS + 1;
	for (; from <= second; from++)
		carry(t, from);
	t->now.second = second;
}

void told_forget(struct told *t, uint64_t now_ms)
{
	t->silent_until_ms = now_ms + PACE_MAX_S * 1000ull;
}

void told_publish(struct told *t, uint64_t rank, uint64_t wait_high, uint64_t now_ms)
{
	const uint64_t second = now_ms / 1000;
	catch_up(t, second);
	const bool unknown = wait_high == PACE_WAIT_UNKNOWN;
	t->now = (struct told_second){second, rank, unknown ? 0 : wait_high, unknown};
	carry(t, second);
}

static uint32_t longest_in(const struct told_second *s, uint64_t rank)
{
	const uint64_t ahead = rank > s->rank ? rank - 1 - s->rank : 0; // of the last of them
	const uint32_t known = pace_poll_after_max(ahead, s->wait);
	const uint32_t unknown = s->unknown ? pace_poll_after_max(ahead, PACE_WAIT_UNKNOWN) : 0;
	return known > unknown ? known : unknown;
}

uint32_t told_longest_ms(struct told *t, uint64_t rank, uint64_t now_ms)
{
	const uint64_t latest = now_ms + PACE_MAX_S * 1000ull;
	uint64_t last = now_ms < t->silent_until_ms ? t->silent_until_ms : now_ms;
	catch_up(t, now_ms / 1000);
	for (uint32_t i = 0; i < TOLD_SECONDS; i++) {
		const struct told_second *s = &t->seconds[i];
		const uint64_t heard = (s->second + 1 + longest_in(s, rank)) * 1000;
		last = heard > last ? heard : last;
	}
	last = last < latest ? last : latest;
	return (uint32_t)(last - now_ms);
}
