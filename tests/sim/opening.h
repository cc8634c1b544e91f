// A room with doors, in virtual time: its process, what outlasts that, and a worker that decides.
//
// Places, controller, schedule, wishes, draws and decisions are the product's, in the order in
// which its turn has them. A draw is made at once, and is done some turns later. The process can be
// killed between any two steps of a turn, with or without what the store was told in it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "controlplane/clock.h"
#include "controlplane/controller/controller.h"
#include "controlplane/draws/draws.h"
#include "controlplane/schedule/schedule.h"
#include "dataplane/gate/decide.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/rooms.h"

#define OPENING_TURN_MS 20u
#define OPENING_RECORDS_MAX 256u
#define OPENING_EVENTS_MAX 2u
#define OPENING_STEPS 5u // of a turn, before each of which it can end

struct opening {
	uint64_t random; // all chance comes from here

	// The configuration.
	struct config_room config;
	struct schedule_event events[OPENING_EVENTS_MAX];
	uint32_t event_count;
	struct controller_limits limits;
	uint64_t gathered_max;

	// What outlasts the process.
	struct place_line *line;
	char folder[64];
	struct store store;
	struct store_draw records[OPENING_RECORDS_MAX];
	uint32_t record_count;
	struct store_draw history[OPENING_RECORDS_MAX]; // all that were ever drawn
	uint32_t history_count;
	struct store_record pending[64];
	uint32_t pending_count;
	struct store_doors doors;
	uint64_t last_ms; // cluster time, as the file of places has it

	// The world's clocks.
	uint64_t monotonic_ms;
	int64_t system_off_ms; // of the system's clock from what it was at first

	// The process.
	bool is_up;
	uint32_t ends_before; // step of the next turn before which it is killed; 0: none
	struct clock clock;
	struct draws *draws;
	struct draws_line *gatherings;
	struct controller *controller;
	struct schedule schedule;
	struct schedule_view view;
	uint64_t draws_total, barriers, passed;
	struct gate_room room; // as workers know it
};

// `config`, `events` and `limits` are set; the rest begins here. Not up yet.
void opening_begin(struct opening *o, uint64_t begin_ms);
void opening_end(struct opening *o);

void opening_start(struct opening *o);

// Killed: what the store was told since its last commit had arrived, or had not.
void opening_kill(struct opening *o);

// A turn of control. It may be the process's last.
void opening_turn(struct opening *o);

// A command opens the doors.
void opening_command(struct opening *o);

// A worker decides about a request with `ticket`, or without (NULL); claims are answered.
void opening_decide(struct opening *o, enum gate_route route, const struct token *ticket,
	uint64_t fresh_visitor, struct decision *decision);

// Cluster time.
uint64_t opening_now(const struct opening *o);

// The event of the moment that the process last saw, or -1.
static inline int opening_event(const struct opening *o)
{
	return o->view.event;
}
