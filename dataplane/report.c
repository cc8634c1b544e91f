// What a worker tells control, and what it hears back.
//
// Claims that somebody waits for are refused when the ring is full: the visitor polls again.
// Reports are kept in a queue and sent when the ring takes them, in order.

#include "dataplane/report.h"

#include "dataplane/burst.h"
#include "dataplane/gate/gather.h"

#include <assert.h>
#include <unistd.h>

static bool push(struct worker *w, const struct claim *claim)
{
	if (!rings_push_claim(w->plan.rings, claim))
		return false;
	w->has_claims = true;
	return true;
}

bool report_claim(struct worker *w, const struct claim *claim)
{
	if (push(w, claim)) {
		inside_count(w, COUNTER_claims);
		return true;
	}
	inside_count(w, COUNTER_claim_ring_full);
	return false;
}

void report_send(struct worker *w, const struct claim *claim)
{
	if (w->report_count == 0 && push(w, claim))
		return;
	if (w->report_count == WORKER_REPORTS_MAX) {
		inside_count(w, COUNTER_reports_full);
		return;
	}
	w->reports[(w->report_first + w->report_count++) % WORKER_REPORTS_MAX] = *claim;
}

void report_flush(struct worker *w)
{
	while (w->report_count > 0 && push(w, &w->reports[w->report_first])) {
		w->report_first = (w->report_first + 1) % WORKER_REPORTS_MAX;
		w->report_count--;
	}
	if (!w->has_claims)
		return;
	w->has_claims = false;
	uint64_t one = 1;
	ssize_t written = write(w->plan.control_wake, &one, sizeof(one));
	(void)written; // a full eventfd is awake already
}

void report_gone(struct worker *w, const struct claim_answer *answer)
{
	inside_count(w, COUNTER_claim_gone);
	struct claim gone = {.kind = CLAIM_GONE,
		.worker = (uint8_t)w->plan.index,
		.room = answer->room,
		.key = answer->key,
		.visitor = answer->visitor,
		.session = answer->session,
		.expires = answer->expires,
		.line_id = answer->line_id,
		.sent_ms = w->now_ms};
	report_send(w, &gone);
}

void report_code_gone(struct worker *w, const struct claim_answer *answer)
{
	if (answer->expires & CLAIM_PLACE_AGAIN)
		return; // it is somebody's
	inside_count(w, COUNTER_code_undone);
	const bool is_gathered = answer->expires & CLAIM_PLACE_GATHERED;
	struct claim gone = {.kind = CLAIM_CODE_GONE,
		.worker = (uint8_t)w->plan.index,
		.room = answer->room,
		.key = answer->session,
		.session = answer->digest,
		.visitor = answer->visitor,
		.place = answer->key | (is_gathered ? GATHER_NUMBER : 0),
		.expires = answer->lane_id,
		.line_id = answer->line_id,
		.sent_ms = w->now_ms};
	report_send(w, &gone);
}

void report_passed(struct worker *w, const struct gate_room *room)
{
	struct claim passed = {.kind = CLAIM_PASSED,
		.worker = (uint8_t)w->plan.index,
		.room = room->index,
		.line_id = room->line_id,
		.sent_ms = w->now_ms};
	report_send(w, &passed);
}

// Nobody waits for it: the origin's command renewed a session, and every worker is told.
static void note_renewal(struct worker *w, const struct claim_answer *answer)
{
	if (answer->verdict == CLAIM_RENEWED)
		w->renewals[answer->session % RENEWALS_MAX] =
			(struct renewal){answer->session, answer->expires};
}

bool report_answers(struct worker *w)
{
	static_assert(ANSWERS_MAX * sizeof(struct claim_answer) <= 16384, "fits the stack");
	struct claim_answer answers[ANSWERS_MAX];
	unsigned answer_count = rings_pop_answers(w->plan.rings, answers, ANSWERS_MAX);
	for (unsigned i = 0; i < answer_count; i++) {
		const struct claim_answer *answer = &answers[i];
		if (answer->kind == CLAIM_RENEW && answer->generation == 0) {
			note_renewal(w, answer);
			continue;
		}
		struct conn *conn = conn_of(&w->conns, answer->request, answer->generation);
		if (conn && conn->state == CONN_PARKED && !conn->is_pending)
			burst_offer_answered(w, conn, answer);
		else if (answer->verdict == CLAIM_GRANTED)
			report_gone(w, answer);
		else if (answer->verdict == CLAIM_HONOURED &&
			 (answer->expires & CLAIM_PLACE_NOBODYS))
			report_code_gone(w, answer); // whoever holds a ticket may ask again
	}
	burst_run(w); // the answers live until here
	return answer_count > 0;
}

void report_refused(struct worker *w, const struct claim *claim)
{
	struct refused *refused = &w->shown.refused[claim->room];
	if (atomic_load(&refused->line_id) != claim->line_id) {
		atomic_store(&refused->key, UINT64_MAX);
		atomic_store(&refused->line_id, claim->line_id);
	}
	if (claim->poll_after > atomic_load(&refused->poll_after))
		atomic_store(&refused->poll_after, claim->poll_after);
	if (claim->key < atomic_load(&refused->key))
		atomic_store(&refused->key, claim->key);
	atomic_store(&w->shown.has_refused, true);
}

unsigned worker_take_refused(
	struct worker *worker, struct worker_refused refused[GATE_MAP_ROOMS_MAX])
{
	unsigned count = 0;
	if (!atomic_exchange(&worker->shown.has_refused, false))
		return 0;
	for (unsigned i = 0; i < GATE_MAP_ROOMS_MAX; i++) {
		struct refused *room = &worker->shown.refused[i];
		uint64_t key = atomic_exchange(&room->key, UINT64_MAX);
		if (key != UINT64_MAX)
			refused[count++] = (struct worker_refused){key, atomic_load(&room->line_id),
				atomic_exchange(&room->poll_after, 0)};
	}
	return count;
}
