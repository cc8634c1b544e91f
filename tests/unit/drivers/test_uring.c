// The ring by itself: its self-test, also on a machine that is too busy for it, and a completion
// ring that is too small for what happens.

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "drivers/uring/uring.h"

// The self-test on a machine whose next `lost_waits` waits bring nothing.
static unsigned lost_waits, rings_made;

static void busy_wait(struct uring *uring, uint64_t wait_us)
{
	if (lost_waits == 0)
		uring_wait(uring, wait_us);
	else
		lost_waits--;
}

static int counted_init(struct uring *uring, unsigned mode, unsigned entries, uint32_t buffers,
	uint32_t buffer_bytes)
{
	rings_made++;
	return uring_init_mode(uring, mode, entries, buffers, buffer_bytes);
}

#define uring_wait busy_wait
#define uring_init_mode counted_init
#include "drivers/uring/uring_test.c"
#undef uring_wait
#undef uring_init_mode

static void require_uring(void)
{
	struct uring uring;
	assert_int_equal(uring_init(&uring, 8, 2, 4096), 0);
	uring_fini(&uring);
}

static void an_unknown_mode_fails_the_self_test_at_once(void **state)
{
	(void)state;
	require_uring();
	rings_made = 0;
	assert_int_equal(uring_test(1u << 31), -EINVAL);
	assert_int_equal(rings_made, 1);
	assert_int_equal(uring_test(0), 0);
}

static void a_busy_machine_gets_another_try(void **state)
{
	static const struct {
		unsigned lost_waits, rings_made;
		int result;
	} rows[] = {
		{0, 1, 0},
		{WAITS_MAX - 1, 1, 0},
		{WAITS_MAX, 2, 0},
		{WAITS_MAX * TRIES_MAX - 1, TRIES_MAX, 0},
		{WAITS_MAX * TRIES_MAX, TRIES_MAX, -ETIME},
	};
	(void)state;
	require_uring();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		lost_waits = rows[i].lost_waits;
		rings_made = 0;
		assert_int_equal(uring_test(0), rows[i].result);
		assert_int_equal(rings_made, rows[i].rings_made);
	}
}

static void more_completions_than_fit_are_not_lost(void **state)
{
	enum { POLLS = 500 };
	(void)state;
	require_uring();
	struct uring uring;
	int fd = eventfd(1, EFD_CLOEXEC), seen[POLLS] = {0}, count = 0;
	assert_int_equal(uring_init_mode(&uring, 0, 4, 2, 4096), 0);
	for (int i = 0; i < POLLS; i++)
		uring_poll(&uring, fd, POLLIN, false, (uint64_t)i + 1);
	uring_wait(&uring, 0);
	assert_true(io_uring_cq_has_overflow(&uring.ring));
	for (int turn = 0; turn < POLLS && count < POLLS; turn++) {
		struct io_uring_cqe *cqe;
		uring_wait(&uring, 0);
		while (io_uring_peek_cqe(&uring.ring, &cqe) == 0) {
			assert_in_range(cqe->user_data, 1, POLLS);
			assert_int_equal(seen[cqe->user_data - 1]++, 0);
			assert_true(cqe->res & POLLIN);
			io_uring_cqe_seen(&uring.ring, cqe);
			count++;
		}
	}
	assert_int_equal(count, POLLS);
	uring_fini(&uring);
	close(fd);
}

// Buffers are lent out, never twice, and come round again.
static void buffers_are_lent_and_returned(void **state)
{
	enum { LENT_MAX = 4 };
	(void)state;
	require_uring();
	struct uring uring;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(uring_init(&uring, 8, LENT_MAX, 4096), 0);
	for (int round = 0; round < 10; round++) {
		unsigned used = 0;
		uring_receive(&uring, ends[0], true, RECEIVE);
		for (int i = 0; i <= LENT_MAX; i++) {
			struct io_uring_cqe *cqe = NULL;
			assert_int_equal(send(ends[1], "x", 1, 0), 1);
			for (int j = 0; j < 3 && io_uring_peek_cqe(&uring.ring, &cqe) < 0; j++)
				uring_wait(&uring, 1000000);
			assert_non_null(cqe);
			assert_int_equal(cqe->user_data, RECEIVE);
			assert_int_equal(cqe->res, i < LENT_MAX ? 1 : -ENOBUFS);
			if (cqe->res == 1) {
				char *at = uring_buffer(&uring, cqe->flags);
				assert_int_equal(*at, 'x');
				unsigned bit = 1u << ((size_t)(at - uring.buffers) / 4096);
				assert_false(used & bit);
				used |= bit;
			}
			io_uring_cqe_seen(&uring.ring, cqe);
		}
		assert_int_equal(uring_recycle(&uring), LENT_MAX);
		char last;
		assert_int_equal(recv(ends[0], &last, 1, MSG_DONTWAIT), 1);
	}
	uring_fini(&uring);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_mode_fails_the_self_test_at_once),
		cmocka_unit_test(a_busy_machine_gets_another_try),
		cmocka_unit_test(more_completions_than_fit_are_not_lost),
		cmocka_unit_test(buffers_are_lent_and_returned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
