// The password of Redis, from its file.
#pragma once

#include <stddef.h>

#define LINK_PASSWORD_BYTES_MAX 512u

// Read the first and only line of a file, without its end, as `password`, which has
// LINK_PASSWORD_BYTES_MAX + 1 bytes and is wiped on failure.
// Returns NULL, or what is wrong, beginning with the path; that is the function's own until its
// next call.
const char *link_password_read(const char *path, char *password);

// The same for who only wants to know whether it can be read.
const char *link_password_error(const char *path);
