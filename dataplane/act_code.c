// The guard stands here and not in the decision, which knows no addresses. Whoever comes through a
// trusted proxy is whom that proxy names, last in X-Forwarded-For: it wrote that itself.

#include "dataplane/act_code.h"

#include "dataplane/guard.h"
#include "dataplane/http/octet.h"
#include "dataplane/report.h"
#include "drivers/ip.h"

#include <arpa/inet.h>
#include <string.h>

// The last address of the field, IPv4 mapped. Returns false if that is none.
static bool last_forwarded(const struct http_head *head, uint8_t ip[16])
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_x_forwarded_for), *next;
	if (!field)
		return false;
	while ((next = http_field_next(head, field)))
		field = next;
	struct span value = http_field_value(head, field);
	const char *comma = memrchr(value.at, ',', value.len);
	if (comma)
		value = span_from(value, (size_t)(comma + 1 - value.at));
	while (value.len > 0 && octet_is_space(value.at[0]))
		value = span_from(value, 1);
	char text[INET6_ADDRSTRLEN] = {0};
	if (value.len >= sizeof(text))
		return false;
	memcpy(text, value.at, value.len);
	uint8_t v4[4];
	if (inet_pton(AF_INET, text, v4) != 1)
		return inet_pton(AF_INET6, text, ip) == 1;
	ip_map(ip, v4);
	return true;
}

static void source_of(const struct worker *w, const struct item *item, uint8_t ip[16])
{
	const uint8_t *peer = item->conn->stream->peer.ip;
	if (!snapshot_is_trusted(w->snapshot, peer) || !last_forwarded(&item->head, ip))
		memcpy(ip, peer, 16);
}

void act_code_guard(struct worker *w, const struct item *item, struct decision *decision)
{
	uint8_t ip[16];
	if (decision->action != DECIDE_CLAIM || decision->claim.kind != CLAIM_CODE)
		return;
	source_of(w, item, ip);
	if (guard_take(w->plan.words->guard, ip, w->snapshot->code_attempts, w->now_s)) {
		inside_count(w, COUNTER_codes);
		return;
	}
	decision->action = DECIDE_ANSWER;
	decision->answer = DECIDE_INVITATION;
	decision->outcome = CODE_guarded;
	decision->status.poll_after = GUARD_MINUTE_S - w->now_s % GUARD_MINUTE_S;
}

void act_code_answered(struct worker *w, const struct item *item, const struct decision *decision)
{
	const struct claim_answer *answer = item->answer;
	const uint8_t verdict = answer ? answer->verdict : CLAIM_REFUSED;
	uint8_t ip[16];
	if (verdict == CLAIM_KNOWN)
		inside_count(w, COUNTER_codes_known);
	if (verdict == CLAIM_HONOURED && decision->lane_id == answer->lane_id)
		inside_count(w, COUNTER_codes_honoured);
	else if (verdict == CLAIM_HONOURED)
		report_code_gone(w, answer);
	if (verdict == CLAIM_UNKNOWN || verdict == CLAIM_SPENT)
		return;
	source_of(w, item, ip);
	guard_give(w->plan.words->guard, ip, w->now_s);
}
