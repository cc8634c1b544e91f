// Barriers are passed in the order in which they began, so only the oldest is asked about.

#include "controlplane/claims/claims_endings.h"

#include <assert.h>
#include <stdlib.h>

bool claims_endings_init(struct claims_endings *e, uint32_t max)
{
	e->max = max;
	e->entries = calloc(max, sizeof(*e->entries));
	return e->entries != NULL;
}

void claims_endings_fini(struct claims_endings *e)
{
	free(e->entries);
}

bool claims_endings_is_full(const struct claims_endings *e)
{
	return e->end - e->first == e->max;
}

void claims_endings_add(struct claims_endings *e, uint32_t line_id, uint64_t session)
{
	assert(!claims_endings_is_full(e));
	e->entries[e->end++ % e->max] = (struct claims_endings_entry){session, 0, line_id};
}

void claims_endings_seal(struct claims_endings *e, const struct claims_seams *seams)
{
	if (e->sealed == e->end)
		return;
	uint64_t token = seams->barrier_begin(seams->ctx);
	for (; e->sealed < e->end; e->sealed++)
		e->entries[e->sealed % e->max].token = token;
}

bool claims_endings_take(struct claims_endings *e, const struct claims_seams *seams,
	struct claims_endings_entry *entry)
{
	if (e->first == e->sealed)
		return false;
	*entry = e->entries[e->first % e->max];
	if (!seams->barrier_passed(seams->ctx, entry->token))
		return false;
	e->first++;
	return true;
}
