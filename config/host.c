// Host names, addresses, networks and servers.
//
// Names follow RFC 1123 2.1 (letters, digits, hyphens inside; 63 bytes a label, 253 in all), and
// underscores, which browsers send. A name whose last label is all digits must be an IPv4 address
// (WHATWG URL, "ends in a number"), so that 10.0.0.300 is an error and not a name. International
// names are written as they travel, xn--….

#include "config/host.h"

#include "config/config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#define HOST_BYTES_MAX 253
#define LABEL_BYTES_MAX 63

static bool is_label_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

// Copy `text` in lower case to `name`, HOST_BYTES_MAX + 1 bytes. Returns false if it is too long.
static bool lower(const char *text, size_t len, char *name)
{
	if (len > HOST_BYTES_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		name[i] = text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i];
	name[len] = '\0';
	return true;
}

// The length of `text` without one trailing dot, which says only that a name is complete.
static size_t undotted_len(const char *text)
{
	size_t len = strlen(text);
	return len > 0 && text[len - 1] == '.' ? len - 1 : len;
}

static bool is_ipv4(const char *name)
{
	struct in_addr address;
	return inet_pton(AF_INET, name, &address) == 1;
}

// What is wrong with a lowered host name, or NULL.
static const char *check_name(const char *name)
{
	const char *label = name;
	for (const char *c = name;; c++) {
		if (*c && *c != '.') {
			if (!is_label_char(*c))
				return "has other characters";
			continue;
		}
		if (c == label || c - label > LABEL_BYTES_MAX)
			return "has an empty or too long label";
		if (*label == '-' || c[-1] == '-')
			return "has a label that begins or ends with '-'";
		if (!*c)
			break;
		label = c + 1;
	}
	if (label[strspn(label, "0123456789")] == '\0' && !is_ipv4(name))
		return "is not an IPv4 address";
	return NULL;
}

static const char *store(const char *name, struct arena *arena, void *to)
{
	const char *copy = arena_copy(arena, name, strlen(name));
	memcpy(to, &copy, sizeof(copy));
	return NULL;
}

// "[::1]" in the shortest form.
static const char *read_bracketed(const char *text, struct arena *arena, void *to)
{
	char address[INET6_ADDRSTRLEN], shortest[INET6_ADDRSTRLEN + 2];
	struct in6_addr ip;
	size_t len = strlen(text) - 1; // of "[" and the address

	if (text[len] != ']' || len > sizeof(address))
		return "is not an IPv6 address in brackets";
	snprintf(address, sizeof(address), "%.*s", (int)len - 1, text + 1);
	if (inet_pton(AF_INET6, address, &ip) != 1)
		return "is not an IPv6 address in brackets";
	inet_ntop(AF_INET6, &ip, address, sizeof(address));
	snprintf(shortest, sizeof(shortest), "[%s]", address);
	return store(shortest, arena, to);
}

const char *host_read_name(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key;
	char name[HOST_BYTES_MAX + 1];
	if (!lower(text, undotted_len(text), name))
		return "is too long";
	const char *wrong = check_name(name);
	return wrong ? wrong : store(name, arena, to);
}

const char *host_read_pattern(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	if (text[0] == '[')
		return read_bracketed(text, arena, to);
	if (text[0] != '*')
		return host_read_name(key, text, arena, to);

	char pattern[2 + HOST_BYTES_MAX + 1] = "*.", *name = pattern + 2;
	if (text[1] != '.')
		return "has '*' for a part of a label";
	if (!lower(text + 2, undotted_len(text + 2), name))
		return "is too long";
	const char *wrong = check_name(name);
	if (!wrong && is_ipv4(name))
		wrong = "has '*' before an address";
	return wrong ? wrong : store(pattern, arena, to);
}

// Split "HOST:PORT" or "[IPV6]:PORT". `host` has HOST_BYTES_MAX + 1 bytes.
static const char *split_port(const char *text, char *host, bool *is_ipv6, uint16_t *port)
{
	const char *colon = strrchr(text, ':');
	*is_ipv6 = text[0] == '[';
	if (!colon || colon == text)
		return "has no port";
	size_t len = colon - text;
	if (*is_ipv6 && (len < 2 || text[len - 1] != ']'))
		return "has no port";
	const char *start = *is_ipv6 ? text + 1 : text;
	if (!lower(start, *is_ipv6 ? len - 2 : len, host))
		return "is too long";

	unsigned long number = 0;
	const char *c = colon + 1;
	for (; *c >= '0' && *c <= '9' && number <= UINT16_MAX; c++)
		number = number * 10 + (*c - '0');
	if (*c || number < 1 || number > UINT16_MAX)
		return "has no port from 1 to 65535";
	*port = number;
	return NULL;
}

// An address in either family as 16 bytes, IPv4 mapped.
static bool read_ip(const char *text, bool is_ipv6, uint8_t ip[16])
{
	memset(ip, 0, 16);
	if (is_ipv6)
		return inet_pton(AF_INET6, text, ip) == 1;
	ip[10] = ip[11] = 0xff;
	return inet_pton(AF_INET, text, ip + 12) == 1;
}

const char *host_read_address(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key;
	struct config_address address = {0};
	char host[HOST_BYTES_MAX + 1];
	bool is_ipv6;
	const char *wrong = split_port(text, host, &is_ipv6, &address.port);
	if (wrong)
		return wrong;
	if (!read_ip(host, is_ipv6, address.ip))
		return "is not an address";
	store(text, arena, &address.text);
	memcpy(to, &address, sizeof(address));
	return NULL;
}

const char *host_read_server(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key;
	struct config_server server = {0};
	char host[HOST_BYTES_MAX + 1];
	uint8_t ip[16];
	bool is_ipv6;
	const char *wrong = split_port(text, host, &is_ipv6, &server.port);
	if (!wrong && is_ipv6 && !read_ip(host, true, ip))
		wrong = "is not an IPv6 address in brackets";
	if (!wrong && !is_ipv6)
		wrong = check_name(host);
	if (wrong)
		return wrong;
	store(text, arena, &server.text);
	store(host, arena, &server.host);
	memcpy(to, &server, sizeof(server));
	return NULL;
}

static bool has_bits_beyond(const uint8_t ip[16], unsigned bits)
{
	for (unsigned i = bits; i < 128; i++)
		if (ip[i / 8] & (0x80 >> i % 8))
			return true;
	return false;
}

// The digits after '/', at most `max`; -1 if it is nothing like that.
static int read_bits(const char *text, int max)
{
	int bits = 0;
	const char *c = text;
	for (; *c >= '0' && *c <= '9' && bits <= max; c++)
		bits = bits * 10 + (*c - '0');
	return *c || c == text || bits > max ? -1 : bits;
}

// "ADDRESS/BITS", the bits counted from the start of a mapped address. Without '/' they stay.
//   what  it is not, if it is none
static const char *read_prefix(const char *text, const char *what, uint8_t ip[16], uint8_t *bits)
{
	char host[INET6_ADDRSTRLEN];
	size_t len = strcspn(text, "/");
	bool is_ipv6 = strchr(text, ':') != NULL;
	if (len >= sizeof(host))
		return what;
	memcpy(host, text, len);
	host[len] = '\0';
	if (!read_ip(host, is_ipv6, ip))
		return what;
	if (text[len] != '/')
		return NULL;
	int read = read_bits(text + len + 1, is_ipv6 ? 128 : 32);
	if (read < 0)
		return "has no length after '/'";
	*bits = (uint8_t)(is_ipv6 ? read : 96 + read);
	return NULL;
}

const char *host_read_network(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key;
	struct config_network network = {.bits = 128};
	const char *wrong = read_prefix(text, "is not a network", network.ip, &network.bits);
	if (wrong)
		return wrong;
	if (has_bits_beyond(network.ip, network.bits))
		return "has bits set beyond its length";
	store(text, arena, &network.text);
	memcpy(to, &network, sizeof(network));
	return NULL;
}

const char *host_read_interface(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key;
	struct config_interface interface = {0};
	const char *wrong = read_prefix(text, "is not an address", interface.ip, &interface.bits);
	if (wrong)
		return wrong;
	if (!strchr(text, '/'))
		return "has no length after '/'";
	store(text, arena, &interface.text);
	memcpy(to, &interface, sizeof(interface));
	return NULL;
}

const char *host_read_ip(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key;
	struct config_ip address = {0};
	if (!read_ip(text, strchr(text, ':') != NULL, address.ip))
		return "is not an address";
	store(text, arena, &address.text);
	memcpy(to, &address, sizeof(address));
	return NULL;
}
