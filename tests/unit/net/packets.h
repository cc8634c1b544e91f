// Frames as somebody else would write them: byte by byte, with sums added word by word.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/span.h"

#define PACKET_MAX 10000u

// The naive twin of checksum.h: the checksum of bytes as a number, big-endian.
uint16_t packets_checksum(const uint8_t *bytes, size_t len);

// What a frame is made of. Zero means the usual.
struct packets_frame {
	const char *to_mac, *from_mac; // "02:00:00:00:00:01"; NULL: ours, the peer's
	const char *from, *to; // addresses in text; NULL: the peer's, ours
	bool is_ipv6;
	uint16_t vlan; // with 0x1000: tagged with VLAN 0
	uint16_t type; // of Ethernet
	uint8_t protocol; // TCP
	uint8_t hop_limit; // 64
	uint16_t fragment; // IPv4 flags and offset
	unsigned option_words; // of IPv4, each of four no-operations
	const char
		*extensions; // of IPv6, the first of kind `extension`; what follows is `protocol`
	unsigned extension_bytes;
	uint8_t extension;
	unsigned cut, padding; // bytes off the end; added there
	unsigned length_more; // added to the length that the IP header tells
	uint16_t sum_ip, sum_l4; // added to the checksum: wrong
	const char *l4; // the payload of IP; its checksum is filled in
	unsigned l4_bytes;
};

// The addresses that tests use: ours and the peer's.
#define OUR_MAC "02:00:00:00:00:01"
#define PEER_MAC "02:00:00:00:00:02"
#define OUR_IPV4 "192.0.2.1"
#define PEER_IPV4 "198.51.100.7"
#define OUR_IPV6 "2001:db8::1"
#define PEER_IPV6 "2001:db8:1::7"

// Build it. The bytes live until the next call.
struct span packets_build(const struct packets_frame *frame);

void packets_mac(uint8_t mac[6], const char *text);
void packets_ip(uint8_t ip[16], const char *text); // IPv4 mapped

// A TCP header without options, 20 bytes, and `len` bytes of payload 'x'. Lives until the next
// call.
const char *packets_segment(
	uint16_t from, uint16_t to, uint32_t seq, uint32_t ack, uint8_t flags, unsigned len);
