// Names of servers as addresses, asked for one at a time, without waiting (evdns).
//
// Control thread only.
#pragma once

#include <event2/event.h>

#include "controlplane/link/link_conn.h"

struct link_names {
	struct event_base *base;
	struct evdns_base *dns; // made for the first name that is no address
	struct evdns_getaddrinfo_request *request; // under way, or NULL
	// The answer; `error` NULL: it was found.
	void (*found)(void *context, const struct link_conn_address *address, const char *error);
	void *context;
	uint32_t asked; // so that a name with several addresses is tried at each
	uint16_t port;
};

// Nothing is asked yet, and no resolver read. `found` must not end the names.
void link_names_init(struct link_names *names, struct event_base *base,
	void (*found)(void *context, const struct link_conn_address *address, const char *error),
	void *context);
// What was cancelled is freed when the loop runs next.
void link_names_fini(struct link_names *names);

// Find an address of `host`, itself if it is one. `found` may be called before this returns.
void link_names_ask(struct link_names *names, const char *host, uint16_t port);

// Ask no more: `found` is not called.
void link_names_cancel(struct link_names *names);
