// Resync: the state of the ledger, read page by page: at the first reply, and whenever news were
// missed. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

// Begin anew.
void member_resync_begin(struct member *m);

// Put the next questions into the batch.
void member_resync_put(struct member *m);

// One was answered.
void member_resync_answered(
	struct member *m, const struct ledger_entry *entry, const struct ledger_answer *answer);

// The reply has been taken, news and all.
void member_resync_turn(struct member *m);
