// Clients, a link each way, and a server that is ours, in virtual time.
//
//   model (naive) ─┐                           ┌─ ours
//                  ├── up ─▶ ──── ◀─ down ──────┤
//   ours, a pair ──┘                           └
//
// One thread, one random number generator: the seed replays everything.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/sim/tcp/link.h"
#include "tests/sim/tcp/model.h"
#include "tests/sim/tcp/ours.h"
#include "tests/sim/tcp/pair.h"
#include "tests/sim/tcp/talk.h"

struct world_plan {
	uint64_t seed;
	struct tcp_plan tcp;
	int event_max;
	struct link_plan up, down;
	bool hides_too_big; // no ICMP comes of a segment too large
	bool is_pair; // ours against ours
	struct model_plan model; // isn apart
	bool has_near_wrap; // the models' first numbers lie before the wrap
	uint32_t clients, conversations; // of each client, one after the other
	uint32_t gap_us; // between two of one client, at most, apart from what the link holds
	struct talk_plan talk; // end and middle apart
	uint32_t ends; // set of 1 << enum talk_end
	uint64_t drain_at_us; // no newcomers from then on; UINT64_MAX
	bool is_strict; // nothing here is a reason not to end well
	uint64_t limit_us; // all is over by then
};

struct world_report {
	uint64_t worlds, conversations, well, broken, bytes, segments, lost, turns;
	uint64_t virtual_us;
	uint64_t counters[TCP_COUNTERS_COUNT];
};

// Run to the end. Aborts when something is wrong.
//   trace  print every segment
void world_run(const struct world_plan *plan, struct world_report *report, bool trace);
