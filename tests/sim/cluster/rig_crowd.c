// The people of a rig.

#include "tests/sim/cluster/rig_crowd.h"

#include <assert.h>
#include <stdlib.h>

#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"

#define TIMEOUT_MS 1000u // of a claim without an answer
#define LATER_MS 700u // a claim is put off no longer
#define AGAIN_MS 100u // when it is asked again
#define RETRY_MS 300u // where nobody answers, at another

static void at(struct rig *r, uint32_t who, uint64_t delay_ms)
{
	const uint64_t step = (r->now_ms - r->start_ms + delay_ms) / RIG_STEP_MS + 1;
	if (step >= RIG_STEPS_MAX)
		return;
	r->visitors[who].due_ms = r->now_ms + delay_ms;
	r->visitors[who].next = r->steps[step];
	r->steps[step] = who + 1;
}

void rig_crowd_init(struct rig *r)
{
	for (uint32_t i = 0; i < r->plan.lines; i++)
		r->visitor_count += r->plan.people[i];
	r->visitors = calloc(r->visitor_count + 1, sizeof(*r->visitors));
	r->grants_at = calloc(RIG_STEPS_MAX, sizeof(*r->grants_at));
	assert(r->visitors && r->grants_at);
	assert(r->plan.duration_ms < RIG_STEPS_MAX * RIG_STEP_MS);
	for (uint32_t who = 0; who < r->visitor_count; who++) {
		struct rig_visitor *v = &r->visitors[who];
		v->id = who + 1;
		v->line = who >= r->plan.people[0];
		at(r, who, 500 + rig_random(r, r->plan.arrive_ms));
	}
}

static struct rig_member *any_member(struct rig *r)
{
	struct rig_member *m = &r->members[rig_random(r, r->plan.members)];
	return m->down_until_ms == 0 ? m : NULL;
}

static bool put_claim(struct rig_member *m, uint32_t who, uint8_t kind)
{
	if (m->queue_count == RIG_CLAIMS_MAX)
		return false;
	m->kinds[m->queue_count] = kind;
	m->queue[m->queue_count++] = who;
	return true;
}

static void ask(struct rig *r, struct rig_member *m, uint32_t who, uint8_t kind)
{
	struct rig_visitor *v = &r->visitors[who];
	if (!put_claim(m, who, kind)) {
		at(r, who, 1000ull * m->lines[v->line].words.next_poll_after);
		return;
	}
	v->state = RIG_ASKING;
	v->asked_ms = r->now_ms;
	at(r, who, TIMEOUT_MS);
}

static void tell(struct rig *r, struct rig_member *m, uint32_t who)
{
	struct rig_visitor *v = &r->visitors[who];
	struct rig_line *l = &m->lines[v->line];
	uint64_t rank, poll_after = PACE_MIN_S;
	place_rank(l->place, v->key, &rank);
	if (rank != PLACE_UNKNOWN)
		poll_after =
			pace_poll_after(rank > l->threshold_rank ? rank - l->threshold_rank : 0,
				l->words.wait_high, (uint32_t)rig_random(r, UINT32_MAX));
	at(r, who, 1000 * poll_after);
}

static void draw(struct rig *r, struct rig_member *m, uint32_t who)
{
	struct rig_visitor *v = &r->visitors[who];
	struct rig_line *l = &m->lines[v->line];
	v->state = RIG_WAITING;
	v->key = place_mint(l->place, r->now_ms / PLACE_SLOT_MS, m->number);
	assert(v->key != 0);
	v->is_away = who >= r->plan.no_show_after && rig_random(r, 100) < r->plan.no_show_percent;
	if (!v->is_away)
		tell(r, m, who);
	else if (r->plan.return_ms > 0)
		at(r, who, r->start_ms + r->plan.return_ms - r->now_ms);
	v->has_strayed = v->is_away;
}

static void arrive(struct rig *r, struct rig_member *m, uint32_t who)
{
	struct rig_line *l = &m->lines[r->visitors[who].line];
	if (l->words.open_count > 0 && r->plan.node.direct) {
		l->words.open_count--;
		ask(r, m, who, LEDGER_DIRECT);
	} else {
		draw(r, m, who);
	}
}

static void poll(struct rig *r, struct rig_member *m, uint32_t who)
{
	struct rig_visitor *v = &r->visitors[who];
	struct rig_line *l = &m->lines[v->line];
	if (v->key < l->floor) {
		rig_check(r, v->has_strayed, "who polls as told does not lapse");
		r->lapsed++;
		v->state = RIG_GONE;
	} else if (v->key < l->threshold) {
		ask(r, m, who, LEDGER_CALLED);
	} else {
		tell(r, m, who);
	}
}

static void visit(struct rig *r, uint32_t who)
{
	struct rig_visitor *v = &r->visitors[who];
	struct rig_member *m = any_member(r);
	if (r->now_ms < v->due_ms) { // there was an answer meanwhile
		at(r, who, v->due_ms - r->now_ms);
		return;
	}
	if (v->state == RIG_ASKING) { // no answer: as if told `next`
		v->state = v->key == 0 ? RIG_OUTSIDE : RIG_WAITING;
		at(r, who, 1000);
		return;
	}
	if (v->state == RIG_INSIDE) {
		if (!m || !put_claim(m, who, LEDGER_END))
			at(r, who, RETRY_MS);
		else
			v->state = RIG_GONE;
	}
	if (v->state != RIG_OUTSIDE && v->state != RIG_WAITING)
		return;
	if (!m)
		at(r, who, RETRY_MS);
	else if (v->state == RIG_OUTSIDE)
		arrive(r, m, who);
	else
		poll(r, m, who);
}

void rig_crowd_step(struct rig *r, uint32_t step)
{
	uint32_t next = r->steps[step];
	r->steps[step] = 0;
	while (next > 0) {
		const uint32_t who = next - 1;
		next = r->visitors[who].next;
		visit(r, who);
	}
}

static void enter(struct rig *r, uint32_t who, const struct ledger_answer *answer)
{
	struct rig_visitor *v = &r->visitors[who];
	v->state = RIG_INSIDE;
	v->session = answer->session;
	v->expires = answer->expires;
	if (r->plan.shop_ms == 0)
		v->state = RIG_GONE;
	v->due_ms = r->now_ms + r->plan.shop_min_ms +
		    rig_random(r, r->plan.shop_ms - r->plan.shop_min_ms + 1);
	r->granted[v->line]++;
}

void rig_crowd_again(struct rig *r, struct rig_member *m)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < m->later_count; i++) {
		if (r->now_ms >= m->later[i].again_ms &&
			put_claim(m, m->later[i].who, LEDGER_CALLED))
			continue;
		m->later[kept++] = m->later[i];
	}
	m->later_count = kept;
}

// The called who is nearly there waits for it. Returns whether it does.
static bool put_off(struct rig *r, struct rig_member *m, uint32_t who, uint32_t poll_after)
{
	const bool is_soon = r->now_ms + AGAIN_MS < r->visitors[who].asked_ms + LATER_MS;
	if (poll_after > 1 || !is_soon || m->later_count == RIG_LATER_MAX)
		return false;
	m->later[m->later_count++] = (struct rig_later){r->now_ms + AGAIN_MS, who};
	return true;
}

void rig_crowd_answer(struct rig *r, struct rig_member *m, uint32_t who,
	const struct ledger_entry *e, const struct ledger_answer *answer)
{
	struct rig_visitor *v = &r->visitors[who];
	if (v->state != RIG_ASKING || e->kind == LEDGER_END)
		return; // it has given up waiting, and asks again
	if (answer->verdict == LEDGER_NEXT && put_off(r, m, who, answer->poll_after))
		return;
	// It stands in the list of a step already, for its timeout: from there it goes on.
	v->due_ms = r->now_ms + 1000ull * answer->poll_after;
	if (answer->verdict == LEDGER_GRANTED) {
		r->direct += e->kind == LEDGER_DIRECT;
		enter(r, who, answer);
	} else if (answer->verdict == LEDGER_LAPSED) {
		rig_check(r, v->has_strayed, "who polls as told does not lapse");
		r->lapsed++;
		v->state = RIG_GONE;
	} else if (answer->verdict == LEDGER_REFUSED) {
		v->state = RIG_OUTSIDE;
	} else {
		v->state = RIG_WAITING;
	}
}
