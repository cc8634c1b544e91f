// A counting sort by worker: one pass counts, one places, one hands out.

#include "controlplane/claims/claims_answers.h"

#include <assert.h>

struct claim_answer *claims_answers_add(
	struct claims_answers *a, const struct claim *claim, enum claim_verdict verdict)
{
	assert(a->count < CLAIMS_ANSWERS_MAX);
	a->workers[a->count] = claim->worker;
	struct claim_answer *answer = &a->answers[a->count++];
	*answer = (struct claim_answer){
		.verdict = (uint8_t)verdict,
		.kind = claim->kind,
		.room = claim->room,
		.request = claim->request,
		.generation = claim->generation,
		.poll_after = claim->poll_after,
		.key = claim->key,
		.visitor = claim->visitor,
		.line_id = claim->line_id,
	};
	return answer;
}

static void later_of_each(struct claims_answers *a, struct claims_rooms *rooms, uint64_t now_ms)
{
	for (uint32_t i = 0; i < rooms->count; i++) {
		struct claims_rooms_entry *room = &rooms->entries[i];
		while (room->is_touched && a->count < CLAIMS_ANSWERS_MAX &&
			controller_later(room->is.controller, now_ms, &a->answers[a->count],
				&a->workers[a->count]))
			a->count++;
	}
}

void claims_answers_later(struct claims_answers *a, struct claims_rooms *rooms, uint64_t now_ms)
{
	uint32_t before;
	do {
		before = a->count;
		later_of_each(a, rooms, now_ms);
	} while (a->count > before);
}

uint32_t claims_answers_granted(const struct claims_answers *a)
{
	uint32_t granted = 0;
	for (uint32_t i = 0; i < a->count; i++)
		granted += a->answers[i].verdict == CLAIM_GRANTED;
	return granted;
}

void claims_answers_deliver(struct claims_answers *a, const struct claims_seams *seams,
	claims_answers_fn *undelivered, void *ctx)
{
	uint32_t begin[CLAIMS_ANSWERS_WORKERS + 1] = {0}, at[CLAIMS_ANSWERS_WORKERS];
	for (uint32_t i = 0; i < a->count; i++)
		begin[a->workers[i] + 1]++;
	for (uint32_t worker = 0; worker < CLAIMS_ANSWERS_WORKERS; worker++) {
		at[worker] = begin[worker];
		begin[worker + 1] += begin[worker];
	}
	for (uint32_t i = 0; i < a->count; i++)
		a->by_worker[at[a->workers[i]]++] = a->answers[i];
	for (uint32_t worker = 0; worker < CLAIMS_ANSWERS_WORKERS; worker++) {
		const struct claim_answer *answers = &a->by_worker[begin[worker]];
		uint32_t count = begin[worker + 1] - begin[worker];
		uint32_t taken = count ? seams->answer(seams->ctx, worker, answers, count) : 0;
		assert(taken <= count);
		for (uint32_t i = taken; i < count; i++)
			undelivered(ctx, &answers[i]);
	}
	a->count = 0;
}
