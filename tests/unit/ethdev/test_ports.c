// Goal: each kind of device that needs no hardware opens, receives and sends, in a network
// namespace of this process that is gone with it; and the exception interface beside a port. Goal:
// a device that cannot be opened says why, in one line.
//
// The other end of a link is a raw socket. Needs root.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/ethdev/inside.h"
#include "tests/unit/ethdev/rig.h"

#include <rte_ethdev.h>
#include <rte_ether.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 12u
#define FRAME_BYTES 200u
#define TYPE 0x88b5u // IEEE's for experiments: nobody else sends it
#define WAIT_MS 3000

// net_af_xdp forgets a struct of libxdp's when it closes.
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:xsk_umem__create";
}

static struct ethdev *devices;
static struct ethdev_worker *workers[2];

static void command(const char *line)
{
	int ret = system(line);
	if (ret != 0)
		fail_msg("%s: %d", line, ret);
}

static void make_veth(unsigned mtu)
{
	char line[256];
	snprintf(line, sizeof(line),
		"ip link add there mtu %u type veth peer name here mtu %u && "
		"ip link set there up && ip link set here up",
		mtu, mtu);
	command(line);
}

static int close_all(void **state)
{
	(void)state;
	ethdev_close(devices);
	devices = NULL;
	if (if_nametoindex("there"))
		command("ip link delete there");
	return 0;
}

static void open_plan(const struct ethdev_plan *plan)
{
	devices = rig_open(plan);
	for (unsigned i = 0; i < plan->worker_count; i++) {
		workers[i] = ethdev_worker(devices, i);
		ethdev_turn(workers[i]);
	}
}

static const struct ethdev_port *port(void)
{
	return ethdev_port(devices, 0);
}

// A raw socket that sees what reaches or leaves an interface.
static int watch(const char *interface)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(TYPE),
		.sll_ifindex = (int)if_nametoindex(interface)};
	assert_int_not_equal(at.sll_ifindex, 0);
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, htons(TYPE));
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static unsigned fill(uint8_t *frame, unsigned len, uint8_t mark)
{
	memset(frame, mark, len);
	memcpy(frame, "\xff\xff\xff\xff\xff\xff\x02\x00\x00\x00\x00\x09\x88\xb5", 14);
	return len;
}

static struct rte_mbuf *make_frame(struct ethdev_worker *w, unsigned len, uint8_t mark)
{
	struct rte_mbuf *frame = ethdev_take(w, false);
	assert_non_null(frame);
	fill((uint8_t *)rte_pktmbuf_append(frame, (uint16_t)len), len, mark);
	return frame;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

// Turns until a frame of ours comes to one of `count` workers, or NULL when it is too late. Others
// (the kernel's own neighbour discovery) are passed over.
static struct rte_mbuf *await_frame(unsigned count, uint8_t mark)
{
	uint64_t until_ms = now_ms() + WAIT_MS;
	while (now_ms() < until_ms)
		for (unsigned i = 0; i < count; i++) {
			struct rte_mbuf *frames[ETHDEV_BURST_MAX], *found = NULL;
			ethdev_turn(workers[i]);
			unsigned got = ethdev_receive(workers[i], frames, ETHDEV_BURST_MAX);
			ethdev_flush(workers[i]);
			for (unsigned j = 0; j < got; j++) {
				const uint8_t *at = rte_pktmbuf_mtod(frames[j], const uint8_t *);
				unsigned len = rte_pktmbuf_data_len(frames[j]);
				bool is_ours = !found && len > 20 && at[len - 1] == mark &&
					       memcmp(at + 6, "\x02\x00\x00\x00\x00\x09", 6) == 0;
				if (is_ours)
					found = frames[j];
				else
					rte_pktmbuf_free(frames[j]);
			}
			if (found)
				return found;
		}
	return NULL;
}

// The next frame that a socket sees; its length. The ports turn meanwhile.
static ssize_t await_socket(int fd, uint8_t frame[16384])
{
	uint64_t until_ms = now_ms() + WAIT_MS;
	ssize_t got = -1;
	while (got < 0 && now_ms() < until_ms) {
		ethdev_turn(workers[0]);
		ethdev_flush(workers[0]);
		got = recv(fd, frame, 16384, 0);
	}
	return got;
}

// Both ways, between the port and a socket on `interface`, with frames of `len` bytes.
static void talk(const char *interface, unsigned worker_count, unsigned len)
{
	static uint8_t bytes[16384], expected[16384];
	int fd = watch(interface);
	fill(bytes, len, 7);
	assert_int_equal(send(fd, bytes, len, 0), len);
	struct rte_mbuf *frame = await_frame(worker_count, 7);
	if (!frame)
		fail_msg("%s: nothing was received", port()->name);
	assert_int_equal(rte_pktmbuf_data_len(frame), len);
	assert_int_equal(frame->nb_segs, 1);
	assert_int_equal(frame->port, port()->id);
	assert_memory_equal(rte_pktmbuf_mtod(frame, void *), bytes, len);
	rte_pktmbuf_free(frame);

	for (unsigned i = 0; i < worker_count; i++) {
		ethdev_send(workers[i], port()->id, make_frame(workers[i], len, (uint8_t)(8 + i)));
		ethdev_flush(workers[i]);
		if (await_socket(fd, bytes) != (ssize_t)len)
			fail_msg("%s: nothing was sent by worker %u", port()->name, i);
		fill(expected, len, (uint8_t)(8 + i));
		assert_memory_equal(bytes, expected, len);
	}
	close(fd);
}

static void test_af_packet(void **state)
{
	(void)state;
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_af_packet0,iface=here", 1);
	open_plan(&plan);
	assert_true(port()->kernel_sees_frames);
	talk("there", 1, FRAME_BYTES);
	talk("there", 1, 1514);
}

static void test_af_packet_two_workers(void **state)
{
	(void)state;
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_af_packet1,iface=here", 2);
	open_plan(&plan);
	assert_int_equal(port()->rx_queues, 2);
	assert_true(port()->is_dispatched);
	talk("there", 2, FRAME_BYTES);
}

static void test_af_packet_jumbo(void **state)
{
	(void)state;
	make_veth(9000);
	static const uint16_t mtus[] = {1501, 1990, 1998, 2049, 4000, 8999, 9000};
	for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
		struct ethdev_plan plan = rig_plan("net_af_packet2,iface=here", 1);
		plan.ports[0].mtu = mtus[i];
		open_plan(&plan);
		assert_int_equal(port()->mtu, mtus[i]);
		for (unsigned n = 0; n < ROUNDS; n++) // beyond the first block of the ring
			talk("there", 1, mtus[i] + 14u);
		ethdev_close(devices);
	}
	devices = NULL;
}

static void test_af_xdp(void **state)
{
	(void)state;
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_af_xdp0,iface=here", 1);
	open_plan(&plan);
	assert_false(port()->kernel_sees_frames);
	talk("there", 1, FRAME_BYTES);
	talk("there", 1, 1514);
}

static void test_af_xdp_two_workers(void **state)
{
	(void)state;
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_af_xdp1,iface=here", 2);
	open_plan(&plan);
	assert_int_equal(port()->rx_queues, 1);
	assert_true(port()->is_dispatched);
	talk("there", 2, FRAME_BYTES);
}

// A process that ended without its privileges has left its program behind.
static void test_af_xdp_after_another(void **state)
{
	(void)state;
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_af_xdp5,iface=here", 1);
	pid_t child = fork();
	if (child == 0) {
		open_plan(&plan);
		assert_int_equal(setresuid(65534, 65534, 65534), 0);
		ethdev_close(devices);
		_exit(0);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	command("ip link show here | grep -q xdp");
	open_plan(&plan);
	talk("there", 1, FRAME_BYTES);
}

// Nobody takes frames: the device drops them, and it is counted within a second.
static void test_frames_missed(void **state)
{
	(void)state;
	static uint8_t bytes[FRAME_BYTES];
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_pcap2,iface=here", 1);
	open_plan(&plan);
	int fd = watch("there");
	for (int i = 0; i < 20000; i++)
		send(fd, bytes, fill(bytes, sizeof(bytes), 1), 0);
	uint64_t until_ms = now_ms() + WAIT_MS;
	while (rig_counter(workers[0], ETHDEV_device_missed) == 0 && now_ms() < until_ms)
		ethdev_turn(workers[0]);
	assert_in_range(rig_counter(workers[0], ETHDEV_device_missed), 1, 20000);
	close(fd);
}

static void test_tap(void **state)
{
	(void)state;
	struct ethdev_plan plan = rig_plan("net_tap0,iface=tap0", 1);
	open_plan(&plan);
	talk("tap0", 1, FRAME_BYTES);
	talk("tap0", 1, 1514);
}

static void test_tap_two_workers(void **state)
{
	(void)state;
	struct ethdev_plan plan = rig_plan("net_tap1,iface=tap1", 2);
	open_plan(&plan);
	assert_int_equal(port()->rx_queues, 2);
	talk("tap1", 2, FRAME_BYTES);
}

// All buffers of the port are out: what comes is dropped and counted; then it goes on.
static void test_the_port_has_no_buffer(void **state)
{
	(void)state;
	static struct rte_mbuf *taken[1 << 16];
	static uint8_t bytes[FRAME_BYTES];
	struct ethdev_plan plan = rig_plan("net_tap2,iface=tap2", 1);
	open_plan(&plan);
	unsigned count = 0;
	while ((taken[count] = rte_pktmbuf_alloc(devices->ports[0].buffers)))
		count++;
	int fd = watch("tap2");
	uint64_t until_ms = now_ms() + WAIT_MS;
	while (rig_counter(workers[0], ETHDEV_device_no_buffer) == 0 && now_ms() < until_ms) {
		send(fd, bytes, fill(bytes, sizeof(bytes), 1), 0);
		struct rte_mbuf *frames[ETHDEV_BURST_MAX];
		ethdev_turn(workers[0]);
		ethdev_free(
			workers[0], frames, ethdev_receive(workers[0], frames, ETHDEV_BURST_MAX));
	}
	assert_true(rig_counter(workers[0], ETHDEV_device_no_buffer) > 0);
	close(fd);
	ethdev_free(workers[0], taken, count);
	talk("tap2", 1, FRAME_BYTES);
}

// Two ports of this process, the ends of one link.
// The device meets its other end in a thread of EAL's, and must be left alone until it has.
static bool is_up(unsigned index)
{
	struct rte_eth_link link;
	return rte_eth_link_get_nowait(ethdev_port(devices, index)->id, &link) == 0 &&
	       link.link_status == RTE_ETH_LINK_UP;
}

static void test_memif(void **state)
{
	(void)state;
	struct ethdev_plan plan = rig_plan("net_memif0,role=server,socket=@sluice-test-ports", 1);
	plan.port_count = 2;
	snprintf(plan.ports[1].device, ETHDEV_DEVICE_BYTES,
		"net_memif1,role=client,socket=@sluice-test-ports");
	open_plan(&plan);
	struct rte_mbuf *frame = NULL;
	uint64_t until_ms = now_ms() + WAIT_MS;
	while (!(is_up(0) && is_up(1)) && now_ms() < until_ms)
		usleep(1000);
	while (!frame && now_ms() < until_ms) {
		ethdev_send(workers[0], port()->id, make_frame(workers[0], FRAME_BYTES, 5));
		ethdev_flush(workers[0]);
		struct rte_mbuf *frames[ETHDEV_BURST_MAX];
		unsigned got = ethdev_receive(workers[0], frames, ETHDEV_BURST_MAX);
		frame = got ? frames[0] : NULL;
		ethdev_free(workers[0], frames + 1, got ? got - 1 : 0);
	}
	assert_non_null(frame);
	assert_int_equal(frame->port, ethdev_port(devices, 1)->id);
	assert_int_equal(rte_pktmbuf_data_len(frame), FRAME_BYTES);
	fill(rte_pktmbuf_mtod(frame, uint8_t *), FRAME_BYTES, 6); // and back
	ethdev_send(workers[0], ethdev_port(devices, 1)->id, frame);
	frame = await_frame(1, 6);
	assert_non_null(frame);
	assert_int_equal(frame->port, port()->id);
	rte_pktmbuf_free(frame);
}

// What is sent into one file comes out of another.
static void test_pcap(void **state)
{
	(void)state;
	char folder[] = "/tmp/sluice-ports-XXXXXX", device[ETHDEV_DEVICE_BYTES];
	assert_non_null(mkdtemp(folder));
	snprintf(device, sizeof(device), "net_pcap0,rx_iface=lo,tx_pcap=%s/out", folder);
	struct ethdev_plan plan = rig_plan(device, 1);
	open_plan(&plan);
	for (uint8_t mark = 1; mark <= 3; mark++)
		ethdev_send(workers[0], port()->id, make_frame(workers[0], FRAME_BYTES, mark));
	ethdev_flush(workers[0]);
	ethdev_close(devices);

	snprintf(device, sizeof(device), "net_pcap1,rx_pcap=%s/out", folder);
	plan = rig_plan(device, 1);
	open_plan(&plan);
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	assert_int_equal(ethdev_receive(workers[0], frames, ETHDEV_BURST_MAX), 3);
	for (uint8_t i = 0; i < 3; i++) {
		const uint8_t *at = rte_pktmbuf_mtod(frames[i], const uint8_t *);
		assert_int_equal(rte_pktmbuf_data_len(frames[i]), FRAME_BYTES);
		assert_int_equal(at[100], i + 1);
	}
	ethdev_free(workers[0], frames, 3);
	snprintf(device, sizeof(device), "rm -r %s", folder);
	command(device);
}

static void test_null(void **state)
{
	(void)state;
	struct ethdev_plan plan = rig_plan("net_null0", 1);
	struct rte_mbuf *frames[ETHDEV_BURST_MAX];
	open_plan(&plan);
	assert_int_equal(ethdev_receive(workers[0], frames, 16), 16);
	for (int i = 0; i < 16; i++)
		ethdev_send(workers[0], port()->id, frames[i]);
	ethdev_flush(workers[0]);
	assert_int_equal(rig_counter(workers[0], ETHDEV_frames_out), 16);
}

// What is not for sluice goes to the kernel, and what the kernel sends leaves by the port,
// whichever worker it was; each class within its rate.
static void test_exception(void **state)
{
	(void)state;
	static uint8_t bytes[16384];
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_af_xdp3,iface=here", 2);
	snprintf(plan.ports[0].exception, ETHDEV_NAME_BYTES, "auto");
	open_plan(&plan);
	assert_true(port()->has_exception);
	assert_string_equal(port()->exception, "sluice0"); // the namespace has no other
	int out = watch("there"), tap = watch("sluice0");

	for (unsigned i = 0; i < 2; i++) {
		assert_true(send(out, bytes, fill(bytes, FRAME_BYTES, 3), 0) > 0);
		struct rte_mbuf *frame = await_frame(1, 3);
		assert_non_null(frame);
		ethdev_except(workers[i], frame, ETHDEV_CLASS_TCP);
		ethdev_flush(workers[i]);
		assert_int_equal(await_socket(tap, bytes), FRAME_BYTES);
		assert_int_equal(bytes[FRAME_BYTES - 1], 3);
		assert_int_equal(rig_counter(workers[i], ETHDEV_excepted), 1);
	}
	assert_true(send(tap, bytes, fill(bytes, FRAME_BYTES, 4), 0) > 0);
	assert_int_equal(await_socket(out, bytes), FRAME_BYTES);
	assert_int_equal(bytes[FRAME_BYTES - 1], 4);
	assert_true(rig_counter(workers[0], ETHDEV_from_exception) > 0); // and the kernel's own

	// A tenth of a second of 2,000 frames, shared by two workers.
	for (int i = 0; i < 150; i++) {
		struct rte_mbuf *frame = make_frame(workers[0], FRAME_BYTES, 6);
		frame->port = port()->id;
		ethdev_except(workers[0], frame, ETHDEV_CLASS_OTHER);
	}
	assert_int_equal(rig_counter(workers[0], ETHDEV_excepted), 1 + 100);
	assert_int_equal(rig_counter(workers[0], ETHDEV_except_limited), 50);
	close(out);
	close(tap);
}

// The kernel's interface has the address of the port, so that its stack takes the frames for its
// own.
static void test_exception_has_the_address(void **state)
{
	(void)state;
	char line[256];
	make_veth(1500);
	struct ethdev_plan plan = rig_plan("net_af_xdp4,iface=here", 1);
	snprintf(plan.ports[0].exception, ETHDEV_NAME_BYTES, "except7");
	open_plan(&plan);
	const uint8_t *mac = port()->mac;
	snprintf(line, sizeof(line), "ip link show except7 | grep -q %02x:%02x:%02x:%02x:%02x:%02x",
		mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	command(line);
}

static void test_what_cannot_be_opened(void **state)
{
	(void)state;
	static const struct {
		const char *device, *error;
		uint16_t mtu;
	} table[] = {
		{"net_af_packet8,iface=nowhere",
			"port net_af_packet8,iface=nowhere: there is no interface nowhere", 0},
		{"net_af_xdp8,iface=nowhere,start_queue=0",
			"port net_af_xdp8,iface=nowhere,start_queue=0: there is no interface "
			"nowhere",
			0},
		{"net_pcap8,rx_pcap=/nowhere",
			"port net_pcap8,rx_pcap=/nowhere: its driver refuses it", 0},
		{"what_is_this0", "port what_is_this0: no driver here knows such a device", 0},
		{"0000:ff:1f.7",
			"port 0000:ff:1f.7: cannot be opened: No such device (is it bound to "
			"vfio-pci?)",
			0},
		{"net_af_xdp9,iface=here",
			"port net_af_xdp9: takes an MTU of 68 to 3542; it is to be 9000", 9000},
	};
	make_veth(1500);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct ethdev_plan plan = rig_plan(table[i].device, 1);
		char error[ETHDEV_ERROR_BYTES] = "";
		plan.ports[0].mtu = table[i].mtu;
		print_message("%s\n", table[i].device);
		assert_true(ethdev_open(&plan, &devices, error) < 0);
		assert_string_equal(error, table[i].error);
	}
	devices = NULL;
}

static void test_an_exception_that_cannot_be_opened(void **state)
{
	(void)state;
	struct ethdev_plan plan = rig_plan("net_null8", 1);
	char error[ETHDEV_ERROR_BYTES];
	snprintf(plan.ports[0].exception, ETHDEV_NAME_BYTES, "a/b");
	assert_true(ethdev_open(&plan, &devices, error) < 0);
	assert_non_null(strstr(error, "exception interface a/b of port net_null8: "));
	assert_non_null(strstr(error, "(`exception: none` does without)"));
	devices = NULL;
}

static void test_one_device_twice(void **state)
{
	(void)state;
	struct ethdev_plan plan = rig_plan("net_null7", 1);
	char error[ETHDEV_ERROR_BYTES];
	plan.port_count = 2;
	plan.ports[1] = plan.ports[0];
	assert_int_equal(ethdev_open(&plan, &devices, error), -EEXIST);
	assert_string_equal(error, "port net_null7: is given twice");
	devices = NULL;
}

#define STORY(test) cmocka_unit_test_teardown(test, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(test_af_packet),
		STORY(test_af_packet_two_workers),
		STORY(test_af_packet_jumbo),
		STORY(test_af_xdp),
		STORY(test_af_xdp_two_workers),
		STORY(test_af_xdp_after_another),
		STORY(test_frames_missed),
		STORY(test_tap),
		STORY(test_tap_two_workers),
		STORY(test_the_port_has_no_buffer),
		STORY(test_memif),
		STORY(test_pcap),
		STORY(test_null),
		STORY(test_exception),
		STORY(test_exception_has_the_address),
		STORY(test_what_cannot_be_opened),
		STORY(test_an_exception_that_cannot_be_opened),
		STORY(test_one_device_twice),
	};
	if (unshare(CLONE_NEWNET) < 0) {
		perror("a network namespace: this test needs root");
		return 1;
	}
	if (system("ip link set lo up") != 0)
		return 1;
	rig_eal();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
