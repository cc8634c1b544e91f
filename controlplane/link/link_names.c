// A request that was given up still answers once, from the loop, with EVUTIL_EAI_CANCEL; that is
// heard by nobody, and may come after the end.

#include "controlplane/link/link_names.h"

#include <event2/dns.h>
#include <event2/util.h>

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

void link_names_init(struct link_names *names, struct event_base *base,
	void (*found)(void *context, const struct link_conn_address *address, const char *error),
	void *context)
{
	*names = (struct link_names){.base = base, .found = found, .context = context};
}

void link_names_fini(struct link_names *names)
{
	if (!names->dns)
		return;
	link_names_cancel(names);
	evdns_base_free(names->dns, 1);
}

void link_names_cancel(struct link_names *names)
{
	if (names->request)
		evdns_getaddrinfo_cancel(names->request);
	names->request = NULL;
}

static void write_address(const struct evutil_addrinfo *info, char *host)
{
	const void *ip = info->ai_family == AF_INET
				 ? (void *)&((struct sockaddr_in *)info->ai_addr)->sin_addr
				 : (void *)&((struct sockaddr_in6 *)info->ai_addr)->sin6_addr;
	inet_ntop(info->ai_family, ip, host, LINK_CONN_HOST_BYTES);
}

static void on_answer(int error, struct evutil_addrinfo *info, void *context)
{
	if (error == EVUTIL_EAI_CANCEL)
		return; // the names may be no more
	struct link_names *names = context;
	struct link_conn_address address = {.port = names->port};
	names->request = NULL;
	uint32_t count = 0, index = 0;
	for (struct evutil_addrinfo *one = info; one; one = one->ai_next)
		count++;
	const struct evutil_addrinfo *chosen = info;
	for (; count > 0 && index < names->asked % count; index++)
		chosen = chosen->ai_next;
	if (chosen)
		write_address(chosen, address.host);
	if (info)
		evutil_freeaddrinfo(info);
	names->asked++;
	names->found(names->context, &address,
		address.host[0] ? NULL
		: error         ? evutil_gai_strerror(error)
				: "no address");
}

// No resolver configured is no failure: names of the hosts file still resolve.
static bool has_dns(struct link_names *names)
{
	if (!names->dns)
		names->dns = evdns_base_new(names->base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
	if (!names->dns)
		names->dns = evdns_base_new(names->base, 0);
	if (!names->dns)
		return false;
	evdns_base_clear_host_addresses(names->dns);
	evdns_base_load_hosts(names->dns, "/etc/hosts");
	return true;
}

static bool is_address(const char *host)
{
	uint8_t ip[16];
	return inet_pton(AF_INET, host, ip) == 1 || inet_pton(AF_INET6, host, ip) == 1;
}

void link_names_ask(struct link_names *names, const char *host, uint16_t port)
{
	assert(!names->request);
	struct link_conn_address address = {.port = port};
	names->port = port;
	if (is_address(host)) {
		snprintf(address.host, sizeof(address.host), "%s", host);
		names->found(names->context, &address, NULL);
		return;
	}
	if (!has_dns(names)) {
		names->found(names->context, &address, "no memory");
		return;
	}
	struct evutil_addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	// May answer before it returns, with no request to remember then.
	struct evdns_getaddrinfo_request *request =
		evdns_getaddrinfo(names->dns, host, NULL, &hints, on_answer, names);
	if (request)
		names->request = request;
}
