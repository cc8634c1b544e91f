// Checksums and clocks: what is computed here equals what hardware computes.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "drivers/ethdev/finish.h"
#include "tests/unit/ethdev/rig.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLAGS_V4 (RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_TCP_CKSUM)
#define FLAGS_V6 (RTE_MBUF_F_TX_IPV6 | RTE_MBUF_F_TX_TCP_CKSUM)

// A good segment, with its sums taken out as one asks a device to put them in.
static struct rte_mbuf *unsummed(const uint8_t *good, unsigned len, bool is_v6)
{
	struct rte_mbuf *frame = rig_frame(good, len);
	frame->l2_len = 14;
	frame->l3_len = is_v6 ? 40 : 20;
	frame->l4_len = 20;
	frame->ol_flags = is_v6 ? FLAGS_V6 : FLAGS_V4;
	struct rte_tcp_hdr *tcp =
		rte_pktmbuf_mtod_offset(frame, struct rte_tcp_hdr *, 14u + frame->l3_len);
	void *ip = rte_pktmbuf_mtod_offset(frame, void *, 14);
	if (!is_v6)
		((struct rte_ipv4_hdr *)ip)->hdr_checksum = 0;
	tcp->cksum = is_v6 ? rte_ipv6_phdr_cksum(ip, 0) : rte_ipv4_phdr_cksum(ip, 0);
	return frame;
}

static void test_sums_in_software(void **state)
{
	(void)state;
	const struct inside_port bare = {0};
	for (int is_v6 = 0; is_v6 < 2; is_v6++)
		for (unsigned payload = 0; payload < 1400; payload += 1 + payload / 8) {
			uint8_t good[2048];
			unsigned len = is_v6 ? rig_segment_v6(good, 77, payload)
					     : rig_segment(good, 77, payload);
			struct rte_mbuf *frame = unsummed(good, len, is_v6);
			assert_memory_not_equal(rte_pktmbuf_mtod(frame, void *), good, len);
			finish_sent(&bare, frame);
			assert_memory_equal(rte_pktmbuf_mtod(frame, void *), good, len);
			assert_int_equal(
				frame->ol_flags & (RTE_MBUF_F_TX_IP_CKSUM | RTE_MBUF_F_TX_L4_MASK),
				0);
			rte_pktmbuf_free(frame);
		}
}

// Where the device fills them, nothing is touched.
static void test_sums_left_to_the_device(void **state)
{
	(void)state;
	const struct inside_port able = {.shown = {.fills_ip = true, .fills_l4 = true}};
	uint8_t good[2048], asked[2048];
	unsigned len = rig_segment(good, 77, 100);
	struct rte_mbuf *frame = unsummed(good, len, false);
	memcpy(asked, rte_pktmbuf_mtod(frame, void *), len);
	finish_sent(&able, frame);
	assert_memory_equal(rte_pktmbuf_mtod(frame, void *), asked, len);
	assert_int_equal(frame->ol_flags, FLAGS_V4);
	rte_pktmbuf_free(frame);
}

// A sum of UDP that comes to zero is written as ones.
static void test_a_zero_sum_of_udp(void **state)
{
	(void)state;
	const struct inside_port bare = {0};
	uint8_t bytes[14 + 20 + 8 + 2] = {0};
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(bytes + 34);
	udp->src_port = 0xffff; // all there is to sum
	struct rte_mbuf *frame = rig_frame(bytes, sizeof(bytes));
	frame->l2_len = 14;
	frame->l3_len = 20;
	frame->ol_flags = RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_UDP_CKSUM;
	finish_sent(&bare, frame);
	udp = rte_pktmbuf_mtod_offset(frame, struct rte_udp_hdr *, 34);
	assert_int_equal(udp->dgram_cksum, 0xffff);
	rte_pktmbuf_free(frame);
}

// From a kernel on this machine: the sum is that of the pseudo header, and is taken for good. A
// whole sum is left to be verified, and a wrong one too.
static void test_sums_that_a_kernel_left(void **state)
{
	(void)state;
	const struct inside_port veth = {.is_partial = true}, nic = {0};
	for (int is_v6 = 0; is_v6 < 2; is_v6++)
		for (unsigned payload = 0; payload < 100; payload++) {
			uint8_t good[2048];
			unsigned len = is_v6 ? rig_segment_v6(good, 9, payload)
					     : rig_segment(good, 9, payload);
			const unsigned sums = is_v6 ? 14 : 14 + 20; // IPv4's own is not there
			struct rte_mbuf *frame = unsummed(good, len, is_v6);
			frame->ol_flags = 0;
			assert_true(finish_received(&nic, frame));
			assert_int_equal(frame->ol_flags, 0);
			assert_true(finish_received(&veth, frame));
			assert_int_equal(frame->ol_flags, RTE_MBUF_F_RX_L4_CKSUM_NONE);
			finish_excepted(frame); // for another kernel, it is whole again
			const uint8_t *at = rte_pktmbuf_mtod(frame, const uint8_t *);
			assert_memory_equal(at + sums, good + sums, len - sums);
			rte_pktmbuf_free(frame);

			frame = rig_frame(good, len);
			assert_true(finish_received(&veth, frame));
			assert_int_equal(frame->ol_flags, 0);
			rte_pktmbuf_free(frame);

			good[len - 1 - payload - 3] ^= 1; // in the sum
			frame = rig_frame(good, len);
			assert_true(finish_received(&veth, frame));
			assert_int_equal(frame->ol_flags, 0);
			rte_pktmbuf_free(frame);
		}
}

static void test_short_frames_have_no_sums(void **state)
{
	(void)state;
	const struct inside_port veth = {.is_partial = true};
	uint8_t good[2048];
	for (int is_v6 = 0; is_v6 < 2; is_v6++) {
		unsigned len = is_v6 ? rig_segment_v6(good, 9, 0) : rig_segment(good, 9, 0);
		for (unsigned cut = 1; cut < len; cut++) {
			struct rte_mbuf *frame = unsummed(good, len, is_v6);
			frame->ol_flags = 0;
			rte_pktmbuf_trim(frame, (uint16_t)(len - cut));
			assert_true(finish_received(&veth, frame));
			assert_int_equal(frame->ol_flags, 0);
			rte_pktmbuf_free(frame);
		}
	}
}

static uint64_t kernel_says;

static uint64_t kernel(void)
{
	return kernel_says;
}

#define HZ UINT64_C(2500000000)

// A TSC that is right, then one that drifts: a check a second, and never back.
static void test_time_follows_the_kernel(void **state)
{
	(void)state;
	struct ticks ticks;
	ticks_set(&ticks, 1000, 5000000, HZ);
	kernel_says = 0; // not asked
	assert_int_equal(ticks_at(&ticks, 1000, kernel), 5000000);
	assert_in_range(ticks_at(&ticks, 1000 + HZ / 2, kernel), 5499999, 5500000);
	kernel_says = 6000200; // 200 us a second more than was thought
	assert_int_equal(ticks_at(&ticks, 1000 + HZ, kernel), 6000200);
	uint64_t half = ticks_at(&ticks, 1000 + HZ + HZ / 2, kernel);
	assert_in_range(half, 6500299, 6500300);
	kernel_says = 6999900; // and less: time stands until the kernel is there
	uint64_t before = ticks_at(&ticks, 1000 + 2 * HZ - HZ / 1000, kernel);
	uint64_t at = ticks_at(&ticks, 1000 + 2 * HZ, kernel);
	assert_true(at >= before);
	assert_false(ticks.is_kernel);
	kernel_says = 8000000;
	assert_int_equal(ticks_at(&ticks, 1000 + 3 * HZ + HZ / 1000, kernel), 8000000);
}

// A TSC that jumps, stands or changes its rate is given up.
static void test_a_tsc_of_no_use(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t tsc, us;
	} table[] = {
		{"a rate a fifth off", HZ, 1200000},
		{"back", UINT64_C(0) - 500, 1000000},
		{"a sleep that it slept too", HZ, 60000000},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct ticks ticks;
		ticks_set(&ticks, 0, 0, HZ);
		kernel_says = table[i].us;
		print_message("%s\n", table[i].name);
		assert_int_equal(ticks_at(&ticks, table[i].tsc, kernel), kernel_says);
		assert_true(ticks.is_kernel);
		kernel_says += 3;
		assert_int_equal(ticks_at(&ticks, table[i].tsc, kernel), kernel_says);
		kernel_says -= 2;
		assert_int_equal(ticks_at(&ticks, table[i].tsc, kernel), kernel_says + 2);
	}
}

static void test_time_here(void **state)
{
	(void)state;
	for (int may_use_tsc = 0; may_use_tsc < 2; may_use_tsc++) {
		struct ticks ticks;
		struct timespec now;
		ticks_init(&ticks, may_use_tsc && ticks_is_invariant());
		for (int i = 0; i < 1000; i++) {
			uint64_t us = ticks_now_us(&ticks);
			clock_gettime(CLOCK_MONOTONIC, &now);
			int64_t kernel_us = now.tv_sec * 1000000 + now.tv_nsec / 1000;
			assert_true(llabs((int64_t)us - kernel_us) < 100000);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sums_in_software),
		cmocka_unit_test(test_sums_left_to_the_device),
		cmocka_unit_test(test_a_zero_sum_of_udp),
		cmocka_unit_test(test_sums_that_a_kernel_left),
		cmocka_unit_test(test_short_frames_have_no_sums),
		cmocka_unit_test(test_time_follows_the_kernel),
		cmocka_unit_test(test_a_tsc_of_no_use),
		cmocka_unit_test(test_time_here),
	};
	rig_eal();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
