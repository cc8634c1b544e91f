// Whose request it is: that of the connection, or, if that is one of the trusted proxies, of whom
// these name. Any thread.
#pragma once

#include <stdint.h>

#include "dataplane/http/head.h"
#include "dataplane/snapshot.h"

#define PROXIED_HOPS_MAX 16u // proxies of ours, one behind the other; who names more is one of them

// Find the visitor's address.
//   peer  whose connection it is, or who they are by the PROXY protocol
//   ip    the last address, of X-Forwarded-For and then the connection, that is no trusted proxy;
//         if all are, or what comes before cannot be read, the first that is
// Pure.
void proxied_source(const struct snapshot *snapshot, const struct http_head *head,
	const uint8_t peer[16], uint8_t ip[16]);
