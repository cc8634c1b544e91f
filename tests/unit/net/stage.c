// Made, and taken down with nothing missing from the pool of buffers.

#include "tests/unit/net/stage.h"

#include <assert.h>
#include <string.h>

struct stage stage;

bool stage_open(void)
{
	return fake_open();
}

void stage_plan(void)
{
	memset(&stage, 0, sizeof(stage));
	stage.plan = (struct net_plan){.worker_count = 1, .port_count = 1};
	struct net_port_plan *port = &stage.plan.ports[0];
	*port = (struct net_port_plan){
		.id = STAGE_PORT, .mtu = 1500, .address_count = 2, .gateway_count = 2};
	packets_mac(port->mac, OUR_MAC);
	packets_ip(port->addresses[0].ip, OUR_IPV4);
	port->addresses[0].prefix = 24;
	packets_ip(port->addresses[1].ip, OUR_IPV6);
	port->addresses[1].prefix = 64;
	packets_ip(port->gateways[0], "192.0.2.254");
	packets_ip(port->gateways[1], "fe80::fe");
	stage.plan.tcp =
		(struct tcp_plan){.connections_max = 10, .queue_high = 4096, .listener_count = 1};
	stage.plan.tcp.listeners[0].port = 443;
}

void stage_start(bool is_quiet)
{
	int ret = net_share(&stage.plan, &stage.shared);
	assert(ret == 0);
	for (unsigned i = 0; i < stage.plan.worker_count; i++) {
		stage.devices[i] = fake_worker(i);
		ret = net_create(&stage.plan, i, stage.devices[i], stage.shared, &stage.drivers[i]);
		assert(ret == 0);
		stage.tcps[i] = fake_tcp(0);
	}
	if (!is_quiet)
		return;
	stage_pass(4000000);
	fake_forget(stage.devices[0]);
}

int stage_end(void **state)
{
	(void)state;
	for (unsigned i = 0; i < stage.plan.worker_count; i++) {
		stream_destroy(stage.drivers[i]);
		fake_worker(i);
	}
	net_share_end(stage.shared);
	return fake_buffers_out() != 0;
}

int stage_turn(unsigned worker)
{
	fake_now_us++;
	return stream_poll(stage.drivers[worker], stage.events, 64, 0);
}

void stage_arrive(const struct packets_frame *frame)
{
	fake_forget(stage.devices[0]);
	fake_arrive(stage.devices[0], STAGE_PORT, packets_build(frame), 0);
	stage_turn(0);
}

void stage_pass(uint64_t us)
{
	for (uint64_t end = fake_now_us + us; fake_now_us < end; fake_now_us += 10000)
		stage_turn(0);
}

uint64_t stage_counter(unsigned worker, enum net_counter counter)
{
	return net_stats(stage.drivers[worker])->counters[counter];
}
