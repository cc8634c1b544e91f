// Pace: when a waiting visitor polls again.
//
// About a tenth of the expected wait, from 1 s near the head to 60 s far away, so that who stands
// next hears of it at once and a million far away cost little. Jitter spreads those who came
// together; it only shortens, so the upper bound is known, and control lets nobody lapse who keeps
// to it.
#pragma once

#include <stdint.h>

#define PACE_MIN_S 1u
#define PACE_MAX_S 60u
#define PACE_WAIT_UNKNOWN UINT64_MAX

// What to tell a visitor.
//   ahead          people before it
//   wait_high_q32  expected wait per person ahead in 2^-32 s (place_line.wait_high), or
//                  PACE_WAIT_UNKNOWN: then by `ahead` alone
//   random         32 random bits
// Returns seconds, PACE_MIN_S to pace_poll_after_max(). Pure; any thread; no division.
uint32_t pace_poll_after(uint64_t ahead, uint64_t wait_high_q32, uint32_t random);

// The most that pace_poll_after() says with these. Never falls as `ahead` grows.
uint32_t pace_poll_after_max(uint64_t ahead, uint64_t wait_high_q32);
