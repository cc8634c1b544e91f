// The operator's message, made safe for where it will be shown.
#pragma once

#include <stddef.h>

#include "dataplane/gate/status.h"
#include "drivers/span.h"

struct message {
	size_t json_len, html_len; // 0: no message
	char json[STATUS_MESSAGE_BYTES_MAX]; // a JSON string, with its quotes
	char html[STATUS_MESSAGE_BYTES_MAX]; // HTML text
};

// Escape `text` both ways. An empty one is no message.
// Returns 0; -EILSEQ if it is not UTF-8 or holds control characters; -EMSGSIZE if either form
// would be longer than STATUS_MESSAGE_BYTES_MAX. Pure; any thread.
int message_escape(struct span text, struct message *message);
