// One command as a client sends it, and the answer as it gets it. No I/O.
#pragma once

#include "controlplane/admin/admin.h"

// Take a line apart, carry the command out if it is one of `commands`, and make the answer, its
// end of line included. Returns text that the caller frees; NULL when memory is short.
//   line  `len` bytes without the end of line; anything at all
char *request_answer(const struct admin_command *commands, unsigned command_count, void *context,
	const char *line, size_t len);

// An answer that says only what is wrong. As above.
char *request_refuse(const char *why);
