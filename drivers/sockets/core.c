// A turn: take up what the last one left over, wait, let the engine report until the burst is full
// (what does not fit stays in the kernel), look at deadlines. The clock is read once, after
// waiting.
//
// Waking from another thread is one eventfd, written only by the first to call since the worker
// last looked: is_woken is set before the write and cleared after the read, so a call that finds it
// set either sees its write still to be read, or comes before the worker looks at whatever it was
// woken for.

#include "drivers/sockets/core.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "drivers/sockets/calls.h"
#include "drivers/sockets/life.h"

#define REPORT_EVENTS_MAX 2 // the most that one report gives, as EOF and CLOSED

static uint64_t clock_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

int core_init(struct core *core, const struct sockets_plan *plan)
{
	*core = (struct core){
		.driver = {.ops = &calls_ops, .queue_high = plan->queue_high, .now_us = clock_us()},
		.streams_max = plan->streams_max,
		.connects_max = plan->connects_max,
		.linger_us = plan->linger_ms * UINT64_C(1000),
		.listener_count = plan->listener_count,
		.burst = 1, // a new socket stands in none
	};
	TAILQ_INIT(&core->lingering);
	TAILQ_INIT(&core->due);
	TAILQ_INIT(&core->closed);
	for (unsigned i = 0; i < plan->listener_count; i++)
		core->listeners[i].plan = plan->listeners[i];
	int ret = socket_table_init(
		&core->table, plan->streams_max + SOCKETS_RESERVE + plan->connects_max);
	if (ret < 0)
		return ret;
	ret = queue_pool_init(&core->pool, plan->send_count, plan->send_bytes);
	if (ret < 0)
		goto fail_table;
	core->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (core->wake_fd >= 0)
		return 0;
	ret = -errno;
	queue_pool_fini(&core->pool);
fail_table:
	socket_table_fini(&core->table);
	return ret;
}

void core_fini(struct core *core)
{
	for (uint32_t i = 0; i < core->table.count; i++)
		if (core->table.sockets[i].state != SOCKET_FREE)
			close(core->table.sockets[i].fd);
	close(core->wake_fd);
	queue_pool_fini(&core->pool);
	socket_table_fini(&core->table);
}

int core_rooms(const struct core *core)
{
	return (core->event_max - core->event_count) / REPORT_EVENTS_MAX;
}

void core_close_listener(struct core *core, unsigned listener)
{
	int *fd = &core->listeners[listener].plan.fd;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static uint64_t wait_until_deadline(const struct core *core, uint64_t wait_us)
{
	if (core->event_count || !TAILQ_EMPTY(&core->due))
		return 0;
	uint64_t deadline_us = life_deadline_us(core), now_us = core->driver.now_us;
	if (deadline_us <= now_us)
		return 0;
	return wait_us < deadline_us - now_us ? wait_us : deadline_us - now_us;
}

int core_poll(
	struct stream_driver *driver, struct stream_event *events, int event_max, uint32_t wait_us)
{
	assert(event_max >= STREAM_EVENTS_MIN);
	struct core *core = core_of(driver);
	core->events = events;
	core->event_max = event_max < UINT16_MAX ? event_max : UINT16_MAX;
	core->event_count = 0;
	core->burst++;
	life_begin_turn(core);
	core->ops->wait(core, wait_until_deadline(core, wait_us));
	driver->now_us = clock_us();
	core->ops->take(core);
	life_expire(core);
	return core->event_count;
}

void core_wake(struct stream_driver *driver)
{
	struct core *core = core_of(driver);
	if (atomic_exchange(&core->is_woken, true))
		return;
	ssize_t ret = write(core->wake_fd, &(uint64_t){1}, sizeof(uint64_t));
	assert(ret == sizeof(uint64_t));
}

void core_woken(struct core *core)
{
	uint64_t times;
	if (read(core->wake_fd, &times, sizeof(times)) == sizeof(times))
		atomic_exchange(&core->is_woken, false);
}
