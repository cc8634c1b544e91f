// flock() rather than a file that is there or not: it cannot be left behind. The process id in it
// is for people; nothing decides by it.

#include "controlplane/store/state.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const names[STATE_FILES] = {
	[STATE_LOCK] = "lock",
	[STATE_PLACES] = "places",
	[STATE_STORE] = "sluice.db",
	[STATE_STORE_LOG] = "sluice.db-wal",
	[STATE_UNSAVED] = "unsaved",
	[STATE_ADMIN] = "admin.socket",
	[STATE_APPLIANCE] = "appliance",
};

// The path of a socket is the shortest that must fit.
#define PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)

struct state {
	int dir, lock;
	char paths[STATE_FILES][PATH_BYTES];
};

static int fail(char *error, int ret, const char *path, const char *what)
{
	snprintf(error, STATE_ERROR_MAX, "%s: %s", path, what);
	return ret;
}

static int paths_make(struct state *s, const char *path, char *error)
{
	for (int i = 0; i < STATE_FILES; i++) {
		int len = snprintf(s->paths[i], PATH_BYTES, "%s/%s", path, names[i]);
		if ((size_t)len >= PATH_BYTES)
			return fail(error, -ENAMETOOLONG, path,
				"too long: a socket in it can have no more than 107 bytes");
	}
	return 0;
}

static bool is_empty(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = again < 0 ? NULL : fdopendir(again);
	if (!dir) {
		if (again >= 0)
			close(again);
		return false;
	}
	int count = 0; // of entries, `.` and `..` among them
	while (count < 3 && readdir(dir))
		count++;
	closedir(dir);
	return count < 3;
}

static int directory_check(int fd, const char *path, char *error)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return fail(error, -errno, path, strerror(errno));
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fail(error, -EPERM, path, "others may write to it: chmod 700");
	if (faccessat(fd, names[STATE_LOCK], F_OK, AT_SYMLINK_NOFOLLOW) < 0 && !is_empty(fd))
		return fail(error, -ENOTEMPTY, path,
			"is no state directory: it is not empty and has no `lock`");
	return 0;
}

static int directory_open(struct state *s, const char *path, char *error)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return fail(error, -errno, path, strerror(errno));
	s->dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return fail(error, -errno, path, strerror(errno));
	return directory_check(s->dir, path, error);
}

static pid_t holder_read(int lock)
{
	char text[16] = "";
	ssize_t len = pread(lock, text, sizeof(text) - 1, 0);
	return len > 0 ? (pid_t)strtol(text, NULL, 10) : 0;
}

static int lock_take(struct state *s, const char *path, char *error)
{
	s->lock =
		openat(s->dir, names[STATE_LOCK], O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (s->lock < 0)
		return fail(error, -errno, s->paths[STATE_LOCK], strerror(errno));
	if (flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return fail(error, -errno, s->paths[STATE_LOCK], strerror(errno));
		snprintf(error, STATE_ERROR_MAX, "%s: in use by process %d", path,
			(int)holder_read(s->lock));
		return -EBUSY;
	}
	// On a full disk the old id stays: it is for people only.
	char text[16];
	int len = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (pwrite(s->lock, text, (size_t)len, 0) == len)
		(void)!ftruncate(s->lock, len);
	return 0;
}

int state_open(const char *path, struct state **state, char *error)
{
	struct state *s = calloc(1, sizeof(*s));
	if (!s)
		return fail(error, -ENOMEM, path, "out of memory");
	s->dir = s->lock = -1;
	int ret = paths_make(s, path, error);
	if (ret == 0)
		ret = directory_open(s, path, error);
	if (ret == 0)
		ret = lock_take(s, path, error);
	if (ret < 0) {
		state_close(s);
		return ret;
	}
	*state = s;
	return 0;
}

int state_give(struct state *s, uid_t user, gid_t group)
{
	if (fchown(s->dir, user, group) < 0)
		return -errno;
	for (int i = 0; i < STATE_FILES; i++) {
		int ret = fchownat(s->dir, names[i], user, group, AT_SYMLINK_NOFOLLOW);
		if (ret < 0 && errno != ENOENT)
			return -errno;
	}
	return 0;
}

const char *state_path(const struct state *s, enum state_file file)
{
	assert(file < STATE_FILES);
	return s->paths[file];
}

void state_close(struct state *s)
{
	if (!s)
		return;
	if (s->lock >= 0)
		close(s->lock);
	if (s->dir >= 0)
		close(s->dir);
	free(s);
}

pid_t state_holder(const char *path)
{
	char file[PATH_MAX];
	if (snprintf(file, sizeof(file), "%s/%s", path, names[STATE_LOCK]) >= PATH_MAX)
		return 0;
	int lock = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (lock < 0)
		return 0;
	bool is_held = flock(lock, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	pid_t holder = is_held ? holder_read(lock) : 0;
	close(lock);
	return holder;
}
