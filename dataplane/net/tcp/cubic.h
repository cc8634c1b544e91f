// CUBIC: how the congestion window grows in congestion avoidance, and by how much it falls (RFC
// 9438), in whole numbers. Pure.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define CUBIC_WINDOW_MAX (1u << 30)

// All zero: no loss was seen yet. Windows in bytes.
struct tcp_cubic {
	uint32_t w_max; // the window before the last loss, or less (fast convergence, 4.7)
	uint32_t prior; // the window before the last loss: cwnd_prior
	uint32_t origin; // where the curve levels out: w_max, or the window at its begin
	uint32_t k_ms; // how long it takes to get there
	uint32_t began_ms; // of the epoch
	uint32_t estimate, estimate_rest; // W_est: what Reno would have; 1/65536 of a byte
	bool has_begun;
};

// A loss: the window to go on with (ssthresh), at least two segments.
uint32_t cubic_lost(struct tcp_cubic *cubic, uint32_t cwnd, uint32_t mss);

// `acked` bytes were acknowledged while the window was full, in congestion avoidance: the window to
// go on with.
uint32_t cubic_acked(struct tcp_cubic *cubic, uint32_t cwnd, uint32_t acked, uint32_t mss,
	uint32_t now_ms, uint32_t rtt_ms);

// The window was not full, or fell by a timeout: the curve begins anew with the next
// acknowledgement.
void cubic_pause(struct tcp_cubic *cubic);
