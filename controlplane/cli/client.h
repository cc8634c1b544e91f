// The client side of admin.socket (admin/admin.h).
#pragma once

#include <jansson.h>

#define CLIENT_ERROR_BYTES 512
#define CLIENT_WAIT_S 30 // for each piece of the answer
#define CLIENT_ANSWER_BYTES_MAX (64u << 20)

// Send one request to the process that listens at `path`, and wait for its answer.
// Returns the answer, an object with a "status", which the caller releases; or NULL, with why in
// `error`, of CLIENT_ERROR_BYTES bytes.
json_t *client_ask(const char *path, const json_t *request, char *error);
