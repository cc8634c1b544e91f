// Writing a head anew from parsed fields: the bytes that leave were put together here, never copied
// as a block, so that what one reader took for a field cannot become something else for the next.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/http/head.h"

// Where a head is being written. Writing past the end sets `is_full` and nothing else.
struct head_writer {
	char *at;
	char *end;
	bool is_full;
};

// Append; what does not fit is left out, and the writer is full.
void head_writer_put(struct head_writer *w, struct span text);
void head_writer_put_number(struct head_writer *w, uint64_t number);

// A whole line: `name: value` and CRLF.
void head_writer_put_field(struct head_writer *w, struct span name, struct span value);

// Whether a field says something about one connection, or how the body is framed on it: such a
// field is never passed on, in either direction (RFC 9110 7.6.1, RFC 9112 6).
bool head_writer_is_hop_field(const struct http_head *head, const struct http_field *field);

// Whether a field's name begins with `lower`, in any case and with '_' taken for '-': what reaches
// a program by way of CGI variables cannot tell Sluice_Session from Sluice-Session.
bool head_writer_begins_alike(struct span name, struct span lower);
