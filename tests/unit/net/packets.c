// Nothing here is shared with what is tested: not a sum, not a header.

#include "tests/unit/net/packets.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

uint16_t packets_checksum(const uint8_t *bytes, size_t len)
{
	uint32_t sum = 0;
	for (size_t i = 0; i < len; i++) {
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
		sum = (sum & 0xffff) + (sum >> 16);
	}
	return (uint16_t)~sum;
}

void packets_mac(uint8_t mac[6], const char *text)
{
	int count = sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3,
		mac + 4, mac + 5);
	assert(count == 6);
}

void packets_ip(uint8_t ip[16], const char *text)
{
	char mapped[64];
	snprintf(mapped, sizeof(mapped), "%s%s", strchr(text, ':') ? "" : "::ffff:", text);
	int is_good = inet_pton(AF_INET6, mapped, ip);
	assert(is_good == 1);
}

static void put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static size_t put_ethernet(uint8_t *at, const struct packets_frame *f)
{
	packets_mac(at, f->to_mac ? f->to_mac : OUR_MAC);
	packets_mac(at + 6, f->from_mac ? f->from_mac : PEER_MAC);
	size_t len = 12;
	if (f->vlan) {
		put16(at + 12, 0x8100);
		put16(at + 14, f->vlan & 0xefff);
		len = 16;
	}
	put16(at + len, f->type ? f->type : f->is_ipv6 ? 0x86dd : 0x0800);
	return len + 2;
}

static size_t put_ipv4(uint8_t *at, const struct packets_frame *f)
{
	uint8_t from[16], to[16];
	packets_ip(from, f->from ? f->from : PEER_IPV4);
	packets_ip(to, f->to ? f->to : OUR_IPV4);
	size_t head = 20 + 4 * (size_t)f->option_words;
	memset(at, 1, head);
	at[0] = (uint8_t)(0x40 | head / 4);
	at[1] = 0;
	put16(at + 2, (unsigned)(head + f->l4_bytes + f->length_more));
	put16(at + 4, 0x1234);
	put16(at + 6, f->fragment);
	at[8] = f->hop_limit ? f->hop_limit : 64;
	at[9] = f->protocol ? f->protocol : 6;
	put16(at + 10, 0);
	memcpy(at + 12, from + 12, 4);
	memcpy(at + 16, to + 12, 4);
	put16(at + 10, packets_checksum(at, head) + f->sum_ip);
	return head;
}

static size_t put_ipv6(uint8_t *at, const struct packets_frame *f)
{
	memset(at, 0, 8);
	at[0] = 0x60;
	put16(at + 4, f->extension_bytes + f->l4_bytes + f->length_more);
	at[6] = f->extension_bytes ? f->extension : f->protocol ? f->protocol : 6;
	at[7] = f->hop_limit ? f->hop_limit : 64;
	packets_ip(at + 8, f->from ? f->from : PEER_IPV6);
	packets_ip(at + 24, f->to ? f->to : OUR_IPV6);
	if (f->extension_bytes)
		memcpy(at + 40, f->extensions, f->extension_bytes);
	return 40 + f->extension_bytes;
}

// Of TCP at byte 16, of ICMP at 2; of what is neither there is none.
static void fill_checksum(uint8_t *l4, const struct packets_frame *f)
{
	unsigned protocol = f->protocol ? f->protocol : 6, at = protocol == 6 ? 16 : 2;
	if ((protocol != 6 && protocol != 1 && protocol != 58) || f->l4_bytes < at + 2)
		return;
	static uint8_t bytes[PACKET_MAX];
	size_t len = 0;
	memset(bytes, 0, 40);
	if (protocol != 1) { // addresses, length and protocol as IPv6 has them sum up alike
		packets_ip(bytes, f->from ? f->from : f->is_ipv6 ? PEER_IPV6 : PEER_IPV4);
		packets_ip(bytes + 16, f->to ? f->to : f->is_ipv6 ? OUR_IPV6 : OUR_IPV4);
		if (!f->is_ipv6) {
			memset(bytes, 0, 12);
			memset(bytes + 16, 0, 12);
		}
		put16(bytes + 34, f->l4_bytes);
		bytes[39] = (uint8_t)protocol;
		len = 40;
	}
	memset(l4 + at, 0, 2);
	memcpy(bytes + len, l4, f->l4_bytes);
	put16(l4 + at, packets_checksum(bytes, len + f->l4_bytes) + f->sum_l4);
}

struct span packets_build(const struct packets_frame *f)
{
	static uint8_t bytes[PACKET_MAX];
	assert(f->l4_bytes + f->padding < PACKET_MAX - 400);
	size_t len = put_ethernet(bytes, f);
	if (!f->type)
		len += f->is_ipv6 ? put_ipv6(bytes + len, f) : put_ipv4(bytes + len, f);
	if (f->l4_bytes)
		memcpy(bytes + len, f->l4, f->l4_bytes);
	if (!f->type)
		fill_checksum(bytes + len, f);
	len += f->l4_bytes;
	memset(bytes + len, 0xaa, f->padding);
	return (struct span){(char *)bytes, len + f->padding - f->cut};
}

const char *packets_segment(
	uint16_t from, uint16_t to, uint32_t seq, uint32_t ack, uint8_t flags, unsigned len)
{
	static uint8_t bytes[PACKET_MAX];
	memset(bytes, 0, 20);
	put16(bytes, from);
	put16(bytes + 2, to);
	put16(bytes + 4, seq >> 16);
	put16(bytes + 6, seq);
	put16(bytes + 8, ack >> 16);
	put16(bytes + 10, ack);
	bytes[12] = 0x50;
	bytes[13] = flags;
	put16(bytes + 14, 1000);
	memset(bytes + 20, 'x', len);
	return (char *)bytes;
}
