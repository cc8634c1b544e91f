// What a head says about its connection: Connection, Upgrade, Expect.
#pragma once

#include "dataplane/http/head.h"

// Read the options of Connection and set option_count, options, keep_alive and has_upgrade of a
// head whose version and fields are set. Returns HTTP_BAD for an option that is no token,
// HTTP_TOO_LARGE for more than HTTP_OPTIONS_MAX. Pure; any thread.
enum http_result connection_parse(struct http_head *head);

// Whether the sender of a request waits for 100 before it sends the body (RFC 9110 10.1.1). The
// body's framing is set. Pure; any thread.
bool connection_expects_continue(const struct http_head *head);
