// One file of a folder, which may be anything that somebody put there.

#include "controlplane/pages/folder_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// -EINVAL: a folder, a pipe).
ssize_t folder_file_read(const char *path, size_t max, char **text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); // of a pipe nobody would write into
	if (fd < 0)
		return -errno;
	struct stat kind;
	if (fstat(fd, &kind) < 0 || !S_ISREG(kind.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	char *bytes = malloc(max + 1);
	ssize_t len = 0, got = bytes ? 1 : -1;
	while (got > 0 && (size_t)len <= max)
		if ((got = read(fd, bytes + len, max + 1 - (size_t)len)) > 0)
			len += got;
	int error = !bytes ? -ENOMEM : got < 0 ? -errno : (size_t)len > max ? -EFBIG : 0;
	close(fd);
	if (error == 0 && (*text = realloc(bytes, len > 0 ? (size_t)len : 1)))
		return len;
	free(bytes);
	return error ? error : -ENOMEM;
}
