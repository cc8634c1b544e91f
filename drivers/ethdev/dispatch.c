// The hash of software dispatch. Keyed, so that nobody outside can choose a worker; the same for
// all frames of a flow, in one direction, which is all that ends here.
//
// Frames are looked at, not judged: one that is too short goes to worker 0, which drops it.

#include "drivers/ethdev/dispatch.h"

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include <xxhash.h>

#define VLAN_TAGS_MAX 2u
#define PORT_BYTES 4u // both

static unsigned worker_of(const void *key, size_t bytes, uint64_t seed, unsigned workers)
{
	uint32_t hash = (uint32_t)(XXH3_64bits_withSeed(key, bytes, seed) >> 32);
	return (unsigned)(((uint64_t)hash * workers) >> 32); // no division
}

static unsigned owner_v4(const uint8_t *ip, size_t len, uint64_t seed, unsigned workers)
{
	uint8_t key[8 + PORT_BYTES];
	if (len < sizeof(struct rte_ipv4_hdr) || ip[9] != IPPROTO_TCP)
		return 0;
	memcpy(key, ip + 12, 8);
	bool is_fragment = ((ip[6] << 8 | ip[7]) & 0x3fff) != 0;
	size_t header = (ip[0] & 15) * 4u;
	if (is_fragment || header + PORT_BYTES > len)
		return worker_of(key, 8, seed, workers);
	memcpy(key + 8, ip + header, PORT_BYTES);
	return worker_of(key, sizeof(key), seed, workers);
}

static bool is_extension(uint8_t next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING || next == IPPROTO_FRAGMENT ||
	       next == IPPROTO_DSTOPTS;
}

static unsigned owner_v6(const uint8_t *ip, size_t len, uint64_t seed, unsigned workers)
{
	const size_t header = sizeof(struct rte_ipv6_hdr);
	if (len < header + PORT_BYTES)
		return 0;
	// Addresses are the last of the header, and ports follow.
	if (ip[6] == IPPROTO_TCP)
		return worker_of(ip + 8, 32 + PORT_BYTES, seed, workers);
	return is_extension(ip[6]) ? worker_of(ip + 8, 32, seed, workers) : 0;
}

unsigned dispatch_owner(const struct rte_mbuf *frame, uint64_t seed, unsigned workers)
{
	const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
	size_t len = rte_pktmbuf_data_len(frame), at = 2 * RTE_ETHER_ADDR_LEN;
	for (unsigned tags = 0; at + 2 <= len; tags++, at += 4) {
		unsigned type = (unsigned)bytes[at] << 8 | bytes[at + 1];
		if (type == RTE_ETHER_TYPE_IPV4)
			return owner_v4(bytes + at + 2, len - at - 2, seed, workers);
		if (type == RTE_ETHER_TYPE_IPV6)
			return owner_v6(bytes + at + 2, len - at - 2, seed, workers);
		bool is_tag = type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ;
		if (!is_tag || tags == VLAN_TAGS_MAX)
			return 0;
	}
	return 0;
}
