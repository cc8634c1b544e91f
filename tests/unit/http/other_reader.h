// libhttp-parser as an independent reader of heads. A file of its own, because its header and ours
// both call things HTTP_GET.
#pragma once

#include <stdint.h>

#include "drivers/span.h"

#define OTHER_FIELDS_MAX 128

// What the other reader makes of a head.
struct other_head {
	bool is_accepted; // as one whole head; otherwise only the next two mean something
	bool is_method_unknown;
	const char *error;
	struct span method, url;
	unsigned major, minor, status;
	bool is_chunked, has_length;
	uint64_t content_length;
	unsigned field_count;
	struct span names[OTHER_FIELDS_MAX];
	struct span values[OTHER_FIELDS_MAX]; // white space after them trimmed
};

void other_read(struct span in, bool is_request, struct other_head *head);
