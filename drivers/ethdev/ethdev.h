// Ethernet ports that this process drives itself, by DPDK: frames in, frames out, nothing more.
//
// A port is a NIC (PCI address) or any DPDK device (`net_af_packet0,iface=eth1`, net_af_xdp,
// net_tap, net_memif, net_ring, net_pcap). Capabilities are read at start: what a device can do it
// does, what it cannot is done here in software, so that above nobody asks.
//
//   ethdev_open()      probe, configure, size the pools, start            control, before the drop
//   ethdev_turn()      the clock, and what is due                         worker, first in a turn
//   ethdev_receive()   a burst of frames of all ports, in turns           worker
//   ethdev_take()      a buffer to write a frame into                     worker
//   ethdev_send()      frames leave at the next flush                     worker
//   ethdev_flush()     hand them to the devices                           worker, last in a turn
//
// Queues: each worker has one receive and one transmit queue of every port, where the port has as
// many. Where it has fewer, or no RSS, the workers that have one hand frames to the others over
// rings, by a hash of addresses and ports: software dispatch, whose result for a flow never
// changes. Where a port has fewer transmit queues than workers, frames go over rings likewise.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>

#define ETHDEV_PORTS_MAX 16u
#define ETHDEV_WORKERS_MAX 64u
#define ETHDEV_BURST_MAX 32u // frames of one ethdev_receive()
#define ETHDEV_ROOM_MIN 8u // what it must have room for: vector drivers give no fewer
#define ETHDEV_SEND_MAX 256u // frames of a port that wait for a worker's flush
#define ETHDEV_GROUPS_MAX 40u // multicast addresses of one port
#define ETHDEV_NAME_BYTES 16u // of a network interface (IFNAMSIZ)
#define ETHDEV_DEVICE_BYTES 256u // of a device string
#define ETHDEV_ERROR_BYTES 512u
#define ETHDEV_MTU_MIN 1280u // IPv6 needs it (RFC 8200 5)
#define ETHDEV_MTU_MAX 9000u

// What becomes of frames that are not for sluice: the name of the exception interface of a port, ""
// for none, or "auto": the first sluiceN that is free for a NIC or net_af_xdp, none for devices
// whose frames the kernel sees anyway and for those that no kernel is behind.
#define ETHDEV_EXCEPTION_AUTO "auto"

struct ethdev_port_plan {
	char device[ETHDEV_DEVICE_BYTES];
	uint16_t mtu; // 0: 1500
	char exception[ETHDEV_NAME_BYTES];
	unsigned group_count; // multicast MAC addresses that are to be received
	uint8_t groups[ETHDEV_GROUPS_MAX][6];
};

struct ethdev_plan {
	unsigned worker_count;
	uint32_t connections; // of all workers: sizes the queues, and these the pools
	bool has_hugepages; // else each buffer takes a page
	unsigned port_count;
	struct ethdev_port_plan ports[ETHDEV_PORTS_MAX];
};

// What a port is, once it is open.
struct ethdev_port {
	uint16_t id; // DPDK's
	uint16_t mtu;
	uint8_t mac[6];
	uint16_t rx_queues, tx_queues; // in use
	bool has_rss, is_dispatched; // by the NIC; in software
	bool checks_ip, checks_l4; // received checksums are verified by the device
	bool fills_ip, fills_l4; // it writes those of frames sent
	bool kernel_sees_frames; // so nothing needs to go to the exception interface
	bool has_exception;
	char name[64];
	char exception[ETHDEV_NAME_BYTES];
};

struct ethdev;
struct ethdev_worker; // what one worker uses of all ports

// Open all ports. EAL runs. Returns 0 or -errno with one line in `error`: which port, which limit,
// what is missing (pages needed and there, queues, memory).
int ethdev_open(
	const struct ethdev_plan *plan, struct ethdev **devices, char error[ETHDEV_ERROR_BYTES]);
void ethdev_close(struct ethdev *devices);

// How many, and what they are; the latter lives as long as `devices`. Any thread.
unsigned ethdev_port_count(const struct ethdev *devices);
const struct ethdev_port *ethdev_port(const struct ethdev *devices, unsigned port);

// Whether `device` is a PCI address. EAL wants to know these at its start.
bool ethdev_is_pci(const char *device);

// Memory for a plan: buffers, rings, descriptors. For the bill, before anything is opened.
uint64_t ethdev_bytes(const struct ethdev_plan *plan);

// What worker `index` uses; lives as long as `devices`.
struct ethdev_worker *ethdev_worker(struct ethdev *devices, unsigned index);

// Begin a turn. Returns the time: CLOCK_MONOTONIC in us, by the TSC where it is invariant (no
// system call), never less than before. Once a second worker 0 looks at links and the devices'
// counters here, and in each turn it passes on what the exception interfaces sent.
uint64_t ethdev_turn(struct ethdev_worker *w);

// Receive at most `max` frames, ETHDEV_ROOM_MIN to ETHDEV_BURST_MAX, from this worker's queues of
// all ports in turns and from its dispatch ring. frame->port is the DPDK id of its port; a VLAN tag
// is in the frame, whether or not the device strips it. Checksums: RTE_MBUF_F_RX_*_CKSUM_ in
// frame->ol_flags: GOOD and BAD where the device has verified them, UNKNOWN where it has not; NONE
// where the sender is a kernel on this machine that left the sum to hardware which there is not. A
// frame is one segment, whose memory may be freed by any worker. The caller owns the frames. Worker
// only, as all below.
unsigned ethdev_receive(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned max);

// A buffer with headroom for a frame of up to the largest MTU of the ports in one piece, empty.
//   is_control  may draw on the reserve: ARP, ND, ICMP, RST, SYN-ACK
// NULL when there is none, counted.
struct rte_mbuf *ethdev_take(struct ethdev_worker *w, bool is_control);

// Send a frame from `port` (the DPDK id) at the next flush; takes it. Its l2_len, l3_len, l4_len
// and the ol_flags for checksums are set as if the device filled them, with the pseudo-header sum
// in place of the sum; where the port does not fill them, they are computed here. What
// the device does not take waits for the next flush, ETHDEV_SEND_MAX frames of a port and worker;
// beyond, a frame is dropped, counted.
void ethdev_send(struct ethdev_worker *w, uint16_t port, struct rte_mbuf *frame);

// Hand what was sent to the devices, and take back what they have done with. Every turn, also an
// empty one.
void ethdev_flush(struct ethdev_worker *w);

// Free a burst. NULLs among them are skipped.
void ethdev_free(struct ethdev_worker *w, struct rte_mbuf **frames, unsigned count);

// Pass a frame that is not for sluice to the exception interface; takes it. Dropped and counted
// above the rate of its class, or where there is no such interface.
enum ethdev_class { ETHDEV_CLASS_ROUTING, ETHDEV_CLASS_TCP, ETHDEV_CLASS_OTHER };
void ethdev_except(struct ethdev_worker *w, struct rte_mbuf *frame, enum ethdev_class class);

// Whether the link of a port has changed since the last call (the first says what it is), and what
// it is now; as seen in the last second, without a call to the device. Worker 0 only.
bool ethdev_link_changed(struct ethdev_worker *w, unsigned port, bool *is_up);

#define ETHDEV_COUNTERS(X) \
	X(frames_in, "frames received") \
	X(frames_out, "frames sent") \
	X(bytes_in, "bytes received") \
	X(bytes_out, "bytes sent") \
	X(dispatched, "frames handed to the worker they belong to") \
	X(dispatch_full, "frames dropped: the ring of the worker they belong to is full") \
	X(transmit_full, "frames dropped: the device does not take them in time") \
	X(transmit_refused, "frames dropped: the device cannot send such") \
	X(buffer_none, "frames not sent: no buffer") \
	X(reserve_none, "control frames not sent: not even the reserve has a buffer") \
	X(device_missed, "frames the device dropped: nobody took them in time") \
	X(device_errors, "frames the device found broken") \
	X(device_no_buffer, "frames the device dropped: no buffer") \
	X(excepted, "frames passed to the exception interface") \
	X(except_limited, "frames dropped: the exception interface's rate for their class") \
	X(except_none, "frames dropped: not for sluice, and no exception interface") \
	X(from_exception, "frames taken from the exception interface")

enum ethdev_counter {
#define X(name, text) ETHDEV_##name,
	ETHDEV_COUNTERS(X)
#undef X
		ETHDEV_COUNTERS_COUNT,
};

// Of one worker; the device's own figures are those of worker 0, refreshed each second.
struct ethdev_stats {
	_Atomic uint64_t counters[ETHDEV_COUNTERS_COUNT]; // written: the worker; any may read
};
const struct ethdev_stats *ethdev_stats(const struct ethdev_worker *w);
const char *ethdev_counter_name(enum ethdev_counter counter);
const char *ethdev_counter_text(enum ethdev_counter counter);
