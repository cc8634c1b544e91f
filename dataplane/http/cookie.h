// Cookies of a request (RFC 6265 5.4, read as servers must: any sender, any spacing).
#pragma once

#include "dataplane/http/head.h"

struct cookie {
	struct span name; // not empty
	struct span value; // without the quotes around it, if it had both
};

// Where a walk over the cookies of a head stands. Begin with cookie_walk().
struct cookie_walk {
	const struct http_head *head;
	const struct http_field *field; // the Cookie field being read; NULL: none is left
	struct span rest; // of its value
};

// A walk from the first cookie.
struct cookie_walk cookie_walk(const struct http_head *head);

// The next cookie of all Cookie fields, in the order sent; a name that comes twice is delivered
// twice. What has no `=` or no name is passed over. A `;` ends a cookie even between quotes, as in
// browsers. Returns false after the last.
bool cookie_next(struct cookie_walk *walk, struct cookie *cookie);

// Write a Cookie field's value without the cookies that `is_left_out` says are to go; all others,
// and what is between them, stay byte for byte.
//   value  of one Cookie field
//   out    at least value.len bytes; may not overlap `value`
//   arg    handed to is_left_out
// Returns how many bytes were written; 0: no cookie is left, the field is to be dropped.
size_t cookie_write_kept(struct span value, char *out,
	bool (*is_left_out)(struct span name, const void *arg), const void *arg);
