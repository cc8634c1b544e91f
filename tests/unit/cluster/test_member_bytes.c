// What a member takes is what it says: every allocation of it passes here.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/member.h"
#include "dataplane/gate/place.h"

#define ENTRIES 128u
#define LINES 3u

static uint64_t taken;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
	taken += bytes;
	return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
	taken += count * bytes;
	return __real_calloc(count, bytes);
}

static void *zeroed(size_t bytes)
{
	void *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
	assert_non_null(memory);
	memset(memory, 0, bytes);
	return memory;
}

static uint64_t barrier_begin(void *ctx)
{
	(void)ctx;
	return 0;
}

static const struct member_plan plans[] = {
	{.lines_max = 1, .nodes_max = 1, .known_max = 1},
	{.lines_max = 3, .nodes_max = 7, .known_max = 1000},
	{.lines_max = MEMBER_LINES_MAX, .nodes_max = MEMBER_NODES_MAX, .known_max = 100000},
};

static void a_member_takes_what_it_says(void **state)
{
	(void)state;
	const struct member_seams seams = {.barrier_begin = barrier_begin};
	const struct member_sets sets = {NULL, NULL};
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		struct member_plan plan = plans[i];
		plan.name[0] = 'a';
		plan.incarnation = plan.seed = plan.workers_max = 1;
		taken = 0;
		struct member *m = member_create(&plan, &sets, &seams, 1);
		assert_non_null(m);
		// The conductor's second table comes when nodes are set.
		const uint64_t twice =
			conductor_bytes(plan.lines_max + plan.nodes_max) - conductor_bytes(0);
		assert_int_equal(taken + twice / 2, member_bytes(&plan));
		member_destroy(m);
	}
}

// Each line with a pool of its own.
static void so_do_its_lines(void **state)
{
	(void)state;
	static const uint32_t lefts[] = {1, 64, 10000};
	for (size_t i = 0; i < 3; i++) {
		struct conductor_node nodes[2 * LINES] = {0};
		struct place_line *lines[LINES];
		struct conductor_plan plan = {.nodes_max = 2 * LINES, .seed = 1};
		struct conductor *c = conductor_create(&plan, 1);
		for (uint32_t n = 0; n < LINES; n++) {
			lines[n] = zeroed(place_line_bytes(ENTRIES));
			place_line_init(lines[n], n + 1, ENTRIES);
			nodes[n] = (struct conductor_node){.id = 100 + n};
			nodes[LINES + n] = (struct conductor_node){.id = n + 1,
				.place = lines[n],
				.node = {.is_line = true, .parent = 100 + n, .left_max = lefts[i]}};
		}
		for (uint32_t n = 0; n < 2 * LINES; n++) {
			nodes[n].node.priority = nodes[n].node.weight = 1;
			nodes[n].node.limits = (struct pool_limits){.capacity = 1, .burst = 1};
		}
		taken = 0;
		assert_true(conductor_set_nodes(c, nodes, 2 * LINES, 1));
		const uint64_t twice = conductor_bytes(2 * LINES) - conductor_bytes(0);
		assert_int_equal(taken - twice / 2, LINES * conductor_node_bytes(lefts[i]));
		conductor_destroy(c);
		for (uint32_t n = 0; n < LINES; n++)
			free(lines[n]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_takes_what_it_says),
		cmocka_unit_test(so_do_its_lines),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
