// Names of fields: which of those in HTTP_FIELD_NAMES one is.
#pragma once

#include "dataplane/http/head.h"

// The field called `name`, a token in any case; HTTP_FIELD_OTHER if nobody asks for it. Pure; any
// thread.
enum http_field_id field_id(struct span name);
