// Reading requests from text, flush against unmapped pages.
#pragma once

#include "dataplane/gate/request.h"
#include "dataplane/http/head.h"
#include "tests/unit/gate/guard.h"
#include "tests/unit/gate/town.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static char *reading_guard, *reading_scratch;

// Parse a head and read it as a request; the head, and the scratch, end at a guard.
static inline const struct http_head *reading_text(struct gate_request *request, const char *text)
{
	if (!reading_guard) {
		reading_guard = guard_make();
		reading_scratch = guard_make();
	}
	static const struct http_limits limits = {16384, 60000, 128};
	static struct http_head head;
	size_t len = strlen(text);
	struct span in = {guard_put(reading_guard, text, len), len};
	if (http_request_parse(in, &limits, &head) != HTTP_OK)
		fail_msg("no head: %s", text);
	memset(request, 0xee, sizeof(*request)); // nothing may be left as it was
	gate_request_read(&town, &head,
		reading_scratch - GATE_REQUEST_SCRATCH_BYTES(head.target.len), request);
	return &head;
}

// The same from the lines' parts; `fields` are whole lines.
static inline const struct http_head *reading_parts(
	struct gate_request *request, const char *method, const char *target, const char *fields)
{
	static char text[GUARD_BYTES];
	snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: shop.example\r\n%s\r\n", method,
		target, fields);
	return reading_text(request, text);
}
