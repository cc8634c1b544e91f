// Playing a plan that is written in the test.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controlplane/simulate/play.h"
#include "controlplane/simulate/result.h"

static struct plan *plan;
static struct play play;
static struct result result;

static inline void playing_start(const char *text, uint64_t seed)
{
	struct config_report report = {0};
	const int ret = plan_read("t.yaml", text, strlen(text), &plan, &report);
	config_report_print(&report, stderr);
	config_report_fini(&report);
	assert_int_equal(ret, 0);
	assert_int_equal(play_run(&play, plan, seed), 0);
	const struct sizes sizes = {.poll = 300,
		.page = 5000,
		.poll_wire = 500,
		.page_wire = 5500,
		.connection_wire = 4000};
	assert_int_equal(result_sum(&result, &play, &sizes, seed), 0);
}

static inline void playing_end(void)
{
	play_fini(&play);
	plan_destroy(plan);
}
