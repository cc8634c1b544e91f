// A stand-in for the controller: grants while it is available, remembers who has what, and writes
// down what it is told.
#pragma once

#include "controlplane/controller/controller.h"

#define CONTROLLER_STUB_SESSION_S 600u
#define CONTROLLER_STUB_LATER 900u // visitors from here on are put off, for 100 ms
#define CONTROLLER_STUB_NO_ROOM 666u // this visitor can not be restored
#define CONTROLLER_STUB_NO_LEAVE 13u // this key can not be given back

struct controller {
	const char *name;
	bool is_available;
	uint32_t session_count, change_count;
	struct controller_change sessions[32], changes[64];
	bool has_later;
	struct claim later;
};

// Floor has passed a ticket of that key, and visitor, that was given back.
void controller_stub_pass(struct controller *c, uint64_t key);

// "derby.end(7) derby.free(7)": what all of them were told.
extern char controller_stub_diary[4096];
