// The request's head as the origin gets it.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dataplane/origin/exchange.h"

// What a head may grow by: the fields added, but for the host as sent and what comes from it.
#define REQUEST_HEAD_ADDED_MAX 1024

// Whether an upgrade that the client asks for is passed on: not with a body, and not to a protocol
// that carries further requests (h2c, HTTP, TLS), which nobody would match to a room.
bool request_head_may_upgrade(const struct http_head *head);

// Write it.
//   keeps  the connection is to be kept afterwards, if the origin likes
// Out: origin-form, the target as sent; the matched host; the client's fields in order without what
// concerns its connection, without forwarding fields (unless its peer is trusted), without all that
// is sluice's (tokens, cookies, Sluice-...); then the added ones. Returns its length; 0: it does
// not fit. Pure.
size_t request_head_write(
	char *out, size_t out_bytes, const struct exchange_request *request, bool keeps);
