// The guard stands here and not in the decision, which knows no addresses.

#include "dataplane/act_code.h"

#include "dataplane/guard.h"
#include "dataplane/proxied.h"
#include "dataplane/report.h"

static void source_of(const struct worker *w, const struct item *item, uint8_t ip[16])
{
	proxied_source(w->snapshot, &item->head, item->conn->stream->peer.ip, ip);
}

void act_code_guard(struct worker *w, const struct item *item, struct decision *decision)
{
	uint8_t ip[16];
	if (decision->action != DECIDE_CLAIM || decision->claim.kind != CLAIM_CODE)
		return;
	source_of(w, item, ip);
	if (guard_take(w->plan.words->guard, ip, w->snapshot->code_attempts, w->now_s))
		return;
	decision->action = DECIDE_ANSWER;
	decision->answer = DECIDE_INVITATION;
	decision->outcome = CODE_guarded;
	decision->status.poll_after = GUARD_MINUTE_S - w->now_s % GUARD_MINUTE_S;
}

void act_code_answered(struct worker *w, const struct item *item, const struct decision *decision)
{
	const struct claim_answer *answer = item->answer;
	const uint8_t verdict = answer ? answer->verdict : CLAIM_REFUSED;
	const bool is_code = !answer || answer->kind == CLAIM_CODE;
	uint8_t ip[16];
	if (verdict == CLAIM_KNOWN)
		inside_count(w, COUNTER_codes_known);
	if (verdict == CLAIM_HONOURED && decision->lane_id != answer->lane_id)
		report_code_gone(w, answer);
	else if (verdict == CLAIM_HONOURED && is_code)
		inside_count(w, COUNTER_codes_honoured);
	if (!is_code || verdict == CLAIM_UNKNOWN || verdict == CLAIM_SPENT)
		return;
	source_of(w, item, ip);
	guard_give(w->plan.words->guard, ip, w->now_s);
}
