// The inside of the control thread: one struct that its files share.
//
//   main.c       the command line
//   run.c        start, loop, drain, stop
//   pools.c      pools: what rooms share
//   rooms.c      rooms: their controllers, and what commands changed
//   doors.c      when rooms are open, and whose places are drawn
//   engine.c     who decides about claims
//   appliance/   one appliance of several
//   turn.c       one turn: claims of all workers, answers, what is due each second
//   publish.c    the snapshot
//   resolve.c    names of origin servers
//   trusts.c     certificates that origins are verified by
//   certificates.c  those that visitors are shown
//   faults.c     when to say why one is not spoken to
//   ports.c      network ports and their memory
//   show.c       what `show` says
//   commands.c   what commands do
#pragma once

#include <event2/event.h>

#include "config/config.h"
#include "controlplane/claims/claims.h"
#include "controlplane/clock.h"
#include "controlplane/controller/tally.h"
#include "controlplane/draws/draws.h"
#include "controlplane/faults.h"
#include "controlplane/ports.h"
#include "controlplane/resolve.h"
#include "controlplane/schedule/schedule.h"
#include "controlplane/store/secrets.h"
#include "controlplane/store/state.h"
#include "controlplane/store/store.h"
#include "controlplane/store/tickets.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/rooms.h"
#include "dataplane/gate/status.h"
#include "dataplane/rings.h"
#include "dataplane/snapshot.h"
#include "dataplane/worker.h"

struct admin;
struct appliance;
struct certificates;
struct codes;
struct codes_lists;
struct engine;
struct moves;
struct ranks;

#define CONTROL_SERVERS_MAX 1024u // addresses of all origins
#define CONTROL_TICK_MS 20 // at least so often; sooner when claims come
#define CONTROL_QUICK_MS 2 // so often while a list is closed and drawn

// A pool of the configuration, which rooms share; or that of a room with lanes, which share it.
struct control_pool {
	const char *name; // of the pool or the room, in the configuration in force
	bool is_of_room;
	struct pool *pool;
};

// A room: its configuration of now, what commands made of it, and who steers it. Or a lane of one,
// for which all but line and controller is that of its room.
struct control_room {
	uint32_t line_id;
	const char *name; // of a lane ROOM/LANE
	const struct config_room *config; // of the configuration in force
	const struct config_lane *lane; // NULL: the room itself
	struct control_room *room; // whose lane it is; NULL: the room itself
	struct controller *controller;
	struct place_line *line;
	uint8_t state_override; // enum gate_room_state, or STORE_AS_CONFIGURED
	uint8_t mode_override; // enum gate_mode, or STORE_AS_CONFIGURED
	char message[STATUS_MESSAGE_BYTES_MAX + 1]; // UTF-8; empty: none

	// Doors (doors.h).
	struct schedule schedule;
	struct schedule_event *events; // its own
	const struct config_event **event_configs; // of each; NULL: the room's own times
	struct schedule_view doors; // as last looked at
	uint8_t doors_state; // enum gate_room_state, if no command says otherwise
	uint32_t opens_s, gathers_s; // unix s, while the doors are closed; else 0
	struct config_room in_force; // `config` with what the event under way overrides
	const struct config_event *event; // that one; NULL: none
	struct draws_line *draws; // NULL: nobody gathers here
	uint64_t draws_total; // when last looked
	uint8_t salt[DRAW_SALT_BYTES_MAX]; // of a command, for the next draw
	uint8_t salt_bytes; // 0: that of the configuration

	// Of a cluster (appliance/).
	struct ranks *ranks; // of all appliances
	bool was_away; // went by on_store_loss when last looked at
	uint64_t otherwise, otherwise_seen; // appliances that have it configured otherwise than is
					    // in force, as was said; at the last look
	uint64_t admitted_at[TALLY_SECONDS]; // by the second: how many were admitted until then
	double admit_rate; // by these
	uint64_t codes_used, code_uses; // of a lane, on all appliances
	uint64_t codes_looked_us; // when that was last asked
};

// What control remembers of a worker between looks.
struct control_watch {
	uint64_t turns; // counter when last looked at
	uint64_t since_us; // since when it has not moved; 0: it moves
	bool stands_still; // said so
};

struct control {
	const char *config_path;
	struct config *config; // in force, but for keys that only a restart changes:
	struct config *started; // those are this one's
	struct event_base *base;
	struct event *tick, *wake, *signals[3];
	bool is_quick; // the tick is
	int wake_fd; // eventfd that workers write to
	struct clock clock;

	struct state *state;
	struct store *store;
	struct secrets *secrets;
	struct tickets *tickets;
	struct certificates *certificates;
	struct place_file *places;
	int places_error; // of the last turn; 0: none
	const struct engine *engine; // who decides about claims
	struct claims *claims;
	struct appliance *appliance; // NULL: alone
	struct draws *draws;
	struct resolve *resolve;
	struct admin *admin;
	struct folders *folders; // pages
	struct codes *codes; // that were used
	struct moves *moves; // what for
	struct codes_lists *codes_lists; // that are good

	struct control_room *rooms; // by name, as in the snapshot; behind them lanes, by name
	uint32_t room_count; // with lanes
	struct control_pool *pools;
	uint32_t pool_count;

	struct snapshot_words words;
	void *ended_memory, *left_memory, *guard_memory;
	struct ports ports; // open with `driver: dpdk`
	unsigned worker_count;
	struct worker *workers[WORKER_COUNT_MAX];
	struct rings *rings[WORKER_COUNT_MAX];
	struct control_watch watch[WORKER_COUNT_MAX];
	uint64_t stalls_total;
	struct faults faults;

	uint64_t drain_until_us; // 0: not draining
	uint64_t second_us; // when the tasks of each second ran last
	bool was_unsaved, was_stepped;
	uint64_t started_ms;
	struct claim claims_buffer[CLAIMS_TURN_MAX];
};
