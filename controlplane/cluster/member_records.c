// Records: their bytes lie still while the list moves, since batches point to them.

#include "controlplane/cluster/member_records.h"

#include <assert.h>
#include <string.h>

void member_records_init(struct member_records *r)
{
	r->count = r->sent = 0;
	for (uint32_t i = 0; i < MEMBER_RECORDS_MAX; i++)
		r->slots[i] = i;
}

bool member_records_put(struct member_records *r, const struct ledger_record *record)
{
	assert(record->len <= LEDGER_BLOB_MAX);
	uint32_t i = r->sent;
	while (i < r->count && (r->list[i].type != record->type || r->list[i].id != record->id))
		i++;
	if (i == MEMBER_RECORDS_MAX)
		return false;
	r->count += i == r->count;
	uint8_t *bytes = r->bytes[r->slots[i]];
	if (record->len > 0)
		memcpy(bytes, record->bytes, record->len);
	r->list[i] = *record;
	r->list[i].bytes = bytes;
	return true;
}

const struct ledger_record *member_records_send(struct member_records *r)
{
	return r->sent < r->count ? &r->list[r->sent++] : NULL;
}

void member_records_take(struct member_records *r)
{
	assert(r->sent > 0);
	const uint32_t slot = r->slots[0];
	r->count--;
	r->sent--;
	memmove(&r->list[0], &r->list[1], r->count * sizeof(r->list[0]));
	memmove(&r->slots[0], &r->slots[1], (MEMBER_RECORDS_MAX - 1) * sizeof(r->slots[0]));
	r->slots[MEMBER_RECORDS_MAX - 1] = slot;
}
