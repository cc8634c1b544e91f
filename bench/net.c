// What an item costs a whole worker under `driver: dpdk`: net_memif, frames, TCP, the gate, and
// back.
//
// The worker is the product's, on the stage of its tests, but its driver is the product's network
// over one end of net_memif; clients made of frames are at the other, in this thread, which takes
// turns with the worker. So nothing else that runs on the machine counts: the best of many turns
// does. What the other core's caches cost is not in it; `bench/run polls` has that.
//
// Flows are many and take their turns in an order that no cache foresees.

#include "bench/packets/wire.h"
#include "bench/requests.h"

#include "dataplane/net/net.h"

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BURST ETHDEV_BURST_MAX // items a turn
#define CLIENTS (10u << 24 | 128u << 16) // 10.128.0.0
#define SERVER_IP (10u << 24 | 1u)
#define FLOWS_MAX 10000u
#define ROUNDS_DEFAULT 3000u
#define FRAMES 8191u
#define DEVICE "id=0,socket-abstract=no,socket=%s,rsize=11,bsize=2048" // as `bench/run polls`
#define WAIT_US 5000000u // for the two ends to meet

enum mode { MODE_MAC, MODE_REMEMBERED, MODE_CONNECTION, MODE_SYN };
static const char *const mode_names[] = {"poll, MAC", "poll, remembered", "connection", "SYN"};

// A client's side of a connection.
struct flow {
	uint32_t seq, ack, ts_echo;
	uint16_t port;
	bool is_open, has_fin;
};

static struct stage stage;
static struct ethdev *devices;
static struct net_shared *shared;
static struct stream_driver *driver;
static struct stream_driver_ops timed_ops;
static const struct stream_driver_ops *true_ops;
static struct flow flows[FLOWS_MAX];
static uint32_t order[FLOWS_MAX], flow_count = FLOWS_MAX;
static uint16_t client_port;
static struct rte_mempool *client_pool;
static struct wire_ends ends = {.server_ip = SERVER_IP, .server_port = 80, .has_timestamps = true};
static uint64_t poll_cycles, write_cycles; // of the turn under way

static int timed_poll(
	struct stream_driver *d, struct stream_event *events, int events_max, uint32_t wait_us)
{
	uint64_t start = rte_rdtsc();
	int count = true_ops->poll(d, events, events_max, wait_us);
	poll_cycles += rte_rdtsc() - start;
	return count;
}

static size_t timed_write(
	struct stream_driver *d, struct stream *s, const struct span *parts, unsigned count)
{
	uint64_t start = rte_rdtsc();
	size_t taken = true_ops->write(d, s, parts, count);
	write_cycles += rte_rdtsc() - start;
	return taken;
}

// --- the clients

static void client_send(struct rte_mbuf **frames, uint16_t count)
{
	uint16_t sent = rte_eth_tx_burst(client_port, 0, frames, count);
	if (sent < count) {
		fprintf(stderr, "net: the ring is full\n");
		abort();
	}
}

static struct rte_mbuf *client_frame(uint32_t index, uint8_t flags, struct span payload)
{
	struct flow *flow = &flows[index];
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(client_pool);
	struct wire_segment segment = {.client_ip = CLIENTS + index,
		.client_port = flow->port,
		.flags = flags,
		.has_timestamp = true,
		.seq = flow->seq,
		.ack = flow->ack,
		.ts_value = (uint32_t)(driver->now_us / 1000),
		.ts_echo = flow->ts_echo,
		.payload = payload};
	if (!mbuf)
		abort();
	mbuf->data_len = (uint16_t)wire_write(&ends, &segment, rte_pktmbuf_mtod(mbuf, char *));
	mbuf->pkt_len = mbuf->data_len;
	flow->seq += (uint32_t)payload.len + !!(flags & (WIRE_SYN | WIRE_FIN));
	return mbuf;
}

static void client_take(const struct wire_segment *segment)
{
	struct flow *flow = &flows[segment->client_ip - CLIENTS];
	if (segment->flags & WIRE_RST || segment->client_port != flow->port)
		return;
	flow->ts_echo = segment->ts_value;
	if (segment->flags & WIRE_SYN)
		flow->ack = segment->seq;
	else if (segment->seq != flow->ack)
		return;
	flow->has_fin |= !!(segment->flags & WIRE_FIN);
	flow->ack += (uint32_t)segment->payload.len + !!(segment->flags & (WIRE_SYN | WIRE_FIN));
}

// Take all that has come. Returns how many frames.
static unsigned client_receive(void)
{
	struct rte_mbuf *frames[BURST];
	unsigned all = 0;
	for (uint16_t count; (count = rte_eth_rx_burst(client_port, 0, frames, BURST)) > 0;) {
		for (uint16_t i = 0; i < count; i++) {
			struct wire_segment segment;
			struct span frame = {
				rte_pktmbuf_mtod(frames[i], const char *), frames[i]->data_len};
			if (wire_read(&ends, frame, &segment))
				client_take(&segment);
		}
		rte_pktmbuf_free_bulk(frames, count);
		all += count;
	}
	return all;
}

// --- turns

// The worker's share of what `count` frames cause. Returns its cycles.
static uint64_t worker_turn(void)
{
	stage.now_us = driver->now_us;
	uint64_t start = rte_rdtsc();
	stage_turn(&stage, 0);
	return rte_rdtsc() - start;
}

// One frame of each of BURST flows, and what the worker makes of them. Answers are in the rings
// after the next flush, so a turn without frames follows, which counts too.
static uint64_t exchange(const uint32_t *who, uint8_t flags, const struct span *payloads)
{
	struct rte_mbuf *frames[BURST];
	for (unsigned i = 0; i < BURST; i++)
		frames[i] = client_frame(who[i], flags, payloads ? payloads[i] : (struct span){0});
	client_send(frames, BURST);
	uint64_t cycles = worker_turn();
	uint64_t idle = worker_turn(); // flushes
	client_receive();
	return cycles + idle;
}

static void open_flow(uint32_t index)
{
	flows[index] = (struct flow){.seq = index * 2654435761u,
		.port = (uint16_t)(flows[index].port < 1024 ? 1024 : flows[index].port + 1)};
}

static uint64_t open_burst(const uint32_t *who, bool is_whole)
{
	for (unsigned i = 0; i < BURST; i++)
		open_flow(who[i]);
	uint64_t cycles = exchange(who, WIRE_SYN, NULL);
	return is_whole ? cycles + exchange(who, WIRE_ACK, NULL) : cycles;
}

// The requests of a round, of one set of tickets.
static void pick(unsigned set, struct span *payloads)
{
	for (unsigned i = 0; i < BURST; i++) {
		unsigned which = i % REQUESTS_COUNT;
		payloads[i] = (struct span){
			requests_polls.text[set][which], requests_polls.len[set][which]};
	}
}

static uint64_t item_burst(enum mode mode, const uint32_t *who, unsigned pass)
{
	struct span payloads[BURST];
	uint64_t cycles = 0;
	switch (mode) {
	case MODE_SYN:
		return open_burst(who, false);
	case MODE_CONNECTION:
		cycles = open_burst(who, true);
		pick(0, payloads);
		cycles += exchange(who, WIRE_ACK | WIRE_PSH, payloads);
		cycles += exchange(who, WIRE_ACK | WIRE_FIN, NULL);
		return cycles + exchange(who, WIRE_ACK, NULL);
	default:
		pick(mode == MODE_REMEMBERED ? 0 : pass % REQUESTS_SETS, payloads);
		return exchange(who, WIRE_ACK | WIRE_PSH, payloads);
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static void measure(enum mode mode, unsigned rounds)
{
	uint64_t *took = calloc(rounds, sizeof(*took)), best_poll = 0, best_write = 0;
	uint64_t best = UINT64_MAX;
	uint32_t at = 0;
	unsigned pass = 0;
	uint64_t macs = stage_counter(&stage, COUNTER_tokens);
	for (unsigned round = 0; round < rounds; round++, at += BURST) {
		if (at + BURST > flow_count) {
			at = 0;
			pass++;
		}
		poll_cycles = write_cycles = 0;
		took[round] = item_burst(mode, order + at, pass);
		bool is_whole = mode == MODE_SYN || write_cycles > 0; // else retransmissions
		if (took[round] < best && is_whole && round > flow_count / BURST) {
			best = took[round];
			best_poll = poll_cycles;
			best_write = write_cycles;
		}
	}
	qsort(took, rounds, sizeof(*took), by_size);
	printf("%-18s %6lu  %6lu   %6lu %6lu %6lu   %4.2f\n", mode_names[mode],
		(unsigned long)(took[rounds / 100] / BURST),
		(unsigned long)(took[rounds / 4] / BURST), (unsigned long)(best_poll / BURST),
		(unsigned long)(best_write / BURST),
		(unsigned long)((best - best_poll - best_write) / BURST),
		(double)(stage_counter(&stage, COUNTER_tokens) - macs) / rounds / BURST);
	free(took);
}

// --- the beginning

static bool open_client(const char *socket)
{
	struct rte_eth_conf conf = {0};
	struct rte_ether_addr mac;
	char arguments[160];
	snprintf(arguments, sizeof(arguments), "role=client," DEVICE, socket);
	client_pool = rte_pktmbuf_pool_create("clients", FRAMES, 256, 0, 2176, SOCKET_ID_ANY);
	if (!client_pool || rte_vdev_init("net_memif1", arguments) < 0 ||
		rte_eth_dev_get_port_by_name("net_memif1", &client_port) < 0 ||
		rte_eth_dev_configure(client_port, 1, 1, &conf) < 0 ||
		rte_eth_rx_queue_setup(client_port, 0, 1024, 0, NULL, client_pool) < 0 ||
		rte_eth_tx_queue_setup(client_port, 0, 1024, 0, NULL) < 0 ||
		rte_eth_macaddr_get(client_port, &mac) < 0)
		return false;
	memcpy(ends.client_mac, &mac, 6);
	return rte_eth_dev_start(client_port) == 0;
}

static bool open_server(struct net_port_plan *plan, const char *socket)
{
	struct ethdev_plan ports = {
		.worker_count = 1, .connections = STAGE_CONNECTIONS, .port_count = 1};
	char error[ETHDEV_ERROR_BYTES];
	snprintf(ports.ports[0].device, sizeof(ports.ports[0].device),
		"net_memif0,role=server," DEVICE, socket);
	if (ethdev_open(&ports, &devices, error) < 0) {
		fprintf(stderr, "net: %s\n", error);
		return false;
	}
	const struct ethdev_port *port = ethdev_port(devices, 0);
	plan->id = port->id;
	plan->mtu = port->mtu;
	memcpy(plan->mac, port->mac, 6);
	memcpy(ends.server_mac, port->mac, 6);
	return true;
}

static void fill_plan(struct net_plan *plan)
{
	*plan = (struct net_plan){.worker_count = 1, .port_count = 1};
	plan->ports[0].address_count = 1;
	plan->ports[0].addresses[0].prefix = 8;
	uint8_t *ip = plan->ports[0].addresses[0].ip;
	memcpy(ip + 10, (uint8_t[]){0xff, 0xff, 10, 0, 0, 1}, 6);
	plan->tcp = (struct tcp_plan){.connections_max = STAGE_CONNECTIONS,
		.reserve = WORKER_RESERVE,
		.wait_max = 2 * STAGE_CONNECTIONS,
		.works_max = STAGE_CONNECTIONS / 4,
		.send_chunks = 65536,
		.receive_chunks = 4096,
		.chunk_bytes = 2048,
		.send_max = 1048576,
		.receive_max = 262144,
		.queue_high = 262144,
		.rto_min_us = 200000,
		.rto_max_us = 60000000,
		.give_up_us = 60000000,
		.idle_us = 4000000000u,
		.wait_us = 60000000,
		.linger_us = 60000000,
		.delayed_ack_us = 40000,
		.challenge_rate = 10,
		.listener_count = 1};
	plan->tcp.listeners[0].port = 80;
}

// The stage's clock is the device's from now on: tickets of before would be old ones, and each
// answer bring a new one.
static void begin_time(void)
{
	struct stream_event events[STREAM_EVENTS_MIN];
	stream_poll(driver, events, STREAM_EVENTS_MIN, 0);
	stage_turn(&stage, (driver->now_us - stage.now_us) / 1000);
}

static bool begin(const char *socket)
{
	static struct net_plan plan;
	fill_plan(&plan);
	stage_begin(&stage);
	if (!open_server(&plan.ports[0], socket) || !open_client(socket) ||
		net_share(&plan, &shared) < 0 ||
		net_create(&plan, 0, ethdev_worker(devices, 0), shared, &driver) < 0)
		return false;
	begin_time();
	requests_begin(&stage);
	true_ops = driver->ops;
	timed_ops = *true_ops;
	timed_ops.poll = timed_poll;
	timed_ops.write = timed_write;
	driver->ops = &timed_ops;
	stage.w->driver = driver;
	for (unsigned i = 0; i < WAIT_US / 1000; i++) {
		struct rte_eth_link ours = {0}, theirs = {0};
		rte_eth_link_get_nowait(plan.ports[0].id, &ours);
		rte_eth_link_get_nowait(client_port, &theirs);
		if (ours.link_status && theirs.link_status)
			return true;
		usleep(1000);
	}
	return false;
}

static void open_all(void)
{
	for (uint32_t i = 0; i < flow_count; i++)
		order[i] = i;
	for (uint32_t i = flow_count; i > 1; i--) {
		uint32_t j = (uint32_t)random() % i, other = order[i - 1];
		order[i - 1] = order[j];
		order[j] = other;
	}
	for (uint32_t i = 0; i + BURST <= flow_count; i += BURST)
		open_burst(order + i, true);
}

static void end(void)
{
	stage_close(&stage);
	rte_eth_dev_stop(client_port);
	rte_eth_dev_close(client_port);
	driver->ops = true_ops;
	stage.w->driver = &stage.fake.driver;
	stream_destroy(driver);
	net_share_end(shared);
	ethdev_close(devices);
	stage_end(&stage);
}

static bool start_eal(void)
{
	char *arguments[] = {"net", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", "256", "-l", "0"};
	return rte_eal_init(sizeof(arguments) / sizeof(arguments[0]), arguments) >= 0;
}

// net [ROUNDS [MODE [FLOWS]]]: all modes, or those whose name contains MODE.
int main(int count, char **words)
{
	unsigned rounds = count > 1 ? (unsigned)strtoul(words[1], NULL, 10) : ROUNDS_DEFAULT;
	char socket[] = "/tmp/sluice-net-XXXXXX";
	if (count > 3)
		flow_count = (uint32_t)strtoul(words[3], NULL, 10);
	if (flow_count < BURST || flow_count > FLOWS_MAX || rounds <= flow_count / BURST) {
		fprintf(stderr, "net: more rounds than bursts of flows; %u to %u flows\n", BURST,
			FLOWS_MAX);
		return 2;
	}
	if (!start_eal())
		return 1;
	close(mkstemp(socket));
	unlink(socket);
	if (!begin(socket)) {
		fprintf(stderr, "net: the two ends do not meet\n");
		return 1;
	}
	printf("%-18s %6s  %6s   %6s %6s %6s\n", "cycles", "least", "1st q.", "poll", "write",
		"rest");
	open_all();
	for (enum mode mode = MODE_MAC; mode <= MODE_SYN; mode++)
		if (count < 3 || strstr(mode_names[mode], words[2]))
			measure(mode, rounds);
	end();
	unlink(socket);
	return 0;
}
