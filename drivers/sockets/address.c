// Everything above the sockets speaks IPv6; here IPv4 is mapped in and out, so that the kernel gets
// real AF_INET sockets and no listener depends on bindv6only.

#include "drivers/sockets/address.h"

#include "drivers/ip.h"

socklen_t address_to_kernel(const struct stream_address *address, struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (ip_is_v4(address->ip)) {
		struct sockaddr_in *in4 = (struct sockaddr_in *)out;
		in4->sin_family = AF_INET;
		in4->sin_port = htons(address->port);
		memcpy(&in4->sin_addr, address->ip + IP_MAPPED_BYTES, 4);
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
		ip_map(address->ip, &in4->sin_addr);
		address->port = ntohs(in4->sin_port);
	} else if (in->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)in;
		memcpy(address->ip, &in6->sin6_addr, sizeof(address->ip));
		address->port = ntohs(in6->sin6_port);
	}
}
