// CUBIC against a twin in floating point, written from the formulas of RFC 9438.

#include "dataplane/net/tcp/cubic.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

static double maximum(double a, double b)
{
	return a > b ? a : b;
}

struct twin { // in segments and seconds
	double cwnd, w_max, prior, origin, k, began, estimate;
	int has_begun;
};

static double twin_lost(struct twin *twin)
{
	twin->prior = twin->cwnd;
	twin->w_max = twin->cwnd < twin->w_max ? twin->cwnd * (1 + 0.7) / 2 : twin->cwnd;
	twin->has_begun = 0;
	twin->cwnd = maximum(twin->cwnd * 0.7, 2);
	return twin->cwnd;
}

static double twin_curve(const struct twin *twin, double t)
{
	return 0.4 * pow(t - twin->k, 3) + twin->origin;
}

static void twin_acked(struct twin *twin, double segments, double now, double rtt)
{
	if (!twin->has_begun) {
		twin->has_begun = 1;
		twin->began = now;
		twin->estimate = twin->cwnd;
		twin->origin = maximum(twin->w_max, twin->cwnd);
		twin->k = cbrt((twin->origin - twin->cwnd) / 0.4);
	}
	const double alpha = twin->estimate < twin->prior ? 3 * (1 - 0.7) / (1 + 0.7) : 1;
	twin->estimate += alpha * segments / twin->cwnd;
	const double t = now - twin->began;
	if (twin_curve(twin, t) < twin->estimate) {
		twin->cwnd = maximum(twin->cwnd, twin->estimate);
		return;
	}
	double target = twin_curve(twin, t + rtt);
	target = fmin(maximum(target, twin->cwnd), 1.5 * twin->cwnd);
	twin->cwnd += (target - twin->cwnd) / twin->cwnd * segments;
}

// One connection with random losses, acknowledged once in a quarter of a round trip.
static void run_both(uint32_t mss, uint32_t rtt_ms, unsigned losses)
{
	struct cubic_run {
		struct tcp_cubic cubic;
		struct twin twin;
	} run = {.twin = {.cwnd = 100}};
	uint32_t cwnd = 100 * mss, now_ms = 4294960000u, elapsed_ms = 0; // the clock wraps
	while (losses-- > 0) {
		cwnd = cubic_lost(&run.cubic, cwnd, mss);
		twin_lost(&run.twin);
		const unsigned steps = 1 + (unsigned)rand() % 400;
		for (unsigned i = 0; i < steps; i++) {
			const uint32_t acked = cwnd / 4 / mss > 0 ? cwnd / 4 / mss * mss : mss;
			now_ms += rtt_ms / 4;
			elapsed_ms += rtt_ms / 4;
			if (rand() % 100 == 0) {
				cubic_pause(&run.cubic);
				run.twin.has_begun = 0;
			}
			cwnd = cubic_acked(&run.cubic, cwnd, acked, mss, now_ms, rtt_ms);
			twin_acked(&run.twin, (double)acked / mss, elapsed_ms / 1000.0,
				rtt_ms / 1000.0);
			const double is = (double)cwnd / mss, off = is - run.twin.cwnd;
			if (fabs(off) > 0.02 * run.twin.cwnd + 0.5)
				fail_msg("%f segments, by the twin %f", is, run.twin.cwnd);
			run.twin.cwnd = is; // or a small difference grows with each loss
		}
	}
}

static void test_as_its_twin(void **state)
{
	(void)state;
	const unsigned seed = 42;
	printf("seed %u\n", seed);
	srand(seed);
	const uint32_t mss[] = {536, 1448, 8948}, rtt_ms[] = {4, 40, 100, 600};
	for (unsigned i = 0; i < 3; i++)
		for (unsigned k = 0; k < 4; k++)
			run_both(mss[i], rtt_ms[k], 30);
}

// Without small steps of the twin's window being taken over: a whole epoch from a loss at 1000
// segments, which the curve must have regained after K = cbrt(300 / 0.4) = 9.086 s.
static void test_an_epoch(void **state)
{
	(void)state;
	const uint32_t mss = 1448, rtt_ms = 100;
	struct tcp_cubic cubic = {0};
	uint32_t cwnd = cubic_lost(&cubic, 1000 * mss, mss), now_ms = 7;
	assert_int_equal(cwnd, 700 * mss);
	while (now_ms < 7 + 9086) {
		for (unsigned i = 0; i < 10; i++)
			cwnd = cubic_acked(&cubic, cwnd, cwnd / 10, mss, now_ms, rtt_ms);
		now_ms += rtt_ms;
	}
	assert_true(cwnd > 990 * mss && cwnd < 1010 * mss);
	assert_int_equal(cubic.k_ms, 9085);
}

static void test_limits(void **state)
{
	(void)state;
	struct tcp_cubic cubic = {0};
	assert_int_equal(cubic_lost(&cubic, 1000, 1000), 2000); // never below two segments
	// The largest window, the smallest segments, a century: no overflow, no shrinking.
	cubic = (struct tcp_cubic){0};
	cubic_lost(&cubic, CUBIC_WINDOW_MAX, 1);
	uint32_t cwnd = 2;
	for (uint32_t now_ms = 1; now_ms < 4000000000u; now_ms += 40000000u) {
		const uint32_t next = cubic_acked(&cubic, cwnd, cwnd, 1, now_ms, 60000);
		assert_true(next >= cwnd && next <= CUBIC_WINDOW_MAX);
		cwnd = next;
	}
	assert_true(cwnd > 1000);
	cwnd = CUBIC_WINDOW_MAX;
	cubic = (struct tcp_cubic){0};
	for (uint32_t now_ms = 1; now_ms < 4000000000u; now_ms += 40000000u)
		cwnd = cubic_acked(&cubic, cwnd, cwnd, 65535, now_ms, 60000);
	assert_int_equal(cwnd, CUBIC_WINDOW_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_its_twin),
		cmocka_unit_test(test_an_epoch),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
