// Reading a file of a folder of templates. Control thread, and the command line.
#pragma once

#include <stddef.h>
#include <sys/types.h>

// All of a file into *text, freed by the caller. Does not wait: a pipe or a folder is no file.
// Returns its length, or -errno (-EFBIG: longer than `max`; -EINVAL: no file).
ssize_t folder_file_read(const char *path, size_t max, char **text);
