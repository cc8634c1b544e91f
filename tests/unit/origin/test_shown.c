// Control reads how servers do while the worker works: under the thread sanitizer this finds what
// is not atomic; anywhere it finds figures that were never true.

#include "tests/unit/origin/story.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define ROUNDS 60
#define IDS_MAX 64

struct reader {
	const struct origin *o;
	_Atomic bool has_looked, is_over;
};

static void check(const struct origin_server_stat *stat)
{
	assert_in_range(stat->id, 1, IDS_MAX);
	assert_in_range(stat->exchanges, 0, 1); // there is one client
	assert_in_range(stat->kept, 0, 1);
	assert_in_range(stat->aside_us, 0, 8 * STORY_SECOND);
}

static void *read_on(void *argument)
{
	struct reader *reader = argument;
	struct origin_server_stat stats[STORY_SERVERS_MAX];
	while (!atomic_load(&reader->is_over)) {
		uint32_t count = origin_server_stats(reader->o, 1, stats, STORY_SERVERS_MAX);
		for (uint32_t i = 0; i < count; i++)
			check(&stats[i]);
		for (uint64_t id = 1; id < IDS_MAX; id++)
			if (origin_server_stat(reader->o, 0, id, 1, &stats[0]))
				check(&stats[0]);
		atomic_store(&reader->has_looked, true);
	}
	return NULL;
}

static void figures_are_read_while_they_change(void **state)
{
	(void)state;
	struct story *s = story_new();
	struct story_client *c = story_client(s);
	struct reader reader = {.o = s->o};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, read_on, &reader), 0);
	while (!atomic_load(&reader.has_looked))
		;
	for (int i = 0; i < ROUNDS; i++) {
		story_table(s, ORIGIN_TABLE_LEAST, 1, 1 + (uint64_t)i); // a new server each time
		story_get(c, i, true);
	}
	atomic_store(&reader.is_over, true);
	pthread_join(thread, NULL);
	story_end(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_read_while_they_change),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
