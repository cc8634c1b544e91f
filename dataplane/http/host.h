// Host and port, as in the Host field, in authorities, and in CONNECT (RFC 9110 7.2, RFC 3986
// 3.2.2, 3.2.3).
#pragma once

#include "drivers/span.h"

// Whether `s` is host[:port]: a name, an IPv4 address, or an IPv6 address in brackets; not empty,
// no user information; the port, which may be empty, is at most 65535.
//   port  its digits; at == NULL if there is no colon before it
// Pure; any thread.
bool host_is_valid(struct span s, struct span *port);
