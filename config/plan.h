// A plan: an event before it happens, for `sluice simulate`. One YAML file, read by the machinery
// of the configuration.
//
// plan.def has every key with its type, range, default and help. Times are counted from the
// beginning of the plan. Numbers whose key may be `none` are 0 then; texts NULL.
#pragma once

#include "config/config.h"

#define PLAN_PEOPLE_MAX 10000000u // over all rooms

enum plan_mode {
	PLAN_MODE_AUTO,
	PLAN_MODE_ALWAYS,
};

enum plan_shape {
	PLAN_SHAPE_EVEN,
	PLAN_SHAPE_RUSH,
	PLAN_SHAPE_RAMP,
	PLAN_SHAPE_BELL,
};

enum plan_encoding {
	PLAN_ENCODING_BR,
	PLAN_ENCODING_GZIP,
	PLAN_ENCODING_IDENTITY,
};

// A wave of people.
struct plan_arrivals {
	uint64_t people;
	uint64_t from_s, over_s;
	enum plan_shape shape;
};

struct plan_waves {
	uint32_t count;
	struct plan_arrivals *at;
};

struct plan_room {
	const char *name;
	uint64_t capacity; // 0: no limit
	struct config_rate rate;
	uint64_t burst;
	uint64_t session_s, claim_s;
	bool sliding;
	enum plan_mode mode;
	struct config_rate batch;
	uint64_t priority, weight;
	uint64_t opens_s, prequeue_s;
	uint64_t no_show; // of 100
	uint64_t stay_s, stay_spread_s; // stay 0: as long as the pass lasts
	uint64_t ends; // of 100
	uint64_t view_every_s;
	struct plan_waves arrivals;
};

struct plan_rooms {
	uint32_t count;
	struct plan_room *at;
};

struct plan_pool {
	uint64_t capacity; // 0: no limit
	struct config_rate rate;
	uint64_t burst;
};

struct plan_traffic {
	enum plan_encoding encoding;
	bool tls;
	uint64_t request_bytes, handshake_bytes, view_bytes;
	uint64_t idle_timeout_ms, round_trip_ms;
};

struct plan_appliance {
	uint64_t count; // 0: as many as needed
	uint64_t spare;
	uint64_t polls, handshakes; // in a second
	uint64_t connections; // at once
	uint64_t bandwidth; // Mbit/s
};

struct plan {
	const char *title; // never NULL
	uint64_t seed;
	uint64_t lasts_s;
	struct plan_pool *pool; // NULL: none
	struct plan_rooms rooms;
	struct plan_traffic *traffic;
	struct plan_appliance *appliance;
	uint64_t people; // of all waves
};

// Read, parse and check the file `path`.
//   plan    filled on success; the caller ends it with plan_destroy()
//   report  gets every error, not only the first
// Returns 0, -EINVAL with at least one error in the report, or -ENOMEM.
int plan_load(const char *path, struct plan **plan, struct config_report *report);

// The same from memory. `path` names the text in errors.
int plan_read(const char *path, const char *text, size_t len, struct plan **plan,
	struct config_report *report);

// Accepts NULL.
void plan_destroy(struct plan *plan);

// The table of a plan's keys, as a grid for people.
void plan_print_keys(FILE *out);
void plan_print_json(FILE *out);
