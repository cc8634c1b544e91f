// Codes of lanes: which are good is known here (codes/), how often each was used the ledger knows.

#include "controlplane/appliance/inside.h"

bool appliance_code(void *ctx, const struct claim *claim, struct claim_answer *answer,
	struct ledger_entry *entry)
{
	(void)ctx, (void)claim, (void)answer, (void)entry;
	return false;
}

void appliance_code_answered(void *ctx, const struct ledger_entry *entry,
	const struct ledger_answer *said, struct claim_answer *answer)
{
	(void)ctx, (void)entry, (void)said, (void)answer;
}
