// Values that name hosts and addresses. Each function has the shape that value.c's table wants:
// NULL, or what is wrong with `text`.
#pragma once

#include "config/arena.h"
#include "config/key.h"

// A host name, "*." and a host name, an IPv4 address, or an IPv6 address in brackets, as a
// request's Host may have it: stored in lower case, without a trailing dot, IPv6 in its shortest
// form.
const char *host_read_pattern(
	const struct key *key, const char *text, struct arena *arena, void *to);

// A host name or IPv4 address.
const char *host_read_name(const struct key *key, const char *text, struct arena *arena, void *to);

// struct config_address, config_network, config_interface, config_ip and config_server.
const char *host_read_address(
	const struct key *key, const char *text, struct arena *arena, void *to);
const char *host_read_network(
	const struct key *key, const char *text, struct arena *arena, void *to);
const char *host_read_interface(
	const struct key *key, const char *text, struct arena *arena, void *to);
const char *host_read_ip(const struct key *key, const char *text, struct arena *arena, void *to);
const char *host_read_server(
	const struct key *key, const char *text, struct arena *arena, void *to);
