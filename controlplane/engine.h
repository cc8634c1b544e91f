// Engine: who decides about claims. An appliance alone does it by itself (claims/), one of several
// asks the ledger that all share (appliance/).
//
//   rings ─▶ turn.c ─▶ engine ─▶ answers ─▶ rings
//                        ├ alone: claims/ ─▶ controllers ─▶ store
//                        └ cluster: member ─▶ ledger
//
// Rooms have controllers either way, which hold their limits; in a cluster nobody asks them.
// Control thread only.
#pragma once

#include "controlplane/control.h"

struct engine {
	// How many claims it takes now, up to CLAIMS_TURN_MAX.
	uint32_t (*room)(struct control *c);
	// One turn with that many, every CONTROL_TICK_MS and at once when claims come.
	void (*turn)(
		struct control *c, const struct claim *claims, uint32_t count, uint64_t now_ms);
	// A worker refused a claim (claims_refused()).
	void (*refused)(struct control *c, const struct worker_refused *refused, uint64_t now_ms);
	// Rooms, their limits, states or modes are others now.
	void (*changed)(struct control *c);
	// A line begins, which has a place in the file, or is given up. Returns 0 or -errno.
	int (*begin)(struct control *c, struct control_room *room);
	void (*end)(struct control_room *room);
	// Commands said something of a room that others are to know. Returns false if they cannot
	// be told now.
	bool (*share)(struct control *c, const struct control_room *room);
	// Whether something is in flight that a reload has to wait for.
	bool (*is_busy)(const struct control *c);
	// How a line stands.
	void (*look)(struct control *c, const struct control_room *room, uint64_t now_ms,
		struct controller_view *view);
	// Visitors forwarded uncounted in a line.
	uint64_t (*passed)(const struct control *c, const struct control_room *room);
	// `release N`. Returns false if that cannot be now.
	bool (*release)(
		struct control *c, struct control_room *room, uint64_t people, uint64_t now_ms);
	// An event is over for those below `key`.
	void (*lapse)(struct control *c, struct control_room *room, uint64_t key, uint64_t now_ms);
};

extern const struct engine engine_alone;
