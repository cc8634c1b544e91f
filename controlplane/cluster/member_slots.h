// Slots: our own tickets, closed and told. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

#define MEMBER_SLOTS_ENTRIES_MAX 256u // of a batch

// Close all lines behind the clock.
void member_slots_close(struct member *m);

// Put what is not told into the batch, before its claims, and `closed` into its head.
void member_slots_put(struct member *m);

// The first slot from `from` on that has own tickets, closed; UINT64_MAX: none.
uint64_t member_slots_untold(const struct member_inside_line *line, uint64_t from);

// An entry of the batch was answered.
void member_slots_answered(
	struct member *m, const struct ledger_entry *entry, const struct ledger_answer *answer);

// The batch has its reply: what was in it is told.
void member_slots_told(struct member *m);

// All is to be told again, from the first.
void member_slots_again(struct member *m);
