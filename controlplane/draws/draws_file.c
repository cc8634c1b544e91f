// Files of ids. Sparse and as long as they may get; what may be written next is allocated before,
// since a store to a hole on a full disk is a SIGBUS. kill -9 leaves the page cache as it was, so
// nothing is synced; after a power loss who is missing has the place of a neighbour.

#include "controlplane/draws/draws_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION 1u

static const char magic[8] = "sluicega";

static uint64_t bytes_for(uint64_t max)
{
	return sizeof(struct gather_ids) + max * sizeof(uint64_t);
}

static void name(char path[PATH_MAX], const char *folder, uint32_t line_id, uint64_t number)
{
	snprintf(path, PATH_MAX, "%s/gather-%08" PRIx32 "-%" PRIu64, folder, line_id, number);
}

static int allocate(int fd, uint64_t bytes)
{
	int error;
	do
		error = posix_fallocate(fd, 0, (off_t)bytes);
	while (error == EINTR);
	return -error;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int map(struct draws_file *file, int fd, uint64_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	*file = (struct draws_file){at, bytes};
	return 0;
}

int draws_file_make(struct draws_file *file, const char *folder, uint32_t line_id, uint64_t number,
	uint64_t max)
{
	char path[PATH_MAX];
	uint64_t ready = least(DRAWS_FILE_AHEAD, max);
	name(path, folder, line_id, number);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	int ret =
		ftruncate(fd, (off_t)bytes_for(max)) < 0 ? -errno : allocate(fd, bytes_for(ready));
	if (ret == 0)
		ret = map(file, fd, bytes_for(max));
	close(fd);
	if (ret < 0) {
		unlink(path);
		return ret;
	}
	struct gather_ids *ids = file->ids;
	ids->version = VERSION;
	ids->line_id = line_id;
	ids->number = number;
	ids->max = max;
	atomic_store(&ids->ready, ready);
	memcpy(ids->magic, magic, sizeof(magic)); // last: without it the file is none
	return 0;
}

static bool is_half_made(const struct draws_file *file)
{
	static const char none[sizeof(magic)];
	return memcmp(file->ids->magic, none, sizeof(none)) == 0;
}

int draws_file_open(struct draws_file *file, const char *folder, uint32_t line_id, uint64_t number)
{
	char path[PATH_MAX];
	struct stat st;
	name(path, folder, line_id, number);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	int ret = fstat(fd, &st) < 0 ? -errno : 0;
	if (ret == 0 && st.st_size == 0)
		ret = -ENOENT;
	else if (ret == 0 && (uint64_t)st.st_size < sizeof(struct gather_ids))
		ret = -EUCLEAN;
	if (ret == 0)
		ret = map(file, fd, (uint64_t)st.st_size);
	close(fd);
	if (ret == 0 && is_half_made(file)) {
		draws_file_close(file);
		ret = -ENOENT;
	}
	if (ret == -ENOENT)
		unlink(path);
	if (ret < 0)
		return ret;
	const struct gather_ids *ids = file->ids;
	if (memcmp(ids->magic, magic, sizeof(magic)) == 0 && ids->version == VERSION &&
		ids->line_id == line_id && ids->number == number && ids->ready <= ids->max &&
		ids->max <= UINT32_MAX && bytes_for(ids->max) == file->bytes)
		return 0;
	draws_file_close(file);
	return -EUCLEAN;
}

int draws_file_turn(struct draws_file *file, const char *folder)
{
	struct gather_ids *ids = file->ids;
	char path[PATH_MAX];
	const uint64_t ready = atomic_load(&ids->ready), taken = draws_file_taken(file);
	if (ready == ids->max || taken + DRAWS_FILE_AHEAD / 2 < ready)
		return 0;
	const uint64_t next = least(ready + DRAWS_FILE_AHEAD, ids->max);
	name(path, folder, ids->line_id, ids->number);
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	int ret = allocate(fd, bytes_for(next));
	close(fd);
	if (ret == 0)
		atomic_store(&ids->ready, next);
	return ret;
}

uint64_t draws_file_taken(const struct draws_file *file)
{
	return least(atomic_load(&file->ids->taken), atomic_load(&file->ids->ready));
}

uint32_t draws_file_people(const struct draws_file *file)
{
	const uint64_t taken = draws_file_taken(file);
	uint32_t people = 0;
	for (uint64_t i = 0; i < taken; i++)
		people += atomic_load(&file->ids->ids[i]) != 0;
	return people;
}

void draws_file_close(struct draws_file *file)
{
	if (file->ids)
		munmap(file->ids, file->bytes);
	*file = (struct draws_file){0};
}

void draws_file_remove(const char *folder, uint32_t line_id, uint64_t number)
{
	char path[PATH_MAX];
	name(path, folder, line_id, number);
	unlink(path);
}

void draws_file_sweep(const char *folder,
	bool (*is_gone)(void *ctx, uint32_t line_id, uint64_t number), void *ctx)
{
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		uint32_t line_id;
		uint64_t number;
		char path[PATH_MAX];
		const char *file = path + strlen(folder) + 1;
		if (sscanf(entry->d_name, "gather-%8" SCNx32 "-%" SCNu64, &line_id, &number) != 2)
			continue;
		name(path, folder, line_id, number);
		if (strcmp(file, entry->d_name) == 0 && is_gone(ctx, line_id, number))
			unlink(path);
	}
	if (dir)
		closedir(dir);
}
