// Where the origins' servers are: names become addresses, again every 30 s.
//
// libevent's evdns does the asking, so nothing here waits. Addresses that were found stay in force
// while a name does not resolve (a resolver that is down must not take the origins with it).
#pragma once

#include <event2/event.h>

#include "config/config.h"
#include "controlplane/trusts.h"
#include "dataplane/origin/origin_table.h"

#define RESOLVE_EVERY_S 30
#define RESOLVE_ADDRESSES_MAX 16u // of one name; more are left out

struct resolve;

// `changed` is called, never from within another call here, when a new table would differ from the
// last one made. Returns 0 or -errno.
int resolve_create(struct event_base *base, void (*changed)(void *context), void *context,
	struct resolve **resolve);
void resolve_destroy(struct resolve *resolve); // accepts NULL

// Take the servers of a configuration, which must live until the next call, and take over its
// trusts. Addresses known by name are kept; literal ones are there at once.
void resolve_set_config(
	struct resolve *resolve, const struct config *config, struct trusts *trusts);

// A table of what is known now, one origin a site, in the order of the configuration. NULL when
// memory is short. The caller's: resolve_free_table().
struct origin_table *resolve_table(struct resolve *resolve);
void resolve_free_table(const struct origin_table *table);

// Servers whose name has no address now.
unsigned resolve_missing(const struct resolve *resolve);
