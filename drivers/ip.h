// IP addresses of 16 bytes, as the whole product keeps them: IPv6, or IPv4 mapped into it (RFC 4291
// 2.5.5.2).
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define IP_MAPPED_BYTES 12u // before the four of an IPv4 address

// Whether it is an IPv4 address, mapped.
static inline bool ip_is_v4(const uint8_t ip[16])
{
	static const uint8_t mapped[IP_MAPPED_BYTES] = {[10] = 0xff, [11] = 0xff};
	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

// Store the four bytes of an IPv4 address, as they lie in a packet, mapped.
static inline void ip_map(uint8_t ip[16], const void *v4)
{
	memset(ip, 0, 10);
	memset(ip + 10, 0xff, 2);
	memcpy(ip + IP_MAPPED_BYTES, v4, 4);
}

// Whether it stands for all addresses of its family: 0.0.0.0 or ::.
static inline bool ip_is_any(const uint8_t ip[16])
{
	static const uint8_t zeros[16];
	size_t skip = ip_is_v4(ip) ? IP_MAPPED_BYTES : 0;
	return memcmp(ip + skip, zeros, sizeof(zeros) - skip) == 0;
}

// The group in which the neighbours of an IPv6 address ask for it (RFC 4291 2.7.1).
static inline void ip_solicited(uint8_t group[16], const uint8_t ip[16])
{
	static const uint8_t all[13] = {0xff, 0x02, [11] = 0x01, [12] = 0xff};
	memcpy(group, all, sizeof(all));
	memcpy(group + sizeof(all), ip + sizeof(all), 3);
}

// The Ethernet address of an IPv6 group (RFC 2464 7).
static inline void ip_group_mac(uint8_t mac[6], const uint8_t group[16])
{
	memset(mac, 0x33, 2);
	memcpy(mac + 2, group + 12, 4);
}
