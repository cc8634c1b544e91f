// Polls that a worker has read before, to read those that are alike but for their cookies.
//
// People who wait send the same request every few seconds, and so does everybody with the same
// browser, language and page. A worker keeps some heads of such requests as models (http/model.h),
// with what the gate found in each (gate/request.h), and reads what is of a model by it. The rest,
// and whatever is no poll, is read as ever; nothing depends on which way a request was read.
//
// Of fixed size, made at start; one worker's.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/gate/request.h"
#include "dataplane/http/head.h"

#define RECALL_SETS 64u
#define RECALL_WAYS 4u // models that have a set for their place
#define RECALL_EVERY 4u // of the polls that are of no model, one in so many becomes one

struct recall;

// A poll that was looked for, to be kept if it was not found.
struct recall_trace {
	size_t cookie_at; // see model_cookie()
	uint32_t tag; // of what stands before it; 0: no poll
};

// Bytes of memory that one takes.
size_t recall_bytes(void);

// Make one without models; NULL when out of memory. recall_destroy() accepts NULL.
struct recall *recall_create(void);
void recall_destroy(struct recall *recall);

// Read the head that `in` is, with nothing after it, and its request: as http_request_read() and
// gate_request_read() do.
//   version  of the map that the request is read by: models of another are forgotten
//   trace    for recall_keep()
// Returns whether `in` is of a model; else head, scratch and request mean nothing.
bool recall_read(struct recall *recall, uint64_t version, struct span in,
	const struct http_limits *limits, struct recall_trace *trace, struct http_head *head,
	char *scratch, struct gate_request *request);

// What recall_read() did not find was read from the same bytes by the same map, just now: it may
// become a model, in place of another one.
void recall_keep(struct recall *recall, const struct recall_trace *trace,
	const struct http_head *head, const struct gate_request *request);
