// Verdict: what one claim gets.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/claim.h"

struct controller;

// Cluster time until which a claim can be put off: its worker waits for no more than a second.
uint64_t verdict_until_ms(const struct controller *c, const struct claim *claim);

enum verdict_patience {
	VERDICT_NOW, // it cannot be put off
	VERDICT_MAY_WAIT, // it can, if that is worth while
	VERDICT_WAITS, // it has been, and can be for longer
};

// Decide a claim.
//   session  a fresh id, used if one begins
//   answer   verdict, session, expires, issued and poll_after are filled
// Returns false if it should be put off.
bool verdict_give(struct controller *c, const struct claim *claim, uint64_t session,
	enum verdict_patience patience, struct claim_answer *answer);
