// Starting: what is told to those who come before there are workers, while a start waits for what
// others know.
//
// For STARTING_QUIET_MS nothing: whoever comes is accepted a moment later, as if nothing had been.
// Then every request over a kernel's socket is answered 503, with what is waited for, until the
// workers come; over TLS it is hung up on, so that a balancer knows at once too. A port of our own
// (`driver: dpdk`) is silent. Commands fail, and say why.
//
// Control thread only, on its event loop.
#pragma once

#include "controlplane/control.h"
#include "controlplane/listeners.h"

#define STARTING_QUIET_MS 1000u
#define STARTING_CLIENTS_MAX 64u // answered at once; more are hung up on
#define STARTING_CLIENT_S 2u // of silence

struct starting;

// What a command is told, for a person; until the next call.
typedef const char *starting_why(struct control *c);

// c->base and c->state are there. `listeners` are borrowed. Returns 0 or -errno; what went wrong
// with the admin socket is logged.
int starting_create(struct control *c, const struct listeners *listeners, starting_why *why,
	struct starting **starting);

// Hang up on everybody. Accepts NULL.
void starting_destroy(struct starting *s);
