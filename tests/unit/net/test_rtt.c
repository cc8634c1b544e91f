// Round-trip times and timeouts: a table from RFC 6298, and a twin in floating point.

#include "dataplane/net/tcp/rtt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

static const struct tcp tcp = {.plan = {.rto_min_us = 200000, .rto_max_us = 60000000}};

static void test_table(void **state)
{
	(void)state;
	const struct {
		const char *what;
		uint32_t samples_us[4]; // 0 ends them
		unsigned expiries;
		uint32_t timeout_us;
	} cases[] = {
		{"2.1: before any sample", {0}, 0, 1000000},
		{"5.5: doubled", {0}, 1, 2000000},
		{"doubled again", {0}, 5, 32000000},
		{"up to the ceiling", {0}, 6, 60000000},
		{"and no further, however often", {0}, 70, 60000000},
		{"2.2: R + 4 R/2", {100000}, 0, 300000},
		{"2.3: steady, the variance falls", {100000, 100000}, 0, 250000},
		{"2.3: 7/8 of 100 + 1/8 of 180 ms, 3/4 of 50 + 1/4 of 80 ms", {100000, 180000}, 0,
			110000 + 4 * 57500},
		{"the floor", {300, 300, 300}, 0, 200000},
		{"doubled from the floor", {300}, 2, 800000},
		{"an absurd sample", {0xffffffff}, 0, 60000000},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tcp_conn c = {0};
		for (unsigned k = 0; k < 4 && cases[i].samples_us[k]; k++)
			rtt_sample(&c, cases[i].samples_us[k]);
		for (unsigned k = 0; k < cases[i].expiries; k++)
			rtt_back_off(&c);
		if (rtt_timeout_us(&tcp, &c) != cases[i].timeout_us)
			fail_msg("%s: %u", cases[i].what, rtt_timeout_us(&tcp, &c));
	}
}

static void test_a_sample_ends_the_back_off(void **state)
{
	(void)state;
	struct tcp_conn c = {0};
	rtt_back_off(&c);
	rtt_sample(&c, 0);
	assert_int_equal(c.rto_backoff, 0);
	assert_int_equal(c.srtt_us, 1); // 0 would be: none yet
}

static void test_as_its_twin(void **state)
{
	(void)state;
	srand(11);
	struct tcp_conn c = {0};
	double srtt = 0, rttvar = 0;
	for (unsigned i = 0; i < 5000; i++) {
		const uint32_t sample_us = 1 + (uint32_t)rand() % (i % 500 < 250 ? 2000 : 3000000);
		if (i == 0) {
			srtt = sample_us;
			rttvar = srtt / 2;
		} else {
			rttvar = 0.75 * rttvar + 0.25 * fabs(srtt - sample_us);
			srtt = 0.875 * srtt + 0.125 * sample_us;
		}
		rtt_sample(&c, sample_us);
		assert_true(fabs(c.srtt_us - srtt) < 10);
		assert_true(fabs(c.rttvar_us - rttvar) < 20);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_a_sample_ends_the_back_off),
		cmocka_unit_test(test_as_its_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
