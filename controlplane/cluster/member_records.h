// Records that wait for the ledger: oldest first, the first ones in the batch that is in flight.
// For member*.c alone; control thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/cluster/member.h"

struct member_records {
	uint32_t count, sent; // sent: of these, in the batch in flight
	struct ledger_record list[MEMBER_RECORDS_MAX]; // bytes: index into `bytes`
	uint32_t slots[MEMBER_RECORDS_MAX]; // whose bytes they are; those behind `count` are free
	uint8_t bytes[MEMBER_RECORDS_MAX][LEDGER_BLOB_MAX];
};

// Nothing waits.
void member_records_init(struct member_records *r);

// As member_put_record().
bool member_records_put(struct member_records *r, const struct ledger_record *record);

// The next one for the batch that is being made, or NULL. It lives until it is taken.
const struct ledger_record *member_records_send(struct member_records *r);

// The first of those sent has been answered.
void member_records_take(struct member_records *r);
