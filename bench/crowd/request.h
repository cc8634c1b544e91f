// Request: what a visitor sends, as a browser would write it.
#pragma once

#include <stddef.h>

#include "bench/crowd/plan.h"
#include "drivers/span.h"

#define REQUEST_BYTES_MAX 2048u

enum request {
	REQUEST_NONE,
	REQUEST_PAGE, // GET the page: navigation
	REQUEST_STATUS, // GET status: the page's own script
	REQUEST_LEAVE, // POST leave
	REQUEST_BUY, // GET …/buy: navigation
	REQUEST_TELL, // POST /left?session=… to the shop itself
};

// What the visitor carries; spans of length 0 are left out.
struct request_carried {
	struct span ticket, pass;
	uint64_t session; // for REQUEST_TELL
};

// Write a request. Returns how many bytes of `out` (REQUEST_BYTES_MAX) it takes. Pure.
size_t request_write(const struct plan *plan, enum request request,
	const struct request_carried *carried, char *out);
