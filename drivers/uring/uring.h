// One io_uring of one thread, with a ring of receive buffers that the kernel picks from.
//
// Requests are put in by the functions below and leave together at the next uring_wait(). Whoever
// asks names each by a 64-bit number, which comes back in the completion's user_data.
#pragma once

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#define URING_CANCEL_DATA 0 // user_data of a cancellation that failed, and of nothing else: ignore

struct uring {
	struct io_uring ring;
	struct io_uring_buf_ring *slots; // buffers free for the kernel; shared with it
	char *buffers;
	uint32_t buffer_count, buffer_bytes;
	uint16_t *held; // buffers handed out by uring_buffer()
	uint32_t held_count;
	bool is_enabled;
};

// Make a ring in the best mode that this kernel offers and that passes uring_test().
//   entries  submissions between two waits; more are submitted on the way. Eight times as many
//            completions fit; more are kept by the kernel
//   buffers  a power of two, at most 32768
// It may be made on one thread and used on another: the first uring_wait() binds it.
// Returns 0 or -errno: why the best mode was refused.
int uring_init(struct uring *uring, unsigned entries, uint32_t buffers, uint32_t buffer_bytes);
void uring_fini(struct uring *uring);

// The same in one mode (IORING_SETUP_*), untested.
int uring_init_mode(struct uring *uring, unsigned mode, unsigned entries, uint32_t buffers,
	uint32_t buffer_bytes);

// Whether a mode does what it promises, shown on a small ring of its own: accepts a connection over
// loopback, receives from it, stops receiving, sees it writable. Some kernels offer a mode that
// fails at this (liburing issue 1062). Returns 0 or -errno; -ETIME after a few tries that each took
// up to a second: what was asked for never came.
int uring_test(unsigned mode);

// Bytes that a ring and its buffers take.
uint64_t uring_bytes(unsigned entries, uint32_t buffers, uint32_t buffer_bytes);

// Completes with a descriptor for every connection, until one without IORING_CQE_F_MORE.
void uring_accept(struct uring *uring, int fd, uint64_t data);

// Completes with bytes in a buffer each time some come (once if not `multishot`), with 0 at FIN,
// and with -ENOBUFS when no buffer is free.
void uring_receive(struct uring *uring, int fd, bool multishot, uint64_t data);

// Completes once with the poll(2) events that are there; each time if `multishot`.
void uring_poll(struct uring *uring, int fd, unsigned events, bool multishot, uint64_t data);

// Cancels what was asked for under `data`, whose last completion then comes, if it has not already.
void uring_cancel(struct uring *uring, uint64_t data);

// Submit all, and wait at most `wait_us` for a completion. With 0 no system call is made while
// there is nothing to submit and nothing has come.
void uring_wait(struct uring *uring, uint64_t wait_us);

// The bytes of the buffer that a completion with IORING_CQE_F_BUFFER brought; the caller's until
// uring_recycle(), which gives all of them back to the kernel and says how many they were.
char *uring_buffer(struct uring *uring, uint32_t cqe_flags);
uint32_t uring_recycle(struct uring *uring);
