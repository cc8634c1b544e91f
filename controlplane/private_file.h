// Files with a secret in them: one rule for all.
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

// What is wrong with an open file that is to hold a secret, or NULL: it is a file, and nobody but
// its owner may do anything with it. Any thread.
static inline const char *private_file_fault(int fd)
{
	struct stat stat;
	if (fstat(fd, &stat) < 0)
		return strerror(errno);
	if (!S_ISREG(stat.st_mode))
		return "is no file";
	return stat.st_mode & 077 ? "may be read by others than its owner" : NULL;
}
