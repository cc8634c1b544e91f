// Report: what a crowd has to tell, as a table or as one flat JSON object.
#pragma once

#include <stdio.h>

#include "bench/crowd/judge.h"
#include "bench/crowd/plan.h"
#include "bench/crowd/tally.h"

// What the shop says of itself (GET /stats of config/demo/shop). Each figure is -1 if it could not
// be had.
struct report_shop {
	double inside, inside_max, sessions, requests, without_session, after_end;
};

// Ask the shop, blocking for some seconds at most.
void report_ask_shop(const struct plan_peer *peer, struct report_shop *shop);

// Print it all. Keys of the JSON are those of the table.
void report_print(const struct plan *plan, const struct tally *tally,
	const struct judge_finding *finding, const struct report_shop *shop, double ran_s,
	FILE *file);
