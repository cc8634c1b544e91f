// packets: clients as frames, on a DPDK device of their own, for `driver: dpdk`.
//
// A process of its own, so that the server is the real program and pays for everything it would pay
// for; net_memif carries frames between the two without a kernel in between. Prints `warm` when all
// flows stand, measures from then on, and ends with one line of JSON. SIGUSR1 makes polls keep to
// one ticket, SIGUSR2 alternate again.

#include "bench/packets/flows.h"

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 32u
#define FRAMES 16384u
#define DESCRIPTORS 1024u
#define WARM_MS_MAX 600000u // in which all flows must stand

struct device {
	uint16_t port;
	struct rte_mempool *pool;
	struct wire_ends ends;
	struct rte_mbuf *out[BURST];
	uint16_t out_count;
	uint64_t dropped; // frames that the device did not take
};

static volatile sig_atomic_t is_ended, keeps;

static void on_signal(int signal)
{
	if (signal == SIGUSR1 || signal == SIGUSR2)
		keeps = signal == SIGUSR1;
	else
		is_ended = 1;
}

static void flush(struct device *d)
{
	uint16_t sent = rte_eth_tx_burst(d->port, 0, d->out, d->out_count);
	for (uint16_t i = sent; i < d->out_count; i++)
		rte_pktmbuf_free(d->out[i]);
	d->dropped += d->out_count - sent;
	d->out_count = 0;
}

// Room for a frame; NULL when the pool is empty, which counts as dropped.
static char *frame_begin(struct device *d, struct rte_mbuf **mbuf)
{
	*mbuf = rte_pktmbuf_alloc(d->pool);
	if (!*mbuf)
		d->dropped++;
	return *mbuf ? rte_pktmbuf_mtod(*mbuf, char *) : NULL;
}

static void frame_end(struct device *d, struct rte_mbuf *mbuf, unsigned bytes)
{
	mbuf->data_len = (uint16_t)bytes;
	mbuf->pkt_len = bytes;
	d->out[d->out_count++] = mbuf;
	if (d->out_count == BURST)
		flush(d);
}

static void send_segment(void *ctx, const struct wire_segment *segment)
{
	struct device *d = ctx;
	struct rte_mbuf *mbuf;
	char *frame = frame_begin(d, &mbuf);
	if (frame)
		frame_end(d, mbuf, wire_write(&d->ends, segment, frame));
}

static void take_frame(struct device *d, struct flows *flows, struct span frame)
{
	struct wire_segment segment;
	if (wire_read(&d->ends, frame, &segment)) {
		flows_take(flows, &segment);
		return;
	}
	if (wire_told(&d->ends, frame))
		return;
	struct rte_mbuf *mbuf;
	char *answer = frame_begin(d, &mbuf);
	if (!answer)
		return;
	unsigned bytes = wire_tell(&d->ends, frame, answer);
	if (bytes > 0)
		frame_end(d, mbuf, bytes);
	else
		rte_pktmbuf_free(mbuf);
}

static unsigned receive(struct device *d, struct flows *flows)
{
	struct rte_mbuf *frames[BURST];
	unsigned count = rte_eth_rx_burst(d->port, 0, frames, BURST);
	for (unsigned i = 0; i < count; i++)
		take_frame(d, flows,
			(struct span){
				rte_pktmbuf_mtod(frames[i], const char *), frames[i]->data_len});
	rte_pktmbuf_free_bulk(frames, count);
	return count;
}

static uint32_t now_ms(void)
{
	return (uint32_t)(rte_get_tsc_cycles() / (rte_get_tsc_hz() / 1000));
}

// Learn the server's MAC. Returns false if it says nothing for ten seconds.
static bool meet(struct device *d, struct flows *flows)
{
	static const uint8_t none[6];
	for (uint32_t begun = now_ms(); now_ms() - begun < 10000 && !is_ended;) {
		struct rte_mbuf *mbuf;
		char *frame = frame_begin(d, &mbuf);
		if (frame)
			frame_end(d, mbuf, wire_ask(&d->ends, 10u << 24 | 128u << 16, frame));
		flush(d);
		for (uint32_t asked = now_ms(); now_ms() - asked < 100;)
			receive(d, flows);
		if (memcmp(d->ends.server_mac, none, 6) != 0)
			return true;
	}
	fprintf(stderr, "packets: no answer to ARP\n");
	return false;
}

static void turn(struct device *d, struct flows *flows, uint32_t *mended_ms)
{
	uint32_t now = now_ms();
	flows_keep(flows, keeps);
	flows_begin(flows, now, BURST);
	flush(d);
	receive(d, flows);
	if (now - *mended_ms > 250) {
		*mended_ms = now;
		flows_mend(flows);
	}
}

// Whether all flows stand; where none is to stand for long, whether answers come.
static bool is_warm(const struct flows_tally *tally, const struct plan *plan)
{
	if (plan->mode == PLAN_SYN || plan->mode == PLAN_ARRIVALS)
		return tally->answers >= plan->window;
	return tally->ready >= plan->flows;
}

static bool warm_up(struct device *d, struct flows *flows, const struct plan *plan)
{
	uint32_t begun = now_ms(), mended = begun;
	while (!is_warm(flows_tally(flows), plan)) {
		turn(d, flows, &mended);
		if (is_ended || now_ms() - begun > WARM_MS_MAX) {
			fprintf(stderr, "packets: only %u flows stand\n",
				flows_tally(flows)->ready);
			return false;
		}
	}
	printf("warm\n");
	fflush(stdout);
	return true;
}

static void measure(struct device *d, struct flows *flows, const struct plan *plan)
{
	struct flows_tally before = *flows_tally(flows);
	uint32_t begun = now_ms(), mended = begun;
	while (!is_ended && now_ms() - begun < (uint32_t)(plan->seconds * 1000))
		turn(d, flows, &mended);
	const struct flows_tally *now = flows_tally(flows);
	printf("{\"answers\":%" PRIu64 ",\"seconds\":%.3f,\"segments_in\":%" PRIu64
	       ",\"segments_out\":%" PRIu64 ",\"stalled\":%" PRIu64 ",\"out_of_order\":%" PRIu64
	       ",\"refused\":%" PRIu64 ",\"resets\":%" PRIu64 ",\"dropped\":%" PRIu64
	       ",\"ready\":%u}\n",
		now->answers - before.answers, (now_ms() - begun) / 1e3,
		now->segments_in - before.segments_in, now->segments_out - before.segments_out,
		now->stalled, now->out_of_order, now->refused, now->resets, d->dropped, now->ready);
}

static int start_eal(const struct plan *plan)
{
	char core[16];
	snprintf(core, sizeof(core), "%u", plan->core);
	char *arguments[] = {"packets", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "256", "-l", core, "--vdev", (char *)plan->device, NULL};
	int count = sizeof(arguments) / sizeof(arguments[0]) - 1;
	return rte_eal_init(count, arguments) < 0 ? -rte_errno : 0;
}

static int open_device(struct device *d)
{
	struct rte_eth_conf conf = {0};
	struct rte_ether_addr mac;
	int ret;
	d->pool = rte_pktmbuf_pool_create("frames", FRAMES, 256, 0, 2048 + 128, SOCKET_ID_ANY);
	if (!d->pool)
		return -rte_errno;
	if ((ret = rte_eth_dev_configure(d->port, 1, 1, &conf)) < 0 ||
		(ret = rte_eth_rx_queue_setup(d->port, 0, DESCRIPTORS, 0, NULL, d->pool)) < 0 ||
		(ret = rte_eth_tx_queue_setup(d->port, 0, DESCRIPTORS, 0, NULL)) < 0 ||
		(ret = rte_eth_macaddr_get(d->port, &mac)) < 0)
		return ret;
	memcpy(d->ends.client_mac, &mac, 6);
	return rte_eth_dev_start(d->port);
}

int main(int argc, char **argv)
{
	struct plan plan;
	struct device device = {0};
	if (!plan_read(argc, argv, &plan))
		return 2;
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	int ret = start_eal(&plan);
	if (ret < 0 || (ret = open_device(&device)) < 0) {
		fprintf(stderr, "packets: %s: %s\n", plan.device, strerror(-ret));
		return 1;
	}
	device.ends.server_ip = plan.server_ip;
	device.ends.server_port = plan.server_port;
	device.ends.has_timestamps = plan.has_timestamps;
	struct flows *flows = flows_create(&plan, send_segment, &device);
	bool is_done = flows && meet(&device, flows) && warm_up(&device, flows, &plan);
	if (is_done)
		measure(&device, flows, &plan);
	if (flows)
		flows_destroy(flows);
	rte_eth_dev_stop(device.port);
	rte_eth_dev_close(device.port);
	rte_eal_cleanup();
	return is_done ? 0 : 1;
}
