// How much the store must be able to hold back: the bound that keeps a batch from ever being full.

#include "controlplane/claims/claims.h"
#include "controlplane/store/secrets.h"

uint32_t claims_records(const struct claims_plan *plan, uint64_t sessions_total)
{
	// Each visitor that the store knows and that must be forgotten, and each that is known now;
	// ended sessions; line and room each; history; codes of a turn, since none are honoured
	// while it is unsaved. A quarter is for grants only, and a turn's worth of them must fit.
	uint64_t records = 2 * sessions_total + plan->ended_max + 2 * (uint64_t)plan->rooms_max +
			   STORE_HISTORY_MAX + SECRETS_MAX +
			   2 * CLAIMS_CODE_RECORDS * CLAIMS_TURN_MAX;
	records = records * 4 / 3 + 4 * CLAIMS_ANSWERS_MAX;
	return records < 1u << 29 ? (uint32_t)records : 1u << 29;
}
