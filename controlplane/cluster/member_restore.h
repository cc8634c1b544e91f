// Restore: what a store that has lost writes is told again. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

// A reply was taken: has the store lost writes since the last one?
void member_restore_look(struct member *m);

// Put what is written back into the batch; before its claims.
void member_restore_put(struct member *m);

// And, behind all the rest, that it is all there.
void member_restore_put_end(struct member *m);

// An entry of MEMBER_INSIDE_RESTORE, _KNOWN or _RESTORED was answered.
void member_restore_answered(struct member *m, uint32_t index, const struct ledger_answer *answer);

// Whether the ledger has it all.
bool member_restore_is_done(const struct member *m);
