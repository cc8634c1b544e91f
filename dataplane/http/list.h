// Lists in field values: elements between commas (RFC 9110 5.6.1), parameters between semicolons
// (5.6.6).
#pragma once

#include "drivers/span.h"

// Take the next element off `rest`: up to the next separator outside a quoted string, without the
// white space around it. Empty ones are passed over. A quoted string that does not end takes all
// that is left. Returns false when nothing is left. Pure; any thread.
bool list_next(struct span *rest, char separator, struct span *element);
