// Arrivals: when everybody comes, wave by wave, in order.
//
// A wave's people come independently of each other: their times are drawn by chance from its
// shape, and given out in ascending order without any being kept (Bentley and Saxe, "Generating
// sorted lists of random numbers", 1980).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "config/plan.h"

struct arrivals_wave {
	const struct plan_arrivals *plan;
	uint64_t left; // who have not come
	uint64_t dice;
	double past; // share of the wave, by time, that has come
	uint32_t next_ms;
	uint32_t room;
};

struct arrivals {
	uint32_t count;
	struct arrivals_wave waves[]; // of all rooms
};

// Those of all rooms of a plan. NULL when memory is short; the caller frees it.
struct arrivals *arrivals_create(const struct plan *plan, uint64_t seed);

// Who comes next, of all waves: when, in ms from the plan's beginning, and to which room. Returns
// false when everybody has come. Times never fall.
bool arrivals_next(struct arrivals *a, uint32_t *at_ms, uint32_t *room);

// How much of a wave has come by the share `time` of its length, and when a share has come: each
// the other's inverse. From 0 to 1. Pure.
double arrivals_by(enum plan_shape shape, double time);
double arrivals_when(enum plan_shape shape, double share);
