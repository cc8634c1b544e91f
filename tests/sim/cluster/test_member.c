// A member against the ledger (its model), with a second one beside it: stories of what an
// appliance of a cluster does, one at a time and nothing at random. What happens when everything
// happens at once is tests/sim/cluster/sim_cluster.
//
// LONG: stories, of one stage.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "controlplane/cluster/member_inside.h"
#include "tests/sim/cluster/network.h"

#define LINE 0xabcd1234u
#define START_MS UINT64_C(1700000000000)
#define STEP_MS 10u

struct story {
	struct appliance_line line;
	struct appliance a, b;
	struct network network;
	uint64_t random, now_ms;
	uint32_t requests;
};

static void run(struct story *s, uint32_t ms)
{
	for (uint64_t end_ms = s->now_ms + ms; s->now_ms < end_ms;) {
		s->now_ms += STEP_MS;
		network_turn(&s->network, s->now_ms);
		if (s->a.state == APPLIANCE_UP)
			appliance_turn(&s->a, s->now_ms);
		if (s->b.state == APPLIANCE_UP)
			appliance_turn(&s->b, s->now_ms);
	}
}

// Two appliances that have met, and a line of so many slots.
static void begin_slots(struct story *s, uint8_t on_loss, uint32_t capacity)
{
	*s = (struct story){.random = 7, .now_ms = START_MS};
	s->line = (struct appliance_line){.id = LINE,
		.claim_s = 30,
		.on_loss = on_loss,
		.node = {.is_line = true,
			.direct = true,
			.priority = 1,
			.weight = 1,
			.session_s = 60,
			.present_max = 64,
			.left_max = 64,
			.ended_max = 64,
			.config = 7,
			.limits = {.capacity = capacity, .burst = 1}}};
	network_init(&s->network, &s->random);
	s->network.has_journal = true;
	appliance_init(&s->a, "a", &s->line, 1, NULL, &s->random);
	appliance_init(&s->b, "b", &s->line, 1, NULL, &s->random);
	network_add(&s->network, &s->a);
	network_add(&s->network, &s->b);
	appliance_start(&s->a, s->now_ms);
	appliance_start(&s->b, s->now_ms);
	run(s, 2000);
}

static void begin(struct story *s, uint8_t on_loss)
{
	begin_slots(s, on_loss, 1);
}

static void end(struct story *s)
{
	network_fini(&s->network);
	appliance_fini(&s->a);
	appliance_fini(&s->b);
}

static void end_process(struct story *s, struct appliance *a)
{
	appliance_kill(a);
	network_reset(&s->network, a == &s->b, s->now_ms);
}

static uint64_t now_of(struct story *s, struct appliance *a)
{
	return appliance_now(a, s->now_ms);
}

static uint32_t put(struct story *s, struct appliance *a, struct claim claim)
{
	claim.line_id = claim.line_id ? claim.line_id : LINE;
	claim.generation = ++s->requests;
	claim.sent_ms = now_of(s, a);
	claim.poll_after = 1;
	assert_true(member_room(a->member) > 0);
	member_claims(a->member, &claim, 1, now_of(s, a));
	return claim.generation;
}

static bool find(struct appliance *a, uint32_t number, struct claim_answer *answer)
{
	for (uint32_t i = 0; i < a->answer_count; i++) {
		if (a->answers[i].generation != number)
			continue;
		*answer = a->answers[i];
		return true;
	}
	return false;
}

// Ask, and wait for the answer.
static struct claim_answer ask(struct story *s, struct appliance *a, struct claim claim)
{
	struct claim_answer answer = {0};
	const uint32_t number = put(s, a, claim);
	for (uint32_t i = 0; i < 100 && !find(a, number, &answer); i++)
		run(s, STEP_MS);
	assert_int_not_equal(answer.verdict, 0);
	return answer;
}

static struct claim_answer direct(struct story *s, struct appliance *a, uint64_t visitor)
{
	return ask(s, a, (struct claim){.kind = CLAIM_DIRECT, .visitor = visitor});
}

static struct claim_answer called(
	struct story *s, struct appliance *a, uint64_t key, uint64_t visitor)
{
	return ask(s, a, (struct claim){.kind = CLAIM_CALLED, .key = key, .visitor = visitor});
}

static uint64_t mint(struct story *s, struct appliance *a)
{
	return place_mint(a->rooms[0].line, now_of(s, a) / PLACE_SLOT_MS, a->number);
}

static const struct member_counters *counters(const struct appliance *a)
{
	return member_counters(a->member);
}

static struct member_status status(const struct appliance *a)
{
	struct member_status is;
	member_status(a->member, &is);
	return is;
}

static struct model_node *line_of(struct story *s)
{
	return model_find(&s->network.model, LINE);
}

// --- verdicts

static void every_verdict_is_answered(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct claim_answer first = direct(&s, &s.a, 11);
	assert_int_equal(first.verdict, CLAIM_GRANTED);
	assert_int_equal(direct(&s, &s.a, 12).verdict, CLAIM_REFUSED);
	const struct claim renew = {.kind = CLAIM_RENEW, .visitor = 11, .session = first.session};
	const struct claim_answer renewed = ask(&s, &s.b, renew);
	assert_int_equal(renewed.verdict, CLAIM_RENEWED);
	assert_true(renewed.expires >= first.expires);
	const struct claim wrong = {.kind = CLAIM_RENEW, .visitor = 11, .session = 99};
	assert_int_equal(ask(&s, &s.a, wrong).verdict, CLAIM_LAPSED);
	const struct claim code = {.kind = CLAIM_CODE, .visitor = 3};
	assert_int_equal(ask(&s, &s.a, code).verdict, CLAIM_UNKNOWN);
	const struct claim stray = {.kind = CLAIM_CALLED, .line_id = 5, .key = 1, .visitor = 3};
	assert_int_equal(ask(&s, &s.a, stray).verdict, CLAIM_REFUSED);
	assert_int_equal(counters(&s.a)->unknown_room, 1);
	assert_true(member_set_state(s.a.member, LINE, GATE_CLOSED, false, now_of(&s, &s.a)));
	assert_int_equal(direct(&s, &s.a, 13).verdict, CLAIM_CLOSED);
	end(&s);
}

static void a_ticket_is_called_and_granted_once(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct claim_answer holder = direct(&s, &s.a, 11);
	const uint64_t key = mint(&s, &s.a);
	run(&s, 500);
	assert_int_equal(called(&s, &s.b, key, 21).verdict, CLAIM_NEXT); // not its turn
	put(&s, &s.a, (struct claim){.kind = CLAIM_END, .visitor = 11, .session = holder.session});
	run(&s, 1500);
	assert_true(key < s.b.rooms[0].line->threshold);
	const struct claim_answer on_b = called(&s, &s.b, key, 21);
	const struct claim_answer on_a = called(&s, &s.a, key, 21);
	assert_int_equal(on_b.verdict, CLAIM_GRANTED);
	assert_int_equal(on_a.verdict, CLAIM_GRANTED);
	assert_true(on_a.session == on_b.session && on_a.expires == on_b.expires);
	end(&s);
}

static void a_direct_answer_that_finds_nobody_is_undone(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct claim_answer lost = direct(&s, &s.a, 11);
	put(&s, &s.a, (struct claim){.kind = CLAIM_GONE, .visitor = 11, .session = lost.session});
	run(&s, 100);
	assert_int_equal(line_of(&s)->undone, 1);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_GRANTED);
	end(&s);
}

// --- replies

static void a_lost_reply_changes_nothing(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	struct claim_answer answer;
	const uint32_t number = put(&s, &s.a, (struct claim){.kind = CLAIM_DIRECT, .visitor = 11});
	run(&s, 2 * STEP_MS); // the ledger has it, and its reply is lost
	network_break(&s.network, 0, s.now_ms);
	run(&s, 800);
	assert_true(find(&s.a, number, &answer));
	assert_int_equal(answer.verdict, CLAIM_GRANTED);
	assert_int_equal(line_of(&s)->admitted, 1);
	assert_true(counters(&s.a)->repeats > 0);
	end(&s);
}

static void a_reply_that_cannot_be_read_is_none(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	while (!s.a.member->batch->is_sent || !s.a.member->batch->is_made)
		run(&s, STEP_MS);
	static const char *const bad[] = {
		"", "1", "nonsense\n", "1 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 5"};
	for (uint32_t i = 0; i < 4; i++)
		assert_false(member_reply(
			s.a.member, bad[i], strlen(bad[i]), s.now_ms, now_of(&s, &s.a)));
	assert_false(member_news(s.a.member, "x", 1, now_of(&s, &s.a)));
	assert_int_equal(counters(&s.a)->replies_bad, 5);
	end(&s);
}

static void a_skewed_batch_is_granted_nothing(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	// By the clock of the one in office the store's would be corrected.
	struct appliance *other = status(&s.a).office.is_in_office ? &s.b : &s.a;
	other->clock_ms += 900;
	run(&s, 300);
	assert_int_equal(direct(&s, other, 11).verdict, CLAIM_REFUSED);
	assert_true(counters(other)->skewed > 1);
	end(&s);
}

// The store's clock goes back while nobody is there who would know; cluster time does not.
static void a_clock_that_nobody_saw_go_back(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	run(&s, 5000);
	const uint64_t seen_ms = s.network.model.seen_ms;
	end_process(&s, &s.a);
	end_process(&s, &s.b);
	s.network.clock_ms -= 3600000;
	s.a.is_clock_set = s.b.is_clock_set = false; // nor do their own clocks
	s.a.clock_ms = s.b.clock_ms = -7200000;
	run(&s, 3000);
	appliance_start(&s.a, s.now_ms);
	appliance_start(&s.b, s.now_ms);
	run(&s, 4000);
	assert_false(status(&s.a).is_skewed || status(&s.b).is_skewed);
	assert_true(s.network.model.seen_ms >= seen_ms);
	assert_true(s.network.model.seen_ms <= seen_ms + 8000);
	assert_int_equal(direct(&s, &s.a, 11).verdict, CLAIM_GRANTED);
	end(&s);
}

static void who_was_stopped_spends_nothing_late(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	struct claim_answer answer;
	const uint32_t number = put(&s, &s.a, (struct claim){.kind = CLAIM_DIRECT, .visitor = 11});
	s.a.state = APPLIANCE_STOPPED;
	run(&s, 5000);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_GRANTED);
	s.a.state = APPLIANCE_UP;
	run(&s, 1000);
	assert_false(find(&s.a, number, &answer) && answer.verdict == CLAIM_GRANTED);
	assert_int_equal(line_of(&s)->admitted, 1);
	end(&s);
}

// --- what others did

static void an_end_on_a_is_refused_on_b(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct claim_answer holder = direct(&s, &s.a, 11);
	put(&s, &s.a, (struct claim){.kind = CLAIM_END, .visitor = 11, .session = holder.session});
	assert_true(ended_has(s.a.ended, holder.session)); // at once
	run(&s, MEMBER_SYNC_MS);
	assert_true(ended_has(s.b.ended, holder.session));
	run(&s, 500);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_GRANTED); // its slot is free
	end(&s);
}

static void a_leave_on_a_is_known_on_b(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	direct(&s, &s.a, 11);
	const uint64_t key = mint(&s, &s.a);
	const struct claim leave = {.kind = CLAIM_LEAVE, .key = key, .visitor = 21};
	assert_int_equal(ask(&s, &s.a, leave).verdict, CLAIM_LEFT);
	run(&s, MEMBER_SYNC_MS);
	assert_true(ended_has(s.b.left, 21));
	end(&s);
}

// A browser with the pass of one visitor and the ticket of another gives both back, wherever each
// came from, and whether the store is there or not.
static void a_leave_with_a_pass_of_another(void **state)
{
	(void)state;
	for (int is_cut = 0; is_cut < 2; is_cut++) {
		struct story s;
		begin(&s, MEMBER_HOLD);
		const struct claim_answer holder = direct(&s, &s.a, 11);
		const uint64_t key = mint(&s, &s.a);
		run(&s, 500);
		if (is_cut) {
			s.network.links[1].cut_until_ms = s.now_ms + 3000;
			run(&s, 1500);
			assert_true(status(&s.b).is_away);
		}
		const struct claim leave = {.kind = CLAIM_LEAVE,
			.key = key,
			.visitor = 21,
			.session = holder.session,
			.expires = holder.expires,
			.place = 11};
		assert_int_equal(ask(&s, &s.b, leave).verdict, CLAIM_LEFT);
		assert_int_equal(ask(&s, &s.b, leave).verdict, CLAIM_LEFT); // sent again
		assert_true(ended_has(s.b.ended, holder.session));
		run(&s, 4000);
		assert_true(ended_has(s.a.ended, holder.session));
		assert_int_equal(model_taken(&s.network.model, line_of(&s)), 0); // its slot is free
		assert_int_equal(direct(&s, &s.a, 12).verdict, CLAIM_GRANTED);
		assert_int_equal(called(&s, &s.a, key, 21).verdict, CLAIM_LAPSED);
		end(&s);
	}
}

static void a_decision_is_with_all_at_once(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	direct(&s, &s.a, 11);
	run(&s, 2000);
	assert_true(status(&s.a).propagation_count > 0 && status(&s.b).propagation_count > 0);
	assert_in_range(status(&s.a).propagation_p99_ms, 0, 50);
	assert_in_range(status(&s.b).propagation_p99_ms, 0, 50);
	end(&s);
}

static void records_go_both_ways(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct ledger_record record = {
		.type = 1, .id = 5, .len = 2, .bytes = (const uint8_t[]){9, 42}};
	assert_true(member_put_record(s.a.member, &record));
	struct ledger_record forbidden = record;
	forbidden.is_conductors = true;
	forbidden.id = 6;
	struct appliance *other = status(&s.a).office.is_in_office ? &s.b : &s.a;
	assert_true(member_put_record(other->member, &forbidden));
	run(&s, 500);
	assert_int_equal(s.b.records[5], 42);
	assert_int_equal(s.a.records[5], 42);
	assert_int_equal(counters(other)->records_refused, 1);
	for (uint32_t i = 0; i < MEMBER_RECORDS_MAX; i++) {
		struct ledger_record many = record;
		many.id = 100 + i;
		assert_true(member_put_record(s.a.member, &many));
	}
	const struct ledger_record over = {.type = 2, .id = 1};
	assert_false(member_put_record(s.a.member, &over));
	end(&s);
}

// --- the store

static void a_store_that_lost_writes_is_told_again(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct claim_answer holder = direct(&s, &s.a, 11);
	run(&s, 200);
	network_fail_over(&s.network, 400, 100, s.now_ms);
	assert_int_equal(line_of(&s)->visitors.count, 0);
	run(&s, 1000);
	assert_true(status(&s.a).is_recovering && status(&s.a).is_away);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_REFUSED); // nothing is granted yet
	run(&s, 4000);
	assert_false(status(&s.a).is_recovering);
	assert_int_equal(line_of(&s)->visitors.count, 1);
	assert_true(line_of(&s)->visitors.at[0].session == holder.session);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_REFUSED);
	assert_int_equal(counters(&s.a)->recoveries, 1);
	assert_true(counters(&s.a)->written_back > 0);
	assert_true(counters(&s.a)->resyncs > 1); // news had jumped
	end(&s);
}

// Another process of `a`, and then a store that knows nothing.
static void restart_and_forget(struct story *s, struct appliance *a)
{
	end_process(s, a);
	run(s, LEDGER_LIVE_MS + 100);
	appliance_start(a, s->now_ms);
	run(s, 2000);
	network_fail_over(&s->network, s->now_ms, 100, s->now_ms);
	run(s, 6000);
	assert_false(status(a).is_recovering);
}

static void what_a_process_before_granted_counts_as_taken(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const uint64_t granted_ms = s.now_ms;
	direct(&s, &s.a, 11);
	restart_and_forget(&s, &s.a);
	assert_int_equal(line_of(&s)->visitors.count, 0);
	assert_int_equal(line_of(&s)->lost, 1);
	while (direct(&s, &s.b, 12).verdict == CLAIM_REFUSED)
		run(&s, 1000);
	assert_in_range(s.now_ms, granted_ms + 60000, granted_ms + 66000);
	line_of(&s)->is.session_s = 3600; // those of before were not so long
	run(&s, 1500);
	assert_int_equal(line_of(&s)->lost, 0);
	end(&s);
}

// All begin anew, and so does the store. Who comes first knows that there was another.
static void what_is_known_when_all_are_back_was_all(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	direct(&s, &s.a, 11);
	end_process(&s, &s.a);
	end_process(&s, &s.b);
	network_fail_over(&s.network, s.now_ms, 100, s.now_ms);
	run(&s, 90000); // longer than a session
	appliance_start(&s.b, s.now_ms);
	run(&s, 6000);
	assert_int_equal(line_of(&s)->lost, 1);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_REFUSED);
	appliance_start(&s.a, s.now_ms);
	run(&s, 2000);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_GRANTED);
	end(&s);
}

static void a_member_that_was_missing_brings_what_it_knows(void **state)
{
	(void)state;
	struct story s;
	begin_slots(&s, MEMBER_HOLD, 2);
	assert_int_equal(direct(&s, &s.a, 11).verdict, CLAIM_GRANTED);
	run(&s, 300);
	s.a.state = APPLIANCE_STOPPED;
	network_fail_over(&s.network, s.now_ms, 100, s.now_ms);
	run(&s, 8000);
	assert_int_equal(line_of(&s)->lost, 2);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_REFUSED);
	s.a.state = APPLIANCE_UP;
	run(&s, 2000);
	assert_int_equal(line_of(&s)->lost, 0);
	assert_int_equal(line_of(&s)->visitors.count, 1);
	assert_int_equal(direct(&s, &s.b, 12).verdict, CLAIM_GRANTED);
	assert_int_equal(direct(&s, &s.b, 13).verdict, CLAIM_REFUSED);
	end(&s);
}

static void an_end_that_found_no_room_is_no_later_end(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct claim_answer first = direct(&s, &s.a, 11);
	line_of(&s)->is.ended_max = 0; // as if it were full of others
	put(&s, &s.b,
		(struct claim){.kind = CLAIM_END,
			.visitor = 11,
			.session = first.session,
			.expires = first.expires});
	run(&s, 500);
	assert_int_equal(counters(&s.b)->ended_full, 1);
	assert_false(ended_has(s.b.ended, first.session));
	assert_int_equal(status(&s.b).known_count, 0); // that it is there is all it knows
	end(&s);
}

static void a_name_is_one_appliances(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	end_process(&s, &s.b);
	snprintf(s.b.name, sizeof(s.b.name), "a");
	appliance_start(&s.b, s.now_ms);
	run(&s, 1500);
	assert_true(status(&s.b).is_name_taken && status(&s.b).is_away);
	end_process(&s, &s.a); // and when that one is no more
	run(&s, 4000);
	assert_false(status(&s.b).is_name_taken);
	assert_int_equal(status(&s.b).appliance, s.a.number);
	end(&s);
}

static void a_goodbye_is_the_last_word(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	mint(&s, &s.a);
	member_goodbye(s.a.member);
	run(&s, 500);
	assert_true(status(&s.a).is_gone);
	assert_int_equal(line_of(&s)->counted, 1); // its slots first
	const uint64_t batches = counters(&s.a)->batches;
	run(&s, 1000);
	assert_int_equal(counters(&s.a)->batches, batches);
	assert_true(status(&s.b).office.is_in_office);
	end(&s);
}

// --- the rate

struct waiting {
	uint64_t key, next_ms;
	uint32_t pending; // 0: none
	bool is_inside;
	struct appliance *at;
};

// Everybody asks as told. Returns how many come in within `ms`.
static uint32_t serve(struct story *s, struct waiting *people, uint32_t count, uint32_t ms)
{
	uint32_t inside = 0;
	for (uint64_t end_ms = s->now_ms + ms; s->now_ms < end_ms; run(s, STEP_MS)) {
		for (uint32_t i = 0; i < count; i++) {
			struct waiting *w = &people[i];
			struct claim_answer said;
			if (w->pending && find(w->at, w->pending, &said)) {
				w->pending = 0;
				w->is_inside = said.verdict == CLAIM_GRANTED;
				w->next_ms = s->now_ms + 1000ull * said.poll_after;
				inside += w->is_inside;
			}
			if (w->is_inside || w->pending || s->now_ms < w->next_ms ||
				w->key >= w->at->rooms[0].line->threshold)
				continue;
			w->pending = put(s, w->at,
				(struct claim){
					.kind = CLAIM_CALLED, .key = w->key, .visitor = 1000 + i});
		}
		s->a.answer_count = s->b.answer_count = 0;
	}
	return inside;
}

// A bucket that holds one person loses what comes in until that one is taken out.
static void a_rate_is_used(void **state)
{
	(void)state;
	enum { people = 600, seconds = 20 };
	static const struct {
		uint32_t rate, burst, share; // of 100
	} table[] = {{1, 1, 95}, {3, 1, 93}, {5, 1, 92}, {10, 1, 88}, {20, 1, 75}, {5, 2, 98},
		{20, 2, 95}, {20, 20, 98}};
	static struct waiting at[people];
	for (size_t n = 0; n < sizeof(table) / sizeof(table[0]); n++) {
		struct story s;
		begin(&s, MEMBER_HOLD);
		s.line.node.present_max = 1024;
		s.line.node.limits = (struct pool_limits){.rate_count = table[n].rate,
			.rate_period_ms = 1000,
			.burst = table[n].burst};
		end_process(&s, &s.a);
		end_process(&s, &s.b);
		run(&s, 3000);
		appliance_start(&s.a, s.now_ms);
		appliance_start(&s.b, s.now_ms);
		run(&s, 3000);
		for (uint32_t i = 0; i < people; i++) {
			at[i] = (struct waiting){.at = i % 2 ? &s.a : &s.b};
			at[i].key = mint(&s, at[i].at);
			if (i % 10 == 0)
				run(&s, STEP_MS);
		}
		serve(&s, at, people, 5000);
		const uint32_t inside = serve(&s, at, people, 1000 * seconds);
		const uint32_t most = table[n].rate * seconds;
		print_message(
			"%u/s, burst %u: %u of %u\n", table[n].rate, table[n].burst, inside, most);
		assert_in_range(inside, most * table[n].share / 100, most + table[n].burst);
		end(&s);
	}
}

// --- the store away

static void cut(struct story *s)
{
	s->network.links[0].cut_until_ms = s->now_ms + 10000;
	network_break(&s->network, 0, s->now_ms);
	run(s, 100);
	assert_true(member_line_is_away(s->a.member, LINE));
}

static void hold_grants_nobody(void **state)
{
	(void)state;
	static const uint8_t both[] = {MEMBER_HOLD, MEMBER_REJECT};
	for (uint32_t i = 0; i < 2; i++) {
		struct story s;
		begin(&s, both[i]);
		cut(&s);
		assert_true(s.a.rooms[0].line->open & PLACE_OPEN_HOLD);
		assert_int_equal(direct(&s, &s.a, 11).verdict, CLAIM_REFUSED);
		const struct claim renew = {.kind = CLAIM_RENEW, .visitor = 1, .session = 2};
		assert_int_equal(ask(&s, &s.a, renew).verdict, CLAIM_REFUSED); // it goes on
		assert_int_equal(counters(&s.a)->granted_away, 0);
		run(&s, 11000);
		assert_false(member_line_is_away(s.a.member, LINE));
		assert_int_equal(direct(&s, &s.a, 12).verdict, CLAIM_GRANTED);
		end(&s);
	}
}

static void open_lets_everybody_in_and_says_so_after(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_OPEN);
	cut(&s);
	for (uint64_t visitor = 11; visitor < 14; visitor++)
		assert_int_equal(direct(&s, &s.a, visitor).verdict, CLAIM_GRANTED);
	assert_int_equal(counters(&s.a)->granted_away, 3);
	assert_int_equal(line_of(&s)->visitors.count, 0);
	run(&s, 11000);
	assert_int_equal(line_of(&s)->visitors.count, 3);
	assert_int_equal(direct(&s, &s.a, 15).verdict, CLAIM_REFUSED); // they count
	end(&s);
}

// An appliance that knows a rate of two a second, and is cut off with its share.
static void begin_share(struct story *s)
{
	begin(s, MEMBER_SHARE);
	s->line.node.limits =
		(struct pool_limits){.rate_count = 2, .rate_period_ms = 1000, .burst = 1};
	end_process(s, &s->a);
	run(s, 2500);
	appliance_start(&s->a, s->now_ms);
	run(s, 3000);
	cut(s);
}

static void a_share_is_a_share(void **state)
{
	(void)state;
	struct story s;
	begin_share(&s);
	uint32_t granted = 0;
	for (uint64_t visitor = 100; visitor < 180; visitor++) {
		granted += direct(&s, &s.a, visitor).verdict == CLAIM_GRANTED;
		run(&s, 40);
	}
	assert_in_range(granted, 2, 5); // one a second of two, for some four seconds
	end(&s);
}

// Nobody who draws a ticket meanwhile is stuck with it, and they come in in their order.
static void a_share_is_for_those_who_wait(void **state)
{
	(void)state;
	struct story s;
	begin_share(&s);
	enum { people = 5 };
	uint64_t keys[people], sessions[people] = {0};
	for (uint32_t i = 0; i < people; i++) {
		keys[i] = mint(&s, &s.a);
		run(&s, 30);
	}
	assert_int_equal(direct(&s, &s.a, 99).verdict, CLAIM_REFUSED); // behind them
	uint32_t inside = 0;
	for (uint32_t ms = 0; inside < people && ms < 9000; ms += 100) {
		assert_true(inside <= 1 + (ms + 1500) / 1000); // one a second of two
		for (uint32_t i = 0; i < people; i++) {
			if (sessions[i] != 0 || keys[i] >= s.a.rooms[0].line->threshold)
				continue;
			const struct claim_answer said = called(&s, &s.a, keys[i], 200 + i);
			if (said.verdict != CLAIM_GRANTED)
				break;
			assert_int_equal(i, inside); // in their order
			sessions[i] = said.session;
			inside++;
		}
		run(&s, 100);
	}
	assert_int_equal(inside, people);
	run(&s, 12000);
	assert_false(status(&s.a).is_away);
	for (uint32_t i = 0; i < people; i++)
		assert_true(called(&s, &s.b, keys[i], 200 + i).session == sessions[i]);
	end(&s);
}

static void a_conflict_ends_what_was_granted_at_home(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_OPEN);
	const struct claim_answer on_b = direct(&s, &s.b, 11);
	assert_int_equal(on_b.verdict, CLAIM_GRANTED);
	cut(&s);
	const struct claim_answer on_a = direct(&s, &s.a, 11); // the same visitor
	assert_int_equal(on_a.verdict, CLAIM_GRANTED);
	run(&s, 11000);
	assert_int_equal(counters(&s.a)->conflicts, 1);
	assert_true(ended_has(s.a.ended, on_a.session) && ended_has(s.b.ended, on_a.session));
	assert_false(ended_has(s.b.ended, on_b.session));
	end(&s);
}

// --- bounds

static void what_cannot_be_remembered_is_not_asked_for(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	s.a.member->known.free_count = 0;
	assert_int_equal(direct(&s, &s.a, 11).verdict, CLAIM_REFUSED);
	assert_int_equal(counters(&s.a)->known_full, 1);
	s.a.member->known.free_count = s.a.member->known.max;
	assert_int_equal(direct(&s, &s.a, 12).verdict, CLAIM_GRANTED);
	end(&s);
}

static void the_ring_takes_so_many_and_no_more(void **state)
{
	(void)state;
	struct story s;
	begin(&s, MEMBER_HOLD);
	const struct claim gone = {.kind = CLAIM_GONE, .visitor = 1, .session = 1, .line_id = LINE};
	while (member_room(s.a.member) > 0)
		member_claims(s.a.member, &gone, 1, now_of(&s, &s.a));
	assert_int_equal(s.a.member->claim_end - s.a.member->claim_first, MEMBER_CLAIMS_MAX);
	// What answers that found nobody have to say still has room, up to a batch of them.
	s.a.member->claim_end = s.a.member->claim_first + MEMBER_CLAIMS_MAX + LEDGER_ENTRIES_MAX;
	assert_int_equal(counters(&s.a)->unsaid, 0);
	member_claims(s.a.member, &gone, 0, now_of(&s, &s.a));
	assert_int_equal(member_room(s.a.member), 0);
	s.a.member->claim_end = s.a.member->claim_first;
	end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_verdict_is_answered),
		cmocka_unit_test(a_ticket_is_called_and_granted_once),
		cmocka_unit_test(a_direct_answer_that_finds_nobody_is_undone),
		cmocka_unit_test(a_lost_reply_changes_nothing),
		cmocka_unit_test(a_reply_that_cannot_be_read_is_none),
		cmocka_unit_test(a_skewed_batch_is_granted_nothing),
		cmocka_unit_test(a_clock_that_nobody_saw_go_back),
		cmocka_unit_test(who_was_stopped_spends_nothing_late),
		cmocka_unit_test(an_end_on_a_is_refused_on_b),
		cmocka_unit_test(a_leave_on_a_is_known_on_b),
		cmocka_unit_test(a_leave_with_a_pass_of_another),
		cmocka_unit_test(a_decision_is_with_all_at_once),
		cmocka_unit_test(records_go_both_ways),
		cmocka_unit_test(a_store_that_lost_writes_is_told_again),
		cmocka_unit_test(what_a_process_before_granted_counts_as_taken),
		cmocka_unit_test(what_is_known_when_all_are_back_was_all),
		cmocka_unit_test(a_member_that_was_missing_brings_what_it_knows),
		cmocka_unit_test(an_end_that_found_no_room_is_no_later_end),
		cmocka_unit_test(a_name_is_one_appliances),
		cmocka_unit_test(a_goodbye_is_the_last_word),
		cmocka_unit_test(a_rate_is_used),
		cmocka_unit_test(hold_grants_nobody),
		cmocka_unit_test(open_lets_everybody_in_and_says_so_after),
		cmocka_unit_test(a_share_is_a_share),
		cmocka_unit_test(a_share_is_for_those_who_wait),
		cmocka_unit_test(a_conflict_ends_what_was_granted_at_home),
		cmocka_unit_test(what_cannot_be_remembered_is_not_asked_for),
		cmocka_unit_test(the_ring_takes_so_many_and_no_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
