// What is said of servers that cannot be spoken to over TLS, and how often.

#include "controlplane/faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct faults faults;
static struct faults_due due[FAULTS_SERVERS_MAX];

static int begin(void **state)
{
	(void)state;
	memset(&faults, 0, sizeof(faults));
	return 0;
}

static void at_once_and_then_once_a_minute(void **state)
{
	(void)state;
	uint64_t now_us = 1000000;
	faults_note(&faults, 7, 0, 0);
	assert_int_equal(faults_take(&faults, now_us, due), 0);
	faults_note(&faults, 7, 2, 10);
	faults_note(&faults, 7, 1, 20); // another worker
	assert_int_equal(faults_take(&faults, now_us, due), 1);
	assert_int_equal(due[0].id, 7);
	assert_int_equal(due[0].fresh, 3);
	assert_int_equal(due[0].fault, 20);
	for (uint64_t us = 0; us < FAULTS_QUIET_US; us += FAULTS_QUIET_US / 10) {
		faults_note(&faults, 7, 3 + (uint32_t)(us / 1000000), 10);
		assert_int_equal(faults_take(&faults, now_us + us, due), 0);
	}
	faults_note(&faults, 7, 57, 10);
	assert_int_equal(faults_take(&faults, now_us + FAULTS_QUIET_US, due), 1);
	assert_int_equal(due[0].fresh, 54);
}

static void nothing_new_is_not_said(void **state)
{
	(void)state;
	for (uint64_t n = 1; n < 10; n++) {
		faults_note(&faults, 7, 5, 0);
		assert_int_equal(faults_take(&faults, n * FAULTS_QUIET_US, due), n == 1);
	}
}

static void a_server_known_anew(void **state)
{
	(void)state;
	faults_note(&faults, 7, 5, 10);
	assert_int_equal(faults_take(&faults, 1, due), 1);
	faults_note(&faults, 7, 1, 10); // its count began again
	assert_int_equal(faults_take(&faults, 2, due), 0);
	faults_note(&faults, 7, 1, 10);
	assert_int_equal(faults_take(&faults, 1 + FAULTS_QUIET_US, due), 1);
	assert_int_equal(due[0].fresh, 1);
	assert_int_equal(faults_take(&faults, 2 + FAULTS_QUIET_US, due), 0); // forgotten
	faults_note(&faults, 7, 1, 10);
	assert_int_equal(faults_take(&faults, 3 + FAULTS_QUIET_US, due), 1);
}

static void as_many_servers_as_there_is_room_for(void **state)
{
	(void)state;
	for (uint64_t id = 1; id <= FAULTS_SERVERS_MAX + 1; id++)
		faults_note(&faults, id, 1, 10);
	assert_int_equal(faults_take(&faults, 1, due), FAULTS_SERVERS_MAX);
	for (uint32_t i = 0; i < FAULTS_SERVERS_MAX; i++)
		assert_int_equal(due[i].id, i + 1);
	faults_take(&faults, 2, due);
	faults_note(&faults, FAULTS_SERVERS_MAX + 1, 1, 10);
	assert_int_equal(faults_take(&faults, 3, due), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(at_once_and_then_once_a_minute, begin),
		cmocka_unit_test_setup(nothing_new_is_not_said, begin),
		cmocka_unit_test_setup(a_server_known_anew, begin),
		cmocka_unit_test_setup(as_many_servers_as_there_is_room_for, begin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
