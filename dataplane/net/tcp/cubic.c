// CUBIC in whole numbers: windows in bytes, time in milliseconds.
//
//   W(t) = C (t - K)^3 + W_max,  C = 0.4 segments/s^3,  K = cbrt((W_max - W_0) / C)
//
// Divisions by a window are here: they are made only for what is acknowledged in congestion
// avoidance, which answers of a segment or ten never reach.

#include "dataplane/net/tcp/cubic.h"

#define BETA_TENTHS 7u // 4.6
#define TIME_MAX_MS 100000 // |t - K|: its cube times a segment fits 64 bits
#define SHIFT 16u // of estimate_rest

// The whole cube root.
static uint32_t cube_root(uint64_t x)
{
	uint64_t root = 0;
	for (int bit = 20; bit >= 0; bit--) { // 2^63 has a root of 2^21
		const uint64_t next = root | 1ull << bit;
		if (next * next * next <= x)
			root = next;
	}
	return (uint32_t)root;
}

uint32_t cubic_lost(struct tcp_cubic *cubic, uint32_t cwnd, uint32_t mss)
{
	// 4.7: a window that did not reach the last one gives way to newcomers.
	const bool gives_way = cwnd < cubic->w_max;
	cubic->w_max = gives_way ? (uint32_t)((uint64_t)cwnd * (10 + BETA_TENTHS) / 20) : cwnd;
	cubic->prior = cwnd;
	cubic->has_begun = false;
	const uint32_t window = (uint32_t)((uint64_t)cwnd * BETA_TENTHS / 10);
	return window > 2 * mss ? window : 2 * mss;
}

void cubic_pause(struct tcp_cubic *cubic)
{
	cubic->has_begun = false;
}

// 4.2, 4.8: a curve from the window as it is.
static void begin(struct tcp_cubic *cubic, uint32_t cwnd, uint32_t mss, uint32_t now_ms)
{
	cubic->has_begun = true;
	cubic->began_ms = now_ms;
	cubic->estimate = cwnd;
	cubic->estimate_rest = 0;
	cubic->k_ms = 0;
	cubic->origin = cwnd;
	if (cwnd < cubic->w_max) {
		// K^3 in ms^3: segments / 0.4 x 10^9; at most 2^30 x 2.5 x 10^9 < 2^62
		cubic->k_ms = cube_root((uint64_t)(cubic->w_max - cwnd) * 2500000000ull / mss);
		cubic->origin = cubic->w_max;
	}
}

// W(t), at least 0.
static int64_t curve(const struct tcp_cubic *cubic, uint32_t t_ms, uint32_t mss)
{
	int64_t d = (int64_t)t_ms - cubic->k_ms;
	if (d > TIME_MAX_MS)
		d = TIME_MAX_MS;
	if (d < -TIME_MAX_MS)
		d = -TIME_MAX_MS;
	// 0.4 d^3 / 10^9 segments, d^3 <= 10^15
	const int64_t window = cubic->origin + d * d * d / 100000 * 4 * mss / 100000;
	return window < 0 ? 0 : window;
}

// 4.3: what Reno would gain, 9/17 of a segment a round trip, a whole one above where we were.
static void estimate(struct tcp_cubic *cubic, uint32_t cwnd, uint32_t acked, uint32_t mss)
{
	uint64_t gain = (((uint64_t)acked * mss) << SHIFT) / cwnd;
	if (cubic->estimate < cubic->prior)
		gain = gain * 9 / 17;
	gain += cubic->estimate_rest;
	cubic->estimate_rest = gain & ((1u << SHIFT) - 1);
	gain = cubic->estimate + (gain >> SHIFT);
	cubic->estimate = gain < CUBIC_WINDOW_MAX ? (uint32_t)gain : CUBIC_WINDOW_MAX;
}

uint32_t cubic_acked(struct tcp_cubic *cubic, uint32_t cwnd, uint32_t acked, uint32_t mss,
	uint32_t now_ms, uint32_t rtt_ms)
{
	if (!cubic->has_begun)
		begin(cubic, cwnd, mss, now_ms);
	estimate(cubic, cwnd, acked, mss);
	const uint32_t t_ms = now_ms - cubic->began_ms;
	int64_t next = cwnd;
	if (curve(cubic, t_ms, mss) < cubic->estimate) {
		if (cubic->estimate > next)
			next = cubic->estimate; // 4.3: Reno's region
	} else {
		// 4.4, 4.5: towards where the curve is in a round trip, in steps
		int64_t target = curve(cubic, t_ms + rtt_ms, mss);
		if (target > next + next / 2)
			target = next + next / 2;
		if (target > next)
			next += (target - next) * acked / cwnd;
	}
	return next < CUBIC_WINDOW_MAX ? (uint32_t)next : CUBIC_WINDOW_MAX;
}
