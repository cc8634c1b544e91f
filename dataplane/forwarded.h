// X-Forwarded-For, from its end: each proxy has added, last, whom it heard the request from.
//
//   X-Forwarded-For: 2001:db8::7, 192.0.2.9:41234
//   X-Forwarded-For: [2001:db8::1]:443
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/http/head.h"

// Where reading has come to: what is left of a field, and the fields before it.
struct forwarded {
	const struct http_head *head;
	struct span left;
	uint16_t fields;
};

// Begin behind the last address of all fields of that name. Pure; any thread.
struct forwarded forwarded_last(const struct http_head *head);

// The address before, IPv4 mapped; a port behind it does not matter.
// Returns false if there is none, or what stands there is none: then nothing before it can be
// believed. Pure; any thread.
bool forwarded_before(struct forwarded *from, uint8_t ip[16]);
