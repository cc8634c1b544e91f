// What a worker's network is made of, and the driver that it is for the worker.

#include "dataplane/net/net.h"

#include "dataplane/net/inside.h"
#include "dataplane/net/out.h"
#include "dataplane/net/share.h"
#include "dataplane/net/turn.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TCP_HEADERS_IPV4 (FRAME_IPV4_BYTES + TCP_HEADER_BYTES)
#define TCP_HEADERS_IPV6 (FRAME_IPV6_BYTES + TCP_HEADER_BYTES)

static const struct stream_driver_ops ops;

int net_share(const struct net_plan *plan, struct net_shared **shared)
{
	assert(plan->worker_count > 0 && plan->port_count <= ETHDEV_PORTS_MAX);
	struct net_shared *s = calloc(1, sizeof(*s)); // COLD: at start
	if (!s)
		return -ENOMEM;
	int ret = steer_create(plan->worker_count, &s->steer);
	if (ret < 0)
		goto fail_shared;
	s->gateways = gateway_create(plan);
	if (s->gateways) {
		*shared = s;
		return 0;
	}
	ret = -ENOMEM;
	steer_destroy(s->steer);
fail_shared:
	free(s);
	return ret;
}

void net_share_end(struct net_shared *shared)
{
	if (!shared)
		return;
	steer_destroy(shared->steer);
	gateway_destroy(shared->gateways);
	free(shared);
}

static uint64_t random_of(void *ctx)
{
	return random_u64(((struct net *)ctx)->random);
}

static uint16_t mtu_min(const struct net_plan *plan)
{
	uint16_t mtu = ETHDEV_MTU_MAX;
	for (unsigned i = 0; i < plan->port_count; i++)
		if (plan->ports[i].mtu < mtu)
			mtu = plan->ports[i].mtu;
	assert(mtu >= ETHDEV_MTU_MIN);
	return mtu;
}

// What of the plan is this worker's own.
static void arrange(struct net *n)
{
	struct tcp_plan *tcp = &n->plan.tcp;
	tcp->seed = random_u64(n->random);
	tcp->mss_v4 = mtu_min(&n->plan) - TCP_HEADERS_IPV4;
	tcp->mss_v6 = mtu_min(&n->plan) - TCP_HEADERS_IPV6;
	memcpy(&n->flow_key, tcp->secret, sizeof(n->flow_key));
	memset(n->port_of, UINT8_MAX, sizeof(n->port_of));
	for (unsigned i = 0; i < n->plan.port_count; i++)
		n->port_of[n->plan.ports[i].id] = (uint8_t)i;
	n->io = (struct tcp_io){
		.ctx = n, .send = out_send, .random = random_of, .elsewhere = turn_elsewhere};
}

int net_create(const struct net_plan *plan, unsigned index, struct ethdev_worker *device,
	struct net_shared *shared, struct stream_driver **driver)
{
	assert(index < plan->worker_count);
	struct net *n = calloc(1, sizeof(*n)); // COLD: at start
	if (!n)
		return -ENOMEM;
	n->driver = (struct stream_driver){.ops = &ops, .queue_high = plan->tcp.queue_high};
	n->plan = *plan;
	n->index = index;
	n->device = device;
	n->shared = shared;
	int ret = random_create(&n->random);
	if (ret < 0)
		goto fail_net;
	arrange(n);
	n->tcp = tcp_create(&n->plan.tcp, &n->io);
	if (n->tcp) {
		*driver = &n->driver;
		return 0;
	}
	ret = -ENOMEM;
	random_destroy(n->random);
fail_net:
	free(n);
	return ret;
}

uint64_t net_bytes(const struct net_plan *plan)
{
	uint64_t ring = STEER_RING_FRAMES * sizeof(struct steer_item);
	return sizeof(struct net) + tcp_bytes(&plan->tcp) + ring;
}

static struct net *net_of(const struct stream_driver *d)
{
	return (struct net *)(uintptr_t)d;
}

const struct tcp_stats *net_tcp_stats(const struct stream_driver *driver)
{
	return tcp_stats(net_of(driver)->tcp);
}

bool net_is_full(const struct stream_driver *driver)
{
	return tcp_is_full(net_of(driver)->tcp);
}

const struct net_stats *net_stats(const struct stream_driver *driver)
{
	return &net_of(driver)->stats;
}

#define X(name, text) #name,
static const char *const names[] = {NET_COUNTERS(X)};
#undef X
#define X(name, text) text,
static const char *const texts[] = {NET_COUNTERS(X)};
#undef X

const char *net_counter_name(enum net_counter counter)
{
	assert(counter < NET_COUNTERS_COUNT);
	return names[counter];
}

const char *net_counter_text(enum net_counter counter)
{
	assert(counter < NET_COUNTERS_COUNT);
	return texts[counter];
}

const uint8_t *net_own_address(const struct net *n, uint16_t port, const uint8_t ip[16])
{
	const struct net_port_plan *p = &n->plan.ports[port];
	const uint8_t *first = NULL;
	bool is_ipv4 = ip_is_v4(ip);
	for (unsigned i = 0; i < p->address_count; i++) {
		const struct net_address *own = &p->addresses[i];
		if (ip_is_v4(own->ip) != is_ipv4)
			continue;
		if (frame_is_on_link(own, ip))
			return own->ip;
		first = first ? first : own->ip;
	}
	return first;
}

static size_t write_stream(
	struct stream_driver *d, struct stream *s, const struct span *parts, unsigned count)
{
	return tcp_write(net_of(d)->tcp, s, parts, count);
}

static size_t queued(const struct stream_driver *d, const struct stream *s)
{
	return tcp_queued(net_of(d)->tcp, s);
}

static void shut_stream(struct stream_driver *d, struct stream *s)
{
	tcp_shut(net_of(d)->tcp, s);
}

static void close_stream(struct stream_driver *d, struct stream *s, bool reset)
{
	tcp_close(net_of(d)->tcp, s, reset);
}

static void pause_stream(struct stream_driver *d, struct stream *s)
{
	tcp_pause(net_of(d)->tcp, s);
}

static void resume_stream(struct stream_driver *d, struct stream *s)
{
	tcp_resume(net_of(d)->tcp, s);
}

// There are only passive opens: the origin side is the kernel's.
static struct stream *connect_stream(
	struct stream_driver *d, const struct stream_address *to, void *user)
{
	(void)d, (void)to, (void)user;
	return NULL;
}

static void stop_accepting(struct stream_driver *d)
{
	tcp_stop_accepting(net_of(d)->tcp);
}

// A poll that never sleeps need not be woken.
static void wake(struct stream_driver *d)
{
	(void)d;
}

static void destroy(struct stream_driver *d)
{
	struct net *n = net_of(d);
	ethdev_free(n->device, n->burst.frames + n->burst.held, n->burst.count - n->burst.held);
	tcp_destroy(n->tcp);
	random_destroy(n->random);
	free(n);
}

static const struct stream_driver_ops ops = {
	.poll = turn_poll,
	.write = write_stream,
	.queued = queued,
	.shut = shut_stream,
	.close = close_stream,
	.pause = pause_stream,
	.resume = resume_stream,
	.connect = connect_stream,
	.stop_accepting = stop_accepting,
	.wake = wake,
	.destroy = destroy,
};
