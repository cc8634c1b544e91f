// Verdict: what one claim gets.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/claim.h"

struct controller;

// Decide a claim.
//   session   a fresh id, used if one begins
//   may_wait  it can be put off
//   answer    verdict, session, expires, issued and poll_after are filled
// Returns false if it should be put off; then nothing is filled.
bool verdict_give(struct controller *c, const struct claim *claim, uint64_t session, bool may_wait,
	struct claim_answer *answer);
