// What other threads do with a driver: make it, wake it, read its counters. Run under TSan as well.

#include <assert.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/drivers/rig.h"

static struct rig rig; // too large for the stack

static void *serve_one(void *mind)
{
	(void)mind;
	while (rig.peer_count == 0 || rig.peers[0].stream)
		rig_turn(&rig, 100000);
	return NULL;
}

// Made here, used there, ended here: as control makes the drivers of its workers.
static void made_on_one_thread_and_used_on_another(void **state)
{
	char back[5];
	pthread_t thread;
	rig_begin(&rig, state);
	rig.react = rig_echo;
	int fd = rig_client(&rig);
	assert_int_equal(pthread_create(&thread, NULL, serve_one, NULL), 0);
	rig_client_send(fd, SPAN("hello"));
	assert_int_equal(recv(fd, back, 5, MSG_WAITALL), 5);
	close(fd);
	pthread_join(thread, NULL);
	rig_stop(&rig);
}

static void *wake_soon(void *mind)
{
	usleep(20000);
	for (int i = 0; i < *(int *)mind; i++)
		stream_wake(rig.driver);
	return NULL;
}

static void a_wake_ends_the_wait(void **state)
{
	rig_begin(&rig, state);
	rig_settle(&rig);
	for (int wakes = 1; wakes <= 1000; wakes *= 10) {
		pthread_t thread;
		uint64_t begun = rig_clock_ms();
		assert_int_equal(pthread_create(&thread, NULL, wake_soon, &wakes), 0);
		assert_int_equal(rig_turn(&rig, 5000000), 0);
		assert_in_range(rig_clock_ms() - begun, 10, 2000);
		pthread_join(thread, NULL);
		rig_turn(&rig, 0); // the last of them may have come after
	}
	// A wake before the wait counts, once.
	stream_wake(rig.driver);
	uint64_t begun = rig_clock_ms();
	rig_turn(&rig, 5000000);
	assert_true(rig_clock_ms() - begun < 1000);
	begun = rig_clock_ms();
	rig_turn(&rig, 50000);
	assert_true(rig_clock_ms() - begun >= 45);
	rig_stop(&rig);
}

static atomic_bool is_over;

static void *read_counters(void *mind)
{
	uint64_t last = 0;
	(void)mind;
	while (!atomic_load(&is_over)) {
		uint64_t now = rig_counter(&rig, SOCKETS_bytes_in);
		assert(now >= last);
		last = now;
		usleep(100);
	}
	return NULL;
}

static void counters_are_read_while_they_count(void **state)
{
	char back[5];
	pthread_t thread;
	rig_begin(&rig, state);
	rig.react = rig_echo;
	atomic_store(&is_over, false);
	assert_int_equal(pthread_create(&thread, NULL, read_counters, NULL), 0);
	int fd = rig_client(&rig);
	for (int i = 0; i < 200; i++) {
		rig_client_send(fd, SPAN("hello"));
		assert_int_equal(rig_client_receive(&rig, fd, back, 5), 0);
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	assert_int_equal(rig_counter(&rig, SOCKETS_bytes_in), 1000);
	close(fd);
	rig_stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_BOTH(made_on_one_thread_and_used_on_another),
		RIG_BOTH(a_wake_ends_the_wait),
		RIG_BOTH(counters_are_read_while_they_count),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
