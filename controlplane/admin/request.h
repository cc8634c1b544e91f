// One command as a client sends it, and the answer as it gets it. No I/O.
#pragma once

#include "controlplane/admin/admin.h"

// A command that was carried out, and is not known to be done (ADMIN_LATER).
struct request_later {
	const struct admin_command *command; // NULL: there is none
	uint64_t began_us;
	char *text; // what it has said
	json_t *data;
};

// Take a line apart, carry the command out if it is one of `commands`, and make the answer, its
// end of line included. Returns text that the caller frees; NULL when memory is short, or if
// later->command is set: then there is no answer yet.
//   line  `len` bytes without the end of line; anything at all
char *request_answer(const struct admin_command *commands, unsigned command_count, void *context,
	const char *line, size_t len, struct request_later *later);

// Ask how it stands. Returns the answer, likewise, once there is one: then `later` holds nothing.
char *request_settle(struct request_later *later, void *context);

// Forget it; it may be none.
void request_drop(struct request_later *later);

// An answer that says only what is wrong. As above.
char *request_refuse(const char *why);
