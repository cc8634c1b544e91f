// Read without stdio, whose buffer would keep a copy.

#include "controlplane/link/link_password.h"

#include "controlplane/private_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// What is wrong with `bytes` read, or NULL: then they are a text.
static const char *check(char *password, ssize_t bytes)
{
	if (bytes < 0)
		return strerror(errno);
	if (bytes > 0 && password[bytes - 1] == '\n')
		bytes--;
	if (bytes == 0)
		return "is empty";
	if (bytes > (ssize_t)LINK_PASSWORD_BYTES_MAX)
		return "is too long";
	if (memchr(password, '\n', (size_t)bytes) || memchr(password, '\0', (size_t)bytes))
		return "is not one line";
	password[bytes] = '\0';
	return NULL;
}

static const char *read_file(const char *path, char *password)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // a pipe is refused, not waited for
	if (fd < 0)
		return strerror(errno);
	char line[LINK_PASSWORD_BYTES_MAX + 2]; // the longest, its end, and one more
	const char *wrong = private_file_fault(fd);
	if (!wrong)
		wrong = check(line, read(fd, line, sizeof(line)));
	close(fd);
	if (!wrong)
		memcpy(password, line, strlen(line) + 1);
	explicit_bzero(line, sizeof(line));
	return wrong;
}

const char *link_password_read(const char *path, char *password)
{
	static char error[600];
	const char *wrong = read_file(path, password);
	if (!wrong)
		return NULL;
	explicit_bzero(password, LINK_PASSWORD_BYTES_MAX + 1);
	snprintf(error, sizeof(error), "%s: %s", path, wrong);
	return error;
}

const char *link_password_error(const char *path)
{
	char password[LINK_PASSWORD_BYTES_MAX + 1];
	const char *error = link_password_read(path, password);
	explicit_bzero(password, sizeof(password));
	return error;
}
