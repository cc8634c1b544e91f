// Everything above the sockets speaks IPv6; here IPv4 is mapped in and out, so that the kernel gets
// real AF_INET sockets and no listener depends on bindv6only.

#include "drivers/sockets/address.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool address_is_ipv4(const struct stream_address *address)
{
	return memcmp(address->ip, mapped, sizeof(mapped)) == 0;
}

bool address_is_any(const struct stream_address *address)
{
	static const uint8_t zero[16];
	size_t skip = address_is_ipv4(address) ? sizeof(mapped) : 0;
	return memcmp(address->ip + skip, zero, sizeof(zero) - skip) == 0;
}

void address_set_ipv4(struct stream_address *address, const void *ip)
{
	memcpy(address->ip, mapped, sizeof(mapped));
	memcpy(address->ip + sizeof(mapped), ip, 4);
}

socklen_t address_to_kernel(const struct stream_address *address, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (address_is_ipv4(address)) {
		struct sockaddr_in *in4 = (struct sockaddr_in *)out;
		in4->sin_family = AF_INET;
		in4->sin_port = htons(address->port);
		memcpy(&in4->sin_addr, address->ip + sizeof(mapped), 4);
		return sizeof(*in4);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(address->port);
	memcpy(&in6->sin6_addr, address->ip, sizeof(address->ip));
	return sizeof(*in6);
}

void address_from_kernel(const struct sockaddr_storage *in, struct stream_address *address)
{
	memset(address, 0, sizeof(*address));
	if (in->ss_family == AF_INET) {
		const struct sockaddr_in *in4 = (const struct sockaddr_in *)in;
		address_set_ipv4(address, &in4->sin_addr);
		address->port = ntohs(in4->sin_port);
	} else if (in->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)in;
		memcpy(address->ip, &in6->sin6_addr, sizeof(address->ip));
		address->port = ntohs(in6->sin6_port);
	}
}
