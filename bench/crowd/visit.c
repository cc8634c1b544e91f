// A state machine: one request for each step, one handler for each request's answer.
//
// Visitors obey: they poll when told, with the jitter of the queue page (up to a tenth later), and
// reload after failures as it does, ever more slowly. A member that finds its twin admitted polls
// at once, as a tab does that is looked at: so claims of two tabs meet.

#include "bench/crowd/visit.h"

#include <assert.h>
#include <stdlib.h>

#include "bench/crowd/answer.h"
#include "bench/crowd/random.h"
#include "bench/crowd/talk.h"

#define SECOND_US 1000000ll
#define TRIES_MAX 5u // of a page, before giving up
#define RETRY_MAX_S 30u
#define CLOCKS_APART_US 200000 // at most, sluice's clock and ours
#define POLL_AFTER_MAX_S 3600u // told more, the answer is not believed

static const uint16_t step_next[] = {
	[CROWD_AWAY] = 1 << CROWD_WAITING | 1 << CROWD_SHOPPING | 1 << CROWD_OVER,
	[CROWD_WAITING] = 1 << CROWD_ENTERING | 1 << CROWD_OVER,
	[CROWD_ENTERING] = 1 << CROWD_SHOPPING | 1 << CROWD_OVER,
	[CROWD_SHOPPING] = 1 << CROWD_TELLING | 1 << CROWD_LEAVING | 1 << CROWD_BUYING |
			   1 << CROWD_STAYING | 1 << CROWD_OVER,
	[CROWD_TELLING] = 1 << CROWD_LEAVING | 1 << CROWD_OVER,
	[CROWD_LEAVING] = 1 << CROWD_OVER,
	[CROWD_BUYING] = 1 << CROWD_OVER,
	[CROWD_STAYING] = 1 << CROWD_OVER,
	[CROWD_OVER] = 1 << CROWD_AWAY | 1 << CROWD_WAITING, // a tab is opened waiting
};

static const uint8_t step_request[] = {
	[CROWD_AWAY] = REQUEST_PAGE,
	[CROWD_WAITING] = REQUEST_STATUS,
	[CROWD_ENTERING] = REQUEST_PAGE,
	[CROWD_SHOPPING] = REQUEST_PAGE,
	[CROWD_TELLING] = REQUEST_TELL,
	[CROWD_STAYING] = REQUEST_TELL,
	[CROWD_LEAVING] = REQUEST_LEAVE,
	[CROWD_BUYING] = REQUEST_BUY,
};

static void set_step(struct crowd_member *member, enum crowd_step step)
{
	assert(step_next[member->step] & 1u << step);
	member->step = (uint8_t)step;
	member->failures = 0;
}

static void do_at(struct crowd *crowd, uint32_t id, int64_t time_us)
{
	crowd->members[id].due_us = time_us;
	agenda_set(&crowd->agenda, id, time_us);
}

static int64_t unix_us(const struct crowd *crowd)
{
	return crowd->start_unix_us + crowd->now_us;
}

static bool has_run_out(const struct crowd *crowd, const struct crowd_member *member)
{
	return unix_us(crowd) >= member->pass_ends * SECOND_US;
}

// When the pass runs out, to be on the safe side for whoever counts sessions.
static int64_t safe_end_us(const struct crowd *crowd, const struct crowd_member *member)
{
	return member->pass_ends * SECOND_US - crowd->start_unix_us - CLOCKS_APART_US;
}

static struct tally_admission *admission_of(struct crowd *crowd, const struct crowd_member *member)
{
	return member->admission == CROWD_NOBODY ? NULL
						 : &crowd->tally->admissions[member->admission];
}

static void ends_at(struct crowd *crowd, const struct crowd_member *member, int64_t time_us)
{
	struct tally_admission *admission = admission_of(crowd, member);
	if (admission && admission->ended_us > time_us)
		admission->ended_us = time_us;
}

// No session is held for certain once its pass has run out: whether its visitor came to say so or
// not, and also when an answer has taken the cookie back.
static void end_session(struct crowd *crowd, const struct crowd_member *member)
{
	ends_at(crowd, member, safe_end_us(crowd, member));
}

// Over, for the reason that `count` counts.
static void end_visit(struct crowd *crowd, uint32_t id, uint64_t *count)
{
	struct crowd_member *member = &crowd->members[id];
	++*count;
	talk_end(crowd, id);
	set_step(member, CROWD_OVER);
	if (member->is_tab)
		return;
	if (member->twin != CROWD_NOBODY) // it goes on by itself; this one may come again
		crowd->members[member->twin].twin = CROWD_NOBODY;
	member->twin = CROWD_NOBODY;
	end_session(crowd, member);
	if (crowd->plan->forever) {
		const double pause_s = 2 * random_share(&crowd->random) * crowd->plan->over_s;
		set_step(member, CROWD_AWAY);
		do_at(crowd, id, crowd->now_us + (int64_t)(pause_s * 1e6));
	} else {
		crowd->living--;
	}
}

static void lose(struct crowd *crowd, uint32_t id, uint64_t *reason)
{
	if (crowd->members[id].is_tab) {
		end_visit(crowd, id, &crowd->tally->tabs_expired);
		return;
	}
	crowd->tally->lost++;
	end_visit(crowd, id, reason);
}

// --- being due, sending, failing

static void arrive(struct crowd *crowd, struct crowd_member *member)
{
	const int64_t due_us = member->due_us;
	*member = (struct crowd_member){.step = member->step,
		.comes = random_share(&crowd->random) >= crowd->plan->no_show,
		.twin = CROWD_NOBODY,
		.admission = CROWD_NOBODY,
		.target = member->target,
		.due_us = due_us};
	crowd->tally->arrived++;
}

static enum crowd_step way_out(struct crowd *crowd)
{
	const enum crowd_step leave = crowd->plan->shop.bytes ? CROWD_TELLING : CROWD_LEAVING;
	switch (crowd->plan->leave) {
	case PLAN_LEAVE_LEAVE:
		return leave;
	case PLAN_LEAVE_BUY:
		return CROWD_BUYING;
	case PLAN_LEAVE_MIXED:
		return random_next(&crowd->random) & 1 ? leave : CROWD_BUYING;
	case PLAN_LEAVE_NONE:
		break;
	}
	return CROWD_STAYING;
}

// Through with shopping. Returns whether there is something to ask.
static bool finish(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	set_step(member, way_out(crowd));
	if (member->step != CROWD_STAYING)
		return true;
	links_close(&crowd->links, id);
	do_at(crowd, id, safe_end_us(crowd, member));
	return false;
}

void visit_due(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	if (member->asked != REQUEST_NONE) {
		talk_timed_out(crowd, id);
		return;
	}
	if (member->step == CROWD_STAYING && crowd->plan->shop.bytes == 0) {
		end_visit(crowd, id, &crowd->tally->ran_out);
		return;
	}
	if (member->step == CROWD_AWAY && member->failures == 0)
		arrive(crowd, member);
	if (member->step == CROWD_SHOPPING && member->pages_left == 0 && !finish(crowd, id))
		return;
	talk_ask(crowd, id, step_request[member->step]);
}

static void end_presence(struct crowd *crowd, struct crowd_member *member)
{
	if (member->present_from_us == 0)
		return;
	const int64_t to_us =
		member->present_to_us < crowd->now_us ? member->present_to_us : crowd->now_us;
	if (to_us > member->present_from_us)
		tally_presence(crowd->tally,
			&(struct tally_presence){member->key, member->present_from_us, to_us});
	member->present_from_us = 0;
}

void visit_sends(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	end_presence(crowd, member);
	if (member->twin != CROWD_NOBODY)
		end_presence(crowd, &crowd->members[member->twin]);
	if (member->asked == REQUEST_LEAVE || member->asked == REQUEST_BUY)
		ends_at(crowd, member, crowd->now_us);
}

void visit_failed(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	const bool is_bounded = member->step != CROWD_WAITING && member->step != CROWD_ENTERING;
	if (is_bounded && member->failures + 1u >= TRIES_MAX) {
		end_visit(crowd, id,
			member->step == CROWD_AWAY ? &crowd->tally->gave_up
						   : &crowd->tally->ran_out);
		return;
	}
	if (member->failures < 8)
		member->failures++;
	const uint32_t wait_s = 1u << member->failures;
	do_at(crowd, id, crowd->now_us + (wait_s < RETRY_MAX_S ? wait_s : RETRY_MAX_S) * SECOND_US);
}

void visit_unfinished(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	end_presence(crowd, member);
	end_session(crowd, member);
	if (!member->is_tab && member->step != CROWD_OVER && member->step != CROWD_AWAY)
		crowd->tally->unfinished++;
	talk_end(crowd, id);
}

// --- answers

static void fail(struct crowd *crowd, uint32_t id, uint64_t *reason)
{
	++*reason;
	crowd->tally->errors++;
	visit_failed(crowd, id);
}

// Keep the cookie that an answer sets. Returns whether it sets one that is a token of that kind.
static bool take_cookie(const struct crowd *crowd, const struct answer *answer, char letter,
	struct crowd_cookie *cookie, struct token *token)
{
	char name[sizeof("sluice-t-") + PLAN_TEXT_MAX];
	snprintf(name, sizeof(name), "sluice-%c-%s", letter, crowd->plan->room);
	const struct span value = answer_cookie(answer, name);
	if (!value.at)
		return false;
	cookie->is_set = token_read(value, token) && token->kind == (letter == 't' ? 1 : 2);
	if (cookie->is_set)
		memcpy(cookie->text, value.at, TOKEN_TEXT_BYTES);
	return cookie->is_set;
}

static bool take_pass(struct crowd *crowd, struct crowd_member *member, const struct answer *answer)
{
	struct token token;
	if (!take_cookie(crowd, answer, 'p', &member->pass, &token))
		return false;
	member->session = token.key;
	member->pass_ends = token.expires;
	return true;
}

static void admit(struct crowd *crowd, struct crowd_member *member)
{
	const struct tally_admission admission = {
		.key = member->key,
		.placed_us = member->placed_us,
		.asked_us = member->sent_us,
		.granted_us = crowd->now_us,
		.pass_ends = member->pass_ends,
		.ended_us = INT64_MAX,
	};
	const struct crowd_member *twin =
		member->twin == CROWD_NOBODY ? NULL : &crowd->members[member->twin];
	if (twin && twin->admission != CROWD_NOBODY)
		member->admission = twin->admission;
	else
		member->admission = tally_admit(crowd->tally, &admission);
}

static void enter(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	set_step(member, CROWD_SHOPPING);
	member->pages_left = crowd->plan->pages;
	do_at(crowd, id,
		crowd->now_us + (int64_t)(crowd->plan->shop_s * 1e6 / (member->pages_left + 1)));
}

static bool is_one_of(struct span word, const char *a, const char *b, const char *c)
{
	const char *const words[] = {a, b, c};
	for (unsigned i = 0; i < 3; i++) {
		if (span_is_equal(word, (struct span){words[i], strlen(words[i])}))
			return true;
	}
	return false;
}

static bool is_word(struct span word, const char *other)
{
	return is_one_of(word, other, other, other);
}

// Told `next`. Of two tabs the later answer counts, unless the other may have been granted by now.
static void begin_presence(struct crowd *crowd, struct crowd_member *member, int64_t told_s)
{
	struct crowd_member *twin =
		member->twin == CROWD_NOBODY ? NULL : &crowd->members[member->twin];
	if (twin && (twin->asked != REQUEST_NONE || twin->pass.is_set))
		return;
	if (twin)
		end_presence(crowd, twin);
	member->present_from_us = crowd->now_us;
	member->present_to_us = member->sent_us + 2 * told_s * SECOND_US;
}

// Wait as long as told, from when it was told.
static void wait_on(struct crowd *crowd, uint32_t id, struct span state, struct span poll_after)
{
	struct crowd_member *member = &crowd->members[id];
	unsigned long told_s = poll_after.at ? strtoul(poll_after.at, NULL, 10) : 0;
	told_s = told_s < 1 ? 1 : told_s > POLL_AFTER_MAX_S ? POLL_AFTER_MAX_S : told_s;
	if (is_word(state, "next"))
		begin_presence(crowd, member, (int64_t)told_s);
	const double jitter = 1 + random_share(&crowd->random) / 10;
	do_at(crowd, id, crowd->now_us + (int64_t)((double)told_s * 1e6 * jitter));
}

static void open_tab(struct crowd *crowd, uint32_t id)
{
	const uint32_t tab_id = crowd->visitor_count + id;
	struct crowd_member *member = &crowd->members[id];
	struct crowd_member *tab = &crowd->members[tab_id];
	if (tab->step != CROWD_OVER || random_share(&crowd->random) >= crowd->plan->tabs)
		return;
	crowd->tally->tabs++;
	*tab = (struct crowd_member){.step = CROWD_OVER,
		.is_tab = true,
		.comes = true,
		.twin = id,
		.admission = CROWD_NOBODY,
		.ticket = member->ticket,
		.key = member->key,
		.target = member->target,
		.placed_us = member->placed_us};
	set_step(tab, CROWD_WAITING);
	member->twin = tab_id;
	do_at(crowd, tab_id,
		crowd->now_us + (int64_t)(random_share(&crowd->random) * 2 * (double)SECOND_US));
}

static void join_line(struct crowd *crowd, uint32_t id, const struct answer *answer,
	const struct token *ticket, struct span state)
{
	struct crowd_member *member = &crowd->members[id];
	crowd->tally->queued++;
	member->key = ticket->key;
	member->arrived_us = member->sent_us;
	member->placed_us = crowd->now_us;
	if (!member->comes) {
		end_visit(crowd, id, &crowd->tally->no_shows);
		return;
	}
	set_step(member, CROWD_WAITING);
	wait_on(crowd, id, state, answer_field(answer, "retry-after"));
	if (crowd->plan->tabs > 0)
		open_tab(crowd, id);
}

static void on_first_page(struct crowd *crowd, uint32_t id, const struct answer *answer)
{
	struct crowd_member *member = &crowd->members[id];
	struct token ticket;
	const struct span state = answer_field(answer, "sluice-state");
	const bool has_ticket = take_cookie(crowd, answer, 't', &member->ticket, &ticket);
	histogram_add(&crowd->tally->arrival_us, crowd->now_us - member->due_us);
	if (is_one_of(state, "closed", "full", "rejected")) {
		end_visit(crowd, id, &crowd->tally->turned_away);
	} else if (state.at && has_ticket) {
		join_line(crowd, id, answer, &ticket, state);
	} else if (!state.at && take_pass(crowd, member, answer)) {
		crowd->tally->direct++;
		crowd->tally->pages_seen++;
		admit(crowd, member);
		enter(crowd, id);
	} else {
		fail(crowd, id, &crowd->tally->error_status);
	}
}

// Let the twin find out at once, if it waits.
static void wake_twin(struct crowd *crowd, uint32_t id)
{
	const uint32_t twin = crowd->members[id].twin;
	if (twin == CROWD_NOBODY)
		return;
	const struct crowd_member *other = &crowd->members[twin];
	if (other->step == CROWD_WAITING && other->asked == REQUEST_NONE)
		do_at(crowd, twin, crowd->now_us);
}

static void on_admitted(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	struct tally *tally = crowd->tally;
	admit(crowd, member);
	wake_twin(crowd, id);
	const struct crowd_member *twin =
		member->twin == CROWD_NOBODY ? NULL : &crowd->members[member->twin];
	if (twin && twin->pass.is_set && twin->session != member->session)
		tally->tabs_other_session++;
	if (member->is_tab) {
		end_visit(crowd, id, &tally->tabs_admitted);
		return;
	}
	tally->called++;
	set_step(member, CROWD_ENTERING);
	do_at(crowd, id, crowd->now_us);
}

// The first position is the visitor's place; a later one that is larger is a place that got worse.
static void hear_position(struct crowd *crowd, struct crowd_member *member, struct span position)
{
	const unsigned long told = position.at ? strtoul(position.at, NULL, 10) : 0;
	if (told == 0 || told > UINT32_MAX || member->is_tab)
		return;
	if (member->position == 0) {
		member->position = (uint32_t)told;
		tally_place(crowd->tally, &(struct tally_place){member->key, member->position,
						  member->arrived_us, member->placed_us});
	}
	crowd->tally->positions_worse += told > member->position;
}

static void on_status(struct crowd *crowd, uint32_t id, const struct answer *answer)
{
	struct crowd_member *member = &crowd->members[id];
	struct tally *tally = crowd->tally;
	const struct span state = answer_json(answer, "state");
	histogram_add(&tally->poll_us, crowd->now_us - member->due_us);
	hear_position(crowd, member, answer_json(answer, "position"));
	tally->polls++;
	tally->polls_next += is_word(state, "next");
	if (answer->status == 401)
		lose(crowd, id, &tally->lost_unknown);
	else if (answer->status == 410)
		lose(crowd, id, &tally->lost_expired);
	else if (answer->status == 200 && is_word(state, "admitted") &&
		 take_pass(crowd, member, answer))
		on_admitted(crowd, id);
	else if (answer->status == 200 && is_one_of(state, "waiting", "next", "prequeue"))
		wait_on(crowd, id, state, answer_json(answer, "poll_after"));
	else if (answer->status == 200 && is_one_of(state, "closed", "full", "rejected"))
		end_visit(crowd, id, member->is_tab ? &tally->tabs_expired : &tally->turned_away);
	else
		fail(crowd, id, &tally->error_status);
}

// The page after the call, or one more while shopping.
static void on_shop_page(struct crowd *crowd, uint32_t id, const struct answer *answer)
{
	struct crowd_member *member = &crowd->members[id];
	struct tally *tally = crowd->tally;
	take_pass(crowd, member, answer); // a renewed one
	if (answer_field(answer, "sluice-state").at) {
		if (has_run_out(crowd, member))
			end_visit(crowd, id, &tally->ran_out);
		else
			lose(crowd, id, &tally->lost_pass);
		return;
	}
	if (answer->status >= 500) {
		fail(crowd, id, &tally->error_origin);
		return;
	}
	tally->pages_seen++;
	member->failures = 0;
	if (member->step == CROWD_ENTERING) {
		histogram_add(&tally->enter_us, crowd->now_us - member->due_us);
		enter(crowd, id);
		return;
	}
	histogram_add(&tally->page_us, crowd->now_us - member->due_us);
	member->pages_left--;
	do_at(crowd, id,
		member->due_us + (int64_t)(crowd->plan->shop_s * 1e6 / (crowd->plan->pages + 1)));
}

static void on_told(struct crowd *crowd, uint32_t id)
{
	if (crowd->members[id].step == CROWD_STAYING) {
		end_visit(crowd, id, &crowd->tally->ran_out);
		return;
	}
	set_step(&crowd->members[id], CROWD_LEAVING);
	do_at(crowd, id, crowd->now_us);
}

static void on_gone(struct crowd *crowd, uint32_t id, const struct answer *answer)
{
	const struct crowd_member *member = &crowd->members[id];
	struct tally *tally = crowd->tally;
	const bool was_held = answer_field(answer, "sluice-state").at == NULL;
	histogram_add(&tally->leave_us, crowd->now_us - member->due_us);
	if (!was_held && has_run_out(crowd, member))
		end_visit(crowd, id, &tally->ran_out);
	else if (!was_held)
		lose(crowd, id, &tally->lost_pass);
	else if (answer->status >= 500)
		fail(crowd, id, &tally->error_origin);
	else if (answer->status >= 300)
		fail(crowd, id, &tally->error_status);
	else
		end_visit(crowd, id, member->step == CROWD_BUYING ? &tally->bought : &tally->left);
}

void visit_answered(
	struct crowd *crowd, uint32_t id, enum request asked, const struct answer *answer)
{
	struct crowd_member *member = &crowd->members[id];
	switch (asked) {
	case REQUEST_PAGE:
		if (member->step == CROWD_AWAY)
			on_first_page(crowd, id, answer);
		else
			on_shop_page(crowd, id, answer);
		break;
	case REQUEST_STATUS:
		on_status(crowd, id, answer);
		break;
	case REQUEST_TELL:
		on_told(crowd, id);
		break;
	case REQUEST_LEAVE:
	case REQUEST_BUY:
		on_gone(crowd, id, answer);
		break;
	case REQUEST_NONE:
		assert(!"nothing was asked");
	}
}
