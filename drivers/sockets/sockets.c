// Making a driver: check the plan, allocate, choose the engine.

#include "drivers/sockets/sockets.h"

#include <errno.h>
#include <stdlib.h>

#include "drivers/sockets/core.h"

static const struct core *core_in(const struct stream_driver *driver)
{
	return (const struct core *)driver;
}

static uint64_t streams_of(const struct sockets_plan *plan)
{
	return (uint64_t)plan->streams_max + SOCKETS_RESERVE + plan->connects_max;
}

static bool bytes_are_valid(uint32_t bytes)
{
	return bytes >= SOCKETS_BUFFER_BYTES_MIN && bytes <= SOCKETS_BUFFER_BYTES_MAX;
}

static bool plan_is_valid(const struct sockets_plan *plan)
{
	uint32_t receives = plan->receive_count;
	if (streams_of(plan) > SOCKETS_STREAMS_MAX || plan->listener_count > SOCKETS_LISTENERS_MAX)
		return false;
	if (receives == 0 || receives > SOCKETS_BUFFERS_MAX || (receives & (receives - 1)))
		return false;
	if (!bytes_are_valid(plan->receive_bytes) || !bytes_are_valid(plan->send_bytes))
		return false;
	return plan->send_count && (uint64_t)plan->send_count * plan->send_bytes <= UINT32_MAX;
}

static int init_engine(
	struct core *core, const struct engine_ops *ops, const struct sockets_plan *plan)
{
	core->ops = ops;
	return ops->init(core, plan);
}

static int choose_engine(struct core *core, const struct sockets_plan *plan)
{
	if (plan->engine != SOCKETS_EPOLL) {
		int ret = init_engine(core, &engine_uring, plan);
		if (ret == 0 || plan->engine == SOCKETS_URING)
			return ret;
		core->refused = -ret;
	}
	return init_engine(core, &engine_epoll, plan);
}

int sockets_create(const struct sockets_plan *plan, struct stream_driver **driver)
{
	if (!plan_is_valid(plan))
		return -EINVAL;
	struct core *core = malloc(sizeof(*core));
	if (!core)
		return -ENOMEM;
	int ret = core_init(core, plan);
	if (ret < 0)
		goto fail;
	ret = choose_engine(core, plan);
	if (ret < 0)
		goto fail_core;
	for (unsigned i = 0; i < plan->listener_count; i++)
		core->ops->accept_start(core, i);
	*driver = &core->driver;
	return 0;
fail_core:
	core_fini(core);
fail:
	free(core);
	return ret;
}

uint64_t sockets_bytes(const struct sockets_plan *plan)
{
	return sizeof(struct core) + streams_of(plan) * sizeof(struct socket) +
	       (uint64_t)plan->send_count * (sizeof(struct queue_buffer) + plan->send_bytes) +
	       engine_uring_bytes(plan); // epoll takes less
}

uint64_t sockets_descriptors(const struct sockets_plan *plan)
{
	return streams_of(plan) + plan->listener_count + 2; // the engine's and the eventfd
}

enum sockets_engine sockets_engine(const struct stream_driver *driver, int *refused)
{
	*refused = core_in(driver)->refused;
	return core_in(driver)->ops == &engine_uring ? SOCKETS_URING : SOCKETS_EPOLL;
}

bool sockets_is_full(const struct stream_driver *driver)
{
	const struct core *core = core_in(driver);
	return core->stats.accepted_open > core->streams_max;
}

const struct sockets_stats *sockets_stats(const struct stream_driver *driver)
{
	return &core_in(driver)->stats;
}

static const struct {
	const char *name, *text;
} counters[] = {
#define X(name, text) {#name, text},
	SOCKETS_COUNTERS(X)
#undef X
};

const char *sockets_counter_name(enum sockets_counter counter)
{
	assert(counter < SOCKETS_COUNTERS_COUNT);
	return counters[counter].name;
}

const char *sockets_counter_text(enum sockets_counter counter)
{
	assert(counter < SOCKETS_COUNTERS_COUNT);
	return counters[counter].text;
}
