// Where the origins are: an immutable table, built by control from the configuration and what names
// resolve to, published in the snapshot, and freed when no worker can hold it any more. A name that
// resolves anew makes a new table.
#pragma once

#include <stdint.h>

#include "dataplane/tls/tls.h"
#include "drivers/span.h"
#include "drivers/stream.h"

enum origin_table_balance {
	ORIGIN_TABLE_LEAST, // the server with the fewest exchanges of this worker
	ORIGIN_TABLE_SESSION, // a session stays with its server; without a session: the fewest
};

// One address. A server whose name resolves to three stands here three times, so that each has its
// own health and its own connections; one whose name does not resolve does not stand here.
struct origin_table_server {
	uint64_t id; // a hash of the name, the address and, with TLS, of what its certificate is
		     // verified by: the same in every generation, so that connections and health
		     // outlive one; never 0
	struct span name; // as configured
	struct stream_address address;
	const struct tls_target *tls; // NULL: plain
};

// How an origin's servers are treated, from its configuration.
struct origin_table_limits {
	uint32_t connect_us; // for one connection to open; then the next server is tried
	uint32_t answer_us; // silence before an answer's head, or within its body
	uint32_t idle_us; // an unused connection is kept; shorter than the servers keep it
	uint32_t idle_max; // unused connections kept to one server, at most the plan's; 0: none
	uint32_t faults_max; // bad answers in a row that set a server aside
	uint32_t aside_us; // for how long, the first time
};

struct origin_table_origin {
	uint64_t id; // a hash of the site's name: the same in every generation
	struct span name; // of the site
	uint8_t balance; // enum origin_table_balance
	uint32_t server_first; // in `servers`
	uint32_t server_count; // 0: every request gets 502
	const struct origin_table_limits *limits; // NULL: those of the plan
};

struct origin_table {
	uint64_t generation; // grows with each table
	uint32_t origin_count;
	uint32_t server_count;
	const struct origin_table_origin *origins; // gate_site.origin is an index into it
	const struct origin_table_server *servers; // two origins may share one
};
