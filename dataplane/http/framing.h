// How long a message is (RFC 9112 6.3): the one question on which two readers must never differ.
#pragma once

#include "dataplane/http/head.h"

// Set body and content_length of a request. Returns false where the message says two things about
// its length, or one that is malformed. Version and fields are set. Pure; any thread.
bool framing_of_request(struct http_head *head);

// The same of an answer to `request_method`; status is set too.
bool framing_of_answer(struct http_head *head, enum http_method request_method);
