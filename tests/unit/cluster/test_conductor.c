// Conductor: office, limits and the clock.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/cluster/desk.h"

// --- office

static void it_stands_speaks_and_is_replaced(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	assert_true(conductor_fence(d.conductor) == 0);
	desk_batch(&d); // ELECT alone; then nodes, then views, then what follows from them
	assert_int_equal(d.count, 1);
	assert_int_equal(d.entries[0].kind, LEDGER_ELECT);
	assert_true(conductor_fence(d.conductor) == FENCE);
	desk_batch(&d);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.entries[0].kind, LEDGER_NODE);
	desk_batch(&d);
	assert_int_equal(d.count, 1);
	assert_int_equal(d.entries[0].kind, LEDGER_VIEW);
	assert_true(d.entries[0].takes_came);
	desk_batch(&d);
	assert_non_null(desk_said(&d, LEDGER_THRESHOLD));
	desk_run(&d, 2 * CONDUCTOR_RENEW_MS);
	d.conductor_is = 1; // another's lease
	d.fence++;
	desk_batch(&d);
	assert_true(conductor_fence(d.conductor) == 0);
	for (int i = 0; i < 100; i++) {
		desk_batch(&d);
		assert_int_equal(d.count, desk_count(&d, LEDGER_ELECT));
	}
	d.conductor_is = 0;
	d.fence++;
	desk_run(&d, CONDUCTOR_RENEW_MS);
	assert_true(conductor_fence(d.conductor) == d.fence);
	desk_close(&d);
}

// What it has said is gone, though it is the conductor all the time, or again with the same fence.
static void what_the_ledger_has_lost_is_said_again(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	desk_run(&d, 2 * CONDUCTOR_RENEW_MS);
	assert_true(conductor_fence(d.conductor) == FENCE);
	uint32_t nodes = 0;
	d.epoch = 8;
	for (uint32_t i = 0; i < 2 * CONDUCTOR_RENEW_MS / 10; i++) {
		desk_batch(&d);
		nodes += desk_count(&d, LEDGER_NODE);
	}
	assert_int_equal(nodes, 1);
	d.view_verdict = LEDGER_UNKNOWN;
	for (uint32_t i = 0; i < CONDUCTOR_TURN_MS / 10 + 2; i++) {
		desk_batch(&d);
		nodes += desk_count(&d, LEDGER_NODE);
	}
	assert_true(nodes >= 2);
	desk_close(&d);
}

static void a_store_away_ends_office(void **state)
{
	(void)state;
	struct desk d;
	struct conductor_status status;
	desk_open(&d);
	desk_run(&d, 500);
	conductor_look(d.conductor, &status);
	assert_true(status.is_in_office && status.fence == FENCE);
	conductor_lost(d.conductor);
	conductor_look(d.conductor, &status);
	assert_false(status.is_in_office);
	desk_close(&d);
}

// --- nodes

static void nodes_are_said_when_they_change(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	struct conductor_node nodes[2] = {desk_pool(POOL, 0), desk_line(&d)};
	nodes[1].node.parent = POOL;
	desk_run(&d, 200);
	assert_true(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	desk_batch(&d);
	assert_int_equal(desk_count(&d, LEDGER_NODE), 2);
	assert_int_equal(desk_said(&d, LEDGER_NODE)->line, POOL); // parents first
	for (int i = 0; i < 30; i++) {
		desk_batch(&d);
		assert_null(desk_said(&d, LEDGER_NODE));
	}
	nodes[1].node.limits.capacity = 50;
	assert_true(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	desk_batch(&d);
	assert_int_equal(desk_count(&d, LEDGER_NODE), 1);
	assert_int_equal(desk_said(&d, LEDGER_NODE)->node.limits.capacity, 50);
	d.fence++; // in office anew: all of them
	d.conductor_is = 1;
	desk_batch(&d);
	d.conductor_is = 0;
	desk_run(&d, CONDUCTOR_RENEW_MS);
	desk_batch(&d);
	nodes[1].node.parent = 0;
	assert_true(conductor_set_nodes(d.conductor, &nodes[1], 1, d.now_ms)); // the pool is gone
	desk_batch(&d);
	assert_int_equal(desk_count(&d, LEDGER_NODE), 1);
	desk_close(&d);
}

static void a_refused_node_is_left_out(void **state)
{
	(void)state;
	struct desk d;
	struct conductor_status status;
	desk_open(&d);
	d.node_verdict = LEDGER_REFUSED;
	desk_run(&d, 500);
	conductor_look(d.conductor, &status);
	assert_int_equal(status.refused_total, 1);
	assert_null(desk_said(&d, LEDGER_VIEW));
	d.node_verdict = LEDGER_STALE; // not taken: it is said again
	struct conductor_node node = desk_line(&d);
	node.node.limits.capacity++;
	assert_true(conductor_set_nodes(d.conductor, &node, 1, d.now_ms));
	desk_batch(&d);
	assert_non_null(desk_said(&d, LEDGER_NODE));
	desk_batch(&d);
	assert_non_null(desk_said(&d, LEDGER_NODE));
	desk_close(&d);
}

static void nodes_are_bounded_and_ordered(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	struct conductor_node nodes[81];
	for (uint32_t i = 0; i < 81; i++)
		nodes[i] = desk_pool(100 + i, i > 0 ? 100 : 0);
	assert_true(conductor_set_nodes(d.conductor, nodes, 80, d.now_ms));
	assert_false(conductor_set_nodes(d.conductor, nodes, 81, d.now_ms));
	nodes[0].node.parent = 101; // not before it
	assert_false(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	nodes[0] = nodes[1] = desk_pool(100, 0);
	assert_false(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	nodes[0] = desk_line(&d); // a line has nothing below it
	nodes[1] = desk_pool(100, LINE);
	assert_false(conductor_set_nodes(d.conductor, nodes, 2, d.now_ms));
	// What was set stays: of 80, a batch says so many, and looks at so many, each in its turn.
	desk_run(&d, 10);
	uint32_t seen[81] = {0}, most = 0;
	for (int i = 0; i < 40; i++) {
		desk_batch(&d);
		assert_true(desk_count(&d, LEDGER_NODE) <= CONDUCTOR_NODES_MAX);
		const uint32_t views = desk_count(&d, LEDGER_VIEW);
		most = views > most ? views : most;
		for (uint32_t j = 0; j < d.count; j++)
			seen[d.entries[j].line % 100] += d.entries[j].kind == LEDGER_VIEW;
	}
	assert_int_equal(most, CONDUCTOR_VIEWS_MAX);
	for (uint32_t i = 0; i < 80; i++)
		assert_true(seen[i] >= 5);
	desk_close(&d);
}

// --- the clock

static void cluster_time_goes_on(void **state)
{
	(void)state;
	static const struct {
		int64_t ahead_ms;
		bool is_corrected;
	} cases[] = {{0, false}, {49, false}, {-49, false}, {-56, true}, {56, true},
		{3600000, true}, {-3600000, true}, {-2000, true}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct desk d;
		struct conductor_status status;
		desk_open(&d);
		desk_run(&d, 100);
		d.raw_ahead_ms = cases[i].ahead_ms;
		desk_run(&d, 100);
		conductor_look(d.conductor, &status);
		assert_int_equal(status.corrections_total, cases[i].is_corrected);
		if (cases[i].is_corrected)
			assert_true(d.correction_ms == -cases[i].ahead_ms);
		desk_close(&d);
	}
}

static void a_clock_that_never_agreed_corrects_nothing(void **state)
{
	(void)state;
	struct desk d;
	desk_open(&d);
	d.raw_ahead_ms = 300000; // ours is five minutes wrong
	desk_run(&d, 500);
	assert_true(d.correction_ms == 0);
	d.raw_ahead_ms = 0;
	desk_run(&d, 100);
	d.raw_ahead_ms = 300000;
	desk_run(&d, 100);
	assert_true(d.correction_ms == -300000);
	desk_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_stands_speaks_and_is_replaced),
		cmocka_unit_test(what_the_ledger_has_lost_is_said_again),
		cmocka_unit_test(a_store_away_ends_office),
		cmocka_unit_test(nodes_are_said_when_they_change),
		cmocka_unit_test(a_refused_node_is_left_out),
		cmocka_unit_test(nodes_are_bounded_and_ordered),
		cmocka_unit_test(cluster_time_goes_on),
		cmocka_unit_test(a_clock_that_never_agreed_corrects_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
