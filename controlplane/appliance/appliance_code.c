// Codes and links of lanes. A link needs nobody but who gives the place: it is drawn here, and the
// place that was held is given up at the ledger. Uses of codes would have to be counted there
// (LEDGER_CODE); until they are, check refuses lists with a shared store.

#include "controlplane/appliance/inside.h"

#include "controlplane/lanes.h"
#include "controlplane/log.h"
#include "controlplane/turn.h"

static bool is_about_lane(const struct claim *claim)
{
	return claim->kind == CLAIM_CODE || claim->kind == CLAIM_MOVE ||
	       claim->kind == CLAIM_CODE_GONE;
}

// Draw a place, or take one back. What is to be remembered of it is remembered here alone: who
// follows a link on two appliances has two places.
static void ask_lanes(
	struct control *c, const struct claim *claim, uint64_t now_ms, struct claim_answer *answer)
{
	struct store_record records[LANES_RECORDS] = {0};
	const uint32_t count = lanes_claim(c, claim, now_ms, answer, records);
	for (uint32_t i = 0; i < count; i++)
		if (!store_put(c->store, &records[i]))
			log_error("the own store took no record of a lane's place");
}

// Returns whether the place that was held is given up.
static bool answer_move(struct control *c, const struct claim *claim, uint64_t now_ms)
{
	struct claim_answer answer = {.verdict = CLAIM_REFUSED,
		.kind = claim->kind,
		.room = claim->room,
		.request = claim->request,
		.generation = claim->generation,
		.poll_after = claim->poll_after,
		.key = claim->key,
		.visitor = claim->visitor,
		.line_id = claim->line_id};
	if (claim->kind == CLAIM_MOVE)
		ask_lanes(c, claim, now_ms, &answer);
	const bool is_taken = turn_seams.answer(c, claim->worker, &answer, 1) == 1;
	return is_taken && answer.verdict == CLAIM_HONOURED && claim->expires && claim->place;
}

uint32_t appliance_take_codes(struct control *c, const struct claim *claims, uint32_t count,
	struct claim *others, uint64_t now_ms)
{
	uint32_t other_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct claim *claim = &claims[i];
		if (!is_about_lane(claim))
			others[other_count++] = *claim;
		else if (claim->kind == CLAIM_CODE_GONE)
			ask_lanes(c, claim, now_ms, NULL);
		else if (answer_move(c, claim, now_ms))
			others[other_count++] = (struct claim){.kind = CLAIM_LEAVE,
				.worker = claim->worker,
				.room = UINT16_MAX, // found by its line
				.key = claim->place,
				.visitor = claim->visitor,
				.line_id = claim->expires,
				.sent_ms = now_ms};
	}
	return other_count;
}
