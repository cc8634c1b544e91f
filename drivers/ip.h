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
