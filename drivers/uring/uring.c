// The ring is made disabled and enabled by the first wait, because SINGLE_ISSUER ties it to the
// thread that enables it, and that is the worker, not whoever starts it.
//
// Modes are tried from the best down; a kernel that does not know a flag says EINVAL. Nothing newer
// than Linux 6.1 is needed for the best one. Completions are never lost: the kernel keeps what does
// not fit the completion ring (IORING_FEAT_NODROP) and hands it over at the next wait.

#include "drivers/uring/uring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define COMPLETIONS_PER_SUBMISSION 8 // one accept or receive completes many times
#define BUFFER_GROUP 0

// DEFER_TASKRUN: completions are made only while we wait, not in the middle of our work.
// TASKRUN_FLAG: the ring says in memory that there are some to make, so that whoever does not want
// to wait need not enter the kernel to find out.
static const unsigned modes[] = {
	IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG,
	0,
};

int uring_init(struct uring *uring, unsigned entries, uint32_t buffers, uint32_t buffer_bytes)
{
	int refused = 0;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		int ret = uring_test(modes[i]);
		if (ret == 0)
			ret = uring_init_mode(uring, modes[i], entries, buffers, buffer_bytes);
		if (ret == 0)
			return 0;
		if (!refused)
			refused = ret;
	}
	return refused;
}

static size_t slots_bytes(uint32_t buffers)
{
	return buffers * sizeof(struct io_uring_buf);
}

static void *map_pages(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return map == MAP_FAILED ? NULL : map;
}

static void unmap_pages(void *map, size_t bytes)
{
	if (map)
		munmap(map, bytes);
}

static void free_buffers(struct uring *uring)
{
	unmap_pages(uring->slots, slots_bytes(uring->buffer_count));
	unmap_pages(uring->buffers, (size_t)uring->buffer_count * uring->buffer_bytes);
	free(uring->held);
}

// liburing 2.3 has no helper for this.
static int register_buffers(struct uring *uring)
{
	uring->slots = map_pages(slots_bytes(uring->buffer_count));
	uring->buffers = map_pages((size_t)uring->buffer_count * uring->buffer_bytes);
	uring->held = malloc(uring->buffer_count * sizeof(*uring->held));
	int ret = -ENOMEM;
	if (uring->slots && uring->buffers && uring->held) {
		struct io_uring_buf_reg reg = {
			.ring_addr = (uintptr_t)uring->slots,
			.ring_entries = uring->buffer_count,
			.bgid = BUFFER_GROUP,
		};
		ret = io_uring_register_buf_ring(&uring->ring, &reg, 0);
	}
	if (ret < 0) {
		free_buffers(uring);
		return ret;
	}
	for (uint32_t i = 0; i < uring->buffer_count; i++)
		uring->held[i] = (uint16_t)i;
	uring->held_count = uring->buffer_count;
	uring_recycle(uring);
	return 0;
}

int uring_init_mode(struct uring *uring, unsigned mode, unsigned entries, uint32_t buffers,
	uint32_t buffer_bytes)
{
	assert(buffers && (buffers & (buffers - 1)) == 0);
	struct io_uring_params params = {
		.flags = mode | IORING_SETUP_R_DISABLED | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
		.cq_entries = entries * COMPLETIONS_PER_SUBMISSION,
	};
	*uring = (struct uring){.buffer_count = buffers, .buffer_bytes = buffer_bytes};
	int ret = io_uring_queue_init_params(entries, &uring->ring, &params);
	if (ret < 0)
		return ret;
	const unsigned needed = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP;
	ret = (params.features & needed) == needed ? register_buffers(uring) : -ENOSYS;
	if (ret < 0)
		io_uring_queue_exit(&uring->ring);
	return ret;
}

void uring_fini(struct uring *uring)
{
	// Requests hold their files open until the kernel gets round to them, listeners among them:
	// see them off here. Best effort, and only the ring's own thread may.
	struct io_uring_sync_cancel_reg all = {
		.flags = IORING_ASYNC_CANCEL_ANY | IORING_ASYNC_CANCEL_ALL,
		.timeout = {.tv_nsec = 100000000},
	};
	io_uring_register_sync_cancel(&uring->ring, &all);
	io_uring_queue_exit(&uring->ring);
	free_buffers(uring);
}

uint64_t uring_bytes(unsigned entries, uint32_t buffers, uint32_t buffer_bytes)
{
	uint64_t entry_bytes = sizeof(struct io_uring_sqe) +
			       COMPLETIONS_PER_SUBMISSION * sizeof(struct io_uring_cqe);
	uint64_t slot_bytes = sizeof(struct io_uring_buf) + sizeof(uint16_t);
	return entries * entry_bytes + buffers * (slot_bytes + buffer_bytes);
}

static void enable(struct uring *uring)
{
	if (uring->is_enabled)
		return;
	// liburing 2.3 declares io_uring_enable_rings() but its shared library lacks it.
	int ret = io_uring_register(
		(unsigned)uring->ring.ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
	assert(ret == 0);
	io_uring_register_ring_fd(&uring->ring); // saves looking it up at each turn; may be refused
	uring->is_enabled = true;
}

static struct io_uring_sqe *next_request(struct uring *uring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&uring->ring);
	if (!sqe) {
		enable(uring);
		io_uring_submit(&uring->ring);
		sqe = io_uring_get_sqe(&uring->ring);
		assert(sqe);
	}
	return sqe;
}

void uring_accept(struct uring *uring, int fd, uint64_t data)
{
	struct io_uring_sqe *sqe = next_request(uring);
	io_uring_prep_multishot_accept(sqe, fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	io_uring_sqe_set_data64(sqe, data);
}

void uring_receive(struct uring *uring, int fd, bool multishot, uint64_t data)
{
	struct io_uring_sqe *sqe = next_request(uring);
	if (multishot)
		io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
	else
		io_uring_prep_recv(sqe, fd, NULL, uring->buffer_bytes, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_BUFFER_SELECT);
	sqe->buf_group = BUFFER_GROUP;
	io_uring_sqe_set_data64(sqe, data);
}

void uring_poll(struct uring *uring, int fd, unsigned events, bool multishot, uint64_t data)
{
	struct io_uring_sqe *sqe = next_request(uring);
	io_uring_prep_poll_add(sqe, fd, events);
	if (multishot)
		sqe->len = IORING_POLL_ADD_MULTI;
	io_uring_sqe_set_data64(sqe, data);
}

void uring_cancel(struct uring *uring, uint64_t data)
{
	struct io_uring_sqe *sqe = next_request(uring);
	io_uring_prep_cancel64(sqe, data, 0);
	io_uring_sqe_set_flags(sqe, IOSQE_CQE_SKIP_SUCCESS);
	io_uring_sqe_set_data64(sqe, URING_CANCEL_DATA);
}

// Whether there is nothing to submit, and nothing for the kernel to complete.
static bool is_quiet(const struct io_uring *ring)
{
	unsigned flags = IO_URING_READ_ONCE(*ring->sq.kflags);
	return ring->flags & IORING_SETUP_TASKRUN_FLAG && io_uring_sq_ready(ring) == 0 &&
	       !(flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW));
}

void uring_wait(struct uring *uring, uint64_t wait_us)
{
	enable(uring);
	struct io_uring *ring = &uring->ring;
	if (wait_us == 0 && is_quiet(ring))
		return;
	if (io_uring_cq_ready(ring)) {
		io_uring_submit(ring); // first what is there; making more could overflow
		return;
	}
	if (wait_us == 0) {
		io_uring_submit_and_get_events(ring);
		return;
	}
	struct io_uring_cqe *cqe;
	struct __kernel_timespec wait = {
		.tv_sec = (int64_t)(wait_us / 1000000),
		.tv_nsec = (int64_t)(wait_us % 1000000) * 1000,
	};
	int ret = io_uring_submit_and_wait_timeout(ring, &cqe, 1, &wait, NULL);
	// Interrupted, timed out, or short of memory for now: the turn goes on with what is there.
	assert(ret >= 0 || ret == -ETIME || ret == -EINTR || ret == -EAGAIN || ret == -EBUSY ||
		ret == -ENOMEM);
}

char *uring_buffer(struct uring *uring, uint32_t cqe_flags)
{
	assert(cqe_flags & IORING_CQE_F_BUFFER);
	uint32_t number = cqe_flags >> IORING_CQE_BUFFER_SHIFT;
	assert(number < uring->buffer_count);
	assert(uring->held_count < uring->buffer_count);
	uring->held[uring->held_count++] = (uint16_t)number;
	return uring->buffers + (size_t)number * uring->buffer_bytes;
}

uint32_t uring_recycle(struct uring *uring)
{
	uint32_t count = uring->held_count;
	int mask = io_uring_buf_ring_mask(uring->buffer_count);
	for (uint32_t i = 0; i < count; i++) {
		uint16_t number = uring->held[i];
		io_uring_buf_ring_add(uring->slots,
			uring->buffers + (size_t)number * uring->buffer_bytes, uring->buffer_bytes,
			number, mask, (int)i);
	}
	io_uring_buf_ring_advance(uring->slots, (int)count);
	uring->held_count = 0;
	return count;
}
