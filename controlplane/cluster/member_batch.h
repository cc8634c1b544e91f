// Batch: what a member says next. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

#define MEMBER_BATCH_KNOWN_MAX 256u // entries about what is known
#define MEMBER_BATCH_CLAIMS_MAX 512u // claims
#define MEMBER_BATCH_RECORDS_MAX 16u
#define MEMBER_BATCH_OFFERS_MAX 128u
#define MEMBER_BATCH_VIEWS_MAX 8u

// A new entry of the batch that is being made; NULL if it is full.
struct ledger_entry *member_batch_add(
	struct member *m, enum ledger_kind kind, uint32_t line, enum member_inside_source source);

// Not that one after all.
void member_batch_drop(struct member *m);

// Make a batch, if there is something to say and none is in flight, and send what is to be sent.
void member_batch_turn(struct member *m);

// Whether anything waits to be said.
bool member_batch_is_idle(const struct member *m);
