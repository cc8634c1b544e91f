// What answers of the endpoint of codes say (code.h). For answer.c alone.
#pragma once

#include <stddef.h>

#include "dataplane/gate/code.h"

struct gate_room;

#define ANSWER_CODE_BYTES_MAX 512u

// The HTTP status.
unsigned answer_code_status(enum code_outcome outcome);

// The JSON: that a code is wanted, or why there is no welcome.
//   out  ANSWER_CODE_BYTES_MAX
// Returns the length. Pure; any worker.
size_t answer_code_json(enum code_outcome outcome, const struct gate_room *room, char *out);
