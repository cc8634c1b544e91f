// Requests as browsers send them, with tickets and passes of the stage's room derby.
#pragma once

#include "tests/unit/worker/stage.h"

#define REQUESTS_COUNT 32u // of a set: those of a turn
#define REQUESTS_SETS 2u // of tickets: alternating, none is remembered
#define REQUESTS_BYTES_MAX 1024u

struct requests_kind {
	char text[REQUESTS_SETS][REQUESTS_COUNT][REQUESTS_BYTES_MAX];
	uint32_t len[REQUESTS_SETS][REQUESTS_COUNT];
};

// A status poll with fetch(); the page with a ticket; a visit with a pass.
extern struct requests_kind requests_polls, requests_pages, requests_visits;

// Write them all, once the stage has begun.
void requests_begin(struct stage *stage);
