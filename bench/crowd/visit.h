// Visit: what a visitor does, from arriving to having left.
//
//     AWAY ──▶ WAITING ──▶ ENTERING ──▶ SHOPPING ──▶ TELLING ─▶ LEAVING ─▶ OVER
//       └─────────────────────────────────▲  ├─────▶ BUYING ─────────────▶
//        (let in at once)                    └─────▶ STAYING ────────────▶
//
// Any step may end in OVER early: lost, turned away, gave up. With `--forever` who is over is AWAY
// again. A second tab only waits: once admitted it compares sessions and is over.
#pragma once

#include "bench/crowd/crowd.h"

struct answer;

// The visitor's time has come to arrive or to do the next thing.
void visit_due(struct crowd *crowd, uint32_t id);

// The member's request goes out now, for the first time or again.
void visit_sends(struct crowd *crowd, uint32_t id);

// What was asked is answered. `answer` is borrowed.
void visit_answered(
	struct crowd *crowd, uint32_t id, enum request asked, const struct answer *answer);

// What was asked failed, and has been counted.
void visit_failed(struct crowd *crowd, uint32_t id);

// The run ends: what is under way is closed in the tally.
void visit_unfinished(struct crowd *crowd, uint32_t id);
