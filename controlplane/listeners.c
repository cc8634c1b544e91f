// Opens the listening sockets and makes the sockets drivers over them.

#include "controlplane/listeners.h"

#include "controlplane/log.h"
#include "drivers/proxy/proxy.h"
#include "drivers/sockets/sockets.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#define PROXY_HEADER_MS 5000u // a PROXY header must be there by then
#define STREAMS_RESERVE (SOCKETS_RESERVE + 1u) // above a worker's share, which may be none
#define RECEIVE_BYTES 4096u // a head fits most times; bodies come in several
#define CONNECTS_RESERVE 64u // closed ones, whose places the driver frees in its next turn
#define RECEIVE_COUNT_MAX 4096u // per worker; they are held only within a turn

static_assert(LISTENERS_MAX <= PROXY_LISTENERS_MAX, "a bit each");
static_assert(WORKER_RESERVE <= SOCKETS_RESERVE, "of either driver");

struct stream_address listeners_address(const struct config_address *from)
{
	struct stream_address address = {.port = from->port};
	memcpy(address.ip, from->ip, sizeof(address.ip));
	return address;
}

int listeners_open(const struct config *config, unsigned worker_count, struct listeners *listeners)
{
	listeners->count = 0;
	if (config->driver != CONFIG_DRIVER_SOCKETS)
		return 0;
	for (uint32_t i = 0; i < config->listen.count; i++) {
		const struct config_address *from = &config->listen.at[i].address;
		struct stream_address address = listeners_address(from);
		int ret = sockets_listen(&address, worker_count, listeners->fds[i]);
		if (ret < 0) {
			log_error("listen on %s: %s%s", from->text, strerror(-ret),
				ret == -EADDRINUSE ? " (another process listens there)" : "");
			listeners_close(listeners);
			return ret;
		}
		listeners->count++;
	}
	return 0;
}

static uint32_t power_of_two(uint64_t wanted, uint32_t max)
{
	uint32_t value = 64;
	while (value < wanted && value < max)
		value *= 2;
	return value;
}

static struct sockets_plan plan_of(const struct config *config, unsigned worker_count)
{
	bool is_all = config->driver == CONFIG_DRIVER_SOCKETS; // not only to origins
	struct sockets_plan plan = {.engine = SOCKETS_AUTO,
		.streams_max = is_all ? (uint32_t)(config->connections / worker_count) : 1,
		.connects_max =
			(uint32_t)(config->origin_connections / worker_count) + CONNECTS_RESERVE,
		.receive_bytes = RECEIVE_BYTES,
		.receive_count = power_of_two(config->buffers->per_worker, RECEIVE_COUNT_MAX),
		.send_bytes = (uint32_t)config->buffers->size_bytes,
		.send_count = (uint32_t)config->buffers->per_worker,
		.queue_high = config->buffers->queue_bytes,
		.linger_ms = (uint32_t)config->http->send_timeout_ms,
		.listener_count = is_all ? config->listen.count : 0};
	if (plan.streams_max == 0)
		plan.streams_max = 1;
	return plan;
}

uint64_t listeners_descriptors(const struct config *config, unsigned worker_count)
{
	struct sockets_plan plan = plan_of(config, worker_count);
	return worker_count * sockets_descriptors(&plan);
}

int listeners_driver(const struct config *config, struct listeners *listeners, unsigned worker,
	unsigned worker_count, struct stream_driver **driver)
{
	struct sockets_plan plan = plan_of(config, worker_count);
	for (unsigned i = 0; i < listeners->count; i++)
		plan.listeners[i] = (struct sockets_listener){
			.address = listeners_address(&config->listen.at[i].address),
			.fd = listeners->fds[i][worker]};
	int ret = sockets_create(&plan, driver);
	if (ret < 0) {
		log_error("worker %u: sockets driver: %s", worker, strerror(-ret));
		return ret;
	}
	for (unsigned i = 0; i < listeners->count; i++)
		listeners->fds[i][worker] = -1;
	int refused;
	if (sockets_engine(*driver, &refused) == SOCKETS_EPOLL)
		log_warning("worker %u: io_uring is refused here (%s): using epoll", worker,
			strerror(refused));
	return 0;
}

int listeners_proxy(
	const struct config *config, unsigned worker_count, struct stream_driver **driver)
{
	struct proxy_plan plan = {
		.streams_max = (uint32_t)(config->connections / worker_count) + STREAMS_RESERVE,
		.header_ms = PROXY_HEADER_MS};
	for (uint32_t i = 0; i < config->listen.count; i++)
		plan.listeners |= (uint64_t)config->listen.at[i].proxy_protocol << i;
	if (plan.listeners == 0)
		return 0;
	int ret = proxy_create(&plan, *driver, driver);
	if (ret < 0)
		log_error("PROXY headers: %s", strerror(-ret));
	return ret;
}

void listeners_close(struct listeners *listeners)
{
	for (unsigned i = 0; i < listeners->count; i++)
		for (unsigned j = 0; j < WORKER_COUNT_MAX; j++)
			if (listeners->fds[i][j] > 0)
				close(listeners->fds[i][j]);
	listeners->count = 0;
}
