// The people of a rig: they come, poll as told at whichever member is up, claim, stay, and go.
#pragma once

#include "tests/sim/cluster/rig.h"

// Between the files of the rig.
uint64_t rig_random(struct rig *rig, uint64_t limit);
void rig_check(const struct rig *rig, bool is_kept, const char *law);

void rig_crowd_init(struct rig *rig);

// Everybody whose turn it is in this step.
void rig_crowd_step(struct rig *rig, uint32_t step);

// Claims of a member that were put off and are due are to be asked again.
void rig_crowd_again(struct rig *rig, struct rig_member *member);

// What the ledger said to a claim.
void rig_crowd_answer(struct rig *rig, struct rig_member *member, uint32_t who,
	const struct ledger_entry *entry, const struct ledger_answer *answer);
