// The ring by itself: its self-test, and a completion ring that is too small for what happens.

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

static void require_uring(void)
{
	struct uring uring;
	assert_int_equal(uring_init(&uring, 8, 2, 4096), 0);
	uring_fini(&uring);
}

static void an_unknown_mode_fails_the_self_test(void **state)
{
	(void)state;
	require_uring();
	assert_int_equal(uring_test(1u << 31), -EINVAL);
	assert_int_equal(uring_test(0), 0);
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
	enum { BUFFERS = 4, RECEIVE = 1 };
	(void)state;
	require_uring();
	struct uring uring;
	int ends[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(uring_init(&uring, 8, BUFFERS, 4096), 0);
	for (int round = 0; round < 10; round++) {
		unsigned used = 0;
		uring_receive(&uring, ends[0], true, RECEIVE);
		for (int i = 0; i <= BUFFERS; i++) {
			struct io_uring_cqe *cqe = NULL;
			assert_int_equal(send(ends[1], "x", 1, 0), 1);
			for (int j = 0; j < 3 && io_uring_peek_cqe(&uring.ring, &cqe) < 0; j++)
				uring_wait(&uring, 1000000);
			assert_non_null(cqe);
			assert_int_equal(cqe->user_data, RECEIVE);
			assert_int_equal(cqe->res, i < BUFFERS ? 1 : -ENOBUFS);
			if (cqe->res == 1) {
				char *at = uring_buffer(&uring, cqe->flags);
				assert_int_equal(*at, 'x');
				unsigned bit = 1u << ((size_t)(at - uring.buffers) / 4096);
				assert_false(used & bit);
				used |= bit;
			}
			io_uring_cqe_seen(&uring.ring, cqe);
		}
		assert_int_equal(uring_recycle(&uring), BUFFERS);
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
		cmocka_unit_test(an_unknown_mode_fails_the_self_test),
		cmocka_unit_test(more_completions_than_fit_are_not_lost),
		cmocka_unit_test(buffers_are_lent_and_returned),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
