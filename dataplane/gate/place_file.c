// The file of places.
//
// A header page, then lines of one size, of which the first that is free is taken. All sizes are
// fixed when the file is made; a file that must grow is written anew beside the old one and renamed
// over it, so there is a whole one at every moment. The file is sparse: lines not taken and indexes
// not reached cost nothing. What will be written next is allocated before, because a store to a
// hole on a full disk is a SIGBUS.
//
// kill -9 leaves the page cache as it was, so nothing is synced here; after a power loss
// place_begin() keeps what is sound.

#include "dataplane/gate/place.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define HEADER_BYTES 4096u
#define VERSION 1u
#define ENTRIES_MAX_LIMIT (1ull << 32)

struct header {
	char magic[8];
	uint32_t version;
	uint32_t lines_max;
	uint64_t entries_max; // of each line; a power of two
	uint64_t line_bytes; // whole pages
	uint64_t check; // XXH3 of all before
	_Atomic uint64_t clock_ms;
};
static_assert(sizeof(struct header) <= HEADER_BYTES, "one page");

struct place_file {
	int fd;
	size_t bytes;
	struct header *header; // the mapping
	uint32_t used; // lines from this one on are free
};

static const char magic[8] = "sluicepl";

static uint64_t min_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t check_of(const struct header *header)
{
	return XXH3_64bits(header, offsetof(struct header, check));
}

static struct header header_for(uint32_t lines_max, uint64_t entries_max)
{
	const uint64_t page = HEADER_BYTES;
	struct header header = {
		.version = VERSION,
		.lines_max = lines_max,
		.entries_max = entries_max,
		.line_bytes = (place_line_bytes(entries_max) + page - 1) / page * page,
	};
	memcpy(header.magic, magic, sizeof(magic));
	header.check = check_of(&header);
	return header;
}

static size_t file_bytes(const struct header *header)
{
	return HEADER_BYTES + header->lines_max * header->line_bytes;
}

static struct place_line *line_at(const struct place_file *file, uint32_t i)
{
	char *lines = (char *)file->header + HEADER_BYTES;
	return (struct place_line *)(lines + i * file->header->line_bytes);
}

static bool line_is_taken(const struct place_line *line)
{
	return line->entries_max != 0;
}

static int map(struct place_file *file, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	file->header = at;
	file->bytes = bytes;
	return 0;
}

static void unmap(struct place_file *file)
{
	if (file->header)
		munmap(file->header, file->bytes);
	if (file->fd >= 0)
		close(file->fd);
	*file = (struct place_file){.fd = -1};
}

// Allocate a part of the file.
static int allocate(int fd, uint64_t from, uint64_t bytes)
{
	int error;
	do
		error = posix_fallocate(fd, (off_t)from, (off_t)bytes);
	while (error == EINTR);
	return -error;
}

// Have the disk blocks of a line's head and of `entries` entries.
static int allocate_line(const struct place_file *file, uint32_t i, uint64_t entries)
{
	return allocate(
		file->fd, HEADER_BYTES + i * file->header->line_bytes, place_line_bytes(entries));
}

// Map a file that is there. Returns -EUCLEAN if it is not ours or damaged.
static int open_old(const char *path, struct place_file *file)
{
	struct header header;
	struct stat st;
	file->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (file->fd < 0)
		return -errno;
	if (fstat(file->fd, &st) < 0)
		return -errno;
	const ssize_t got = pread(file->fd, &header, sizeof(header), 0);
	if (got < 0)
		return -errno;
	if (got < (ssize_t)sizeof(header) || memcmp(header.magic, magic, sizeof(magic)) != 0 ||
		header.version != VERSION || header.check != check_of(&header) ||
		(uint64_t)st.st_size != file_bytes(&header))
		return -EUCLEAN;
	return map(file, file_bytes(&header));
}

// Copy one line into a place with room for more entries, `ready` of them allocated.
static void copy_line(
	struct place_line *to, const struct place_line *from, uint64_t entries_max, uint64_t ready)
{
	memcpy(to, from, sizeof(*to));
	to->entries_max = entries_max;
	to->entries_ready = ready;
	for (uint64_t i = from->index_first; i < from->index_end; i++) {
		const struct place_entry *entry = &from->entries[i & (from->entries_max - 1)];
		struct place_entry *copy = &to->entries[i & (entries_max - 1)];
		copy->held = entry->held;
		copy->base = entry->base;
	}
}

static int copy_lines(const struct place_file *to, const struct place_file *from)
{
	const uint64_t entries_max = to->header->entries_max;
	to->header->clock_ms = from->header->clock_ms;
	for (uint32_t i = 0; i < from->header->lines_max; i++) {
		const struct place_line *line = line_at(from, i);
		if (!line_is_taken(line))
			continue;
		const uint64_t steps = line->index_end / PLACE_READY_STEP + 1;
		const uint64_t ready = min_of(steps * PLACE_READY_STEP, entries_max);
		const int ret = allocate_line(to, i, ready);
		if (ret < 0)
			return ret;
		copy_line(line_at(to, i), line, entries_max, ready);
	}
	return msync(to->header, to->bytes, MS_SYNC) < 0 ? -errno : 0;
}

// Make the rename last.
static int sync_folder(const char *path)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/');
	const int len = slash ? (int)(slash - path) + 1 : 0;
	snprintf(folder, sizeof(folder), "%.*s.", len, path);
	const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	const int ret = fsync(fd) < 0 ? -errno : 0;
	close(fd);
	return ret;
}

// Write a new file of these sizes with what `old` holds (or nothing), and put it in place.
static int make(const char *path, const struct header *header, const struct place_file *old,
	struct place_file *file)
{
	char beside[PATH_MAX];
	int ret;
	if (snprintf(beside, sizeof(beside), "%s.new", path) >= (int)sizeof(beside))
		return -ENAMETOOLONG;
	if (unlink(beside) < 0 && errno != ENOENT)
		return -errno;
	file->fd = open(beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file->fd < 0)
		return -errno;
	if (ftruncate(file->fd, (off_t)file_bytes(header)) < 0 || fchmod(file->fd, 0600) < 0) {
		ret = -errno;
		goto fail;
	}
	if ((ret = allocate(file->fd, 0, HEADER_BYTES)) < 0)
		goto fail;
	if ((ret = map(file, file_bytes(header))) < 0)
		goto fail;
	memcpy(file->header, header, sizeof(*header));
	if (old && (ret = copy_lines(file, old)) < 0)
		goto fail;
	if (fsync(file->fd) < 0 || rename(beside, path) < 0) {
		ret = -errno;
		goto fail;
	}
	return sync_folder(path);
fail:
	unlink(beside);
	return ret;
}

static int grow(const char *path, uint32_t lines_max, uint64_t entries_max, struct place_file *file)
{
	struct place_file old = *file;
	const struct header *was = old.header;
	const struct header header = header_for(
		(uint32_t)max_of(was->lines_max, lines_max), max_of(was->entries_max, entries_max));
	*file = (struct place_file){.fd = -1};
	const int ret = make(path, &header, &old, file);
	unmap(&old);
	return ret;
}

// What the last process pointed at.
static void forget_process(struct place_line *line)
{
	atomic_store(&line->drawn, NULL);
	place_share(line, NULL);
}

int place_file_open(
	const char *path, uint32_t lines_max, uint64_t entries_max, struct place_file **file)
{
	assert(lines_max > 0 && entries_max > 0 && entries_max <= ENTRIES_MAX_LIMIT);
	uint64_t rounded = 2;
	while (rounded < entries_max)
		rounded *= 2;
	struct place_file *f = malloc(sizeof(*f)); // COLD: at start
	if (!f)
		return -ENOMEM;
	*f = (struct place_file){.fd = -1};
	int ret = open_old(path, f);
	if (ret == -ENOENT) {
		const struct header header = header_for(lines_max, rounded);
		ret = make(path, &header, NULL, f);
	} else if (ret == 0 &&
		   (f->header->lines_max < lines_max || f->header->entries_max < rounded)) {
		ret = grow(path, lines_max, rounded, f);
	}
	if (ret < 0) {
		place_file_close(f);
		return ret;
	}
	for (uint32_t i = 0; i < f->header->lines_max; i++) {
		f->used = line_is_taken(line_at(f, i)) ? i + 1 : f->used;
		if (line_is_taken(line_at(f, i)))
			forget_process(line_at(f, i));
	}
	*file = f;
	return 0;
}

// Make all of a line a hole.
static int punch(const struct place_file *file, uint32_t i)
{
	const uint64_t bytes = file->header->line_bytes;
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	const off_t at = (off_t)(HEADER_BYTES + i * bytes);
	return fallocate(file->fd, mode, at, (off_t)bytes) < 0 ? -errno : 0;
}

static struct place_line *take_line(struct place_file *file, uint32_t i, uint32_t line_id)
{
	const uint64_t max = file->header->entries_max;
	const uint64_t ready = min_of(max, PLACE_READY_STEP);
	int ret = punch(file, i); // giving it back may have been cut short by a power loss
	if (ret == 0 || ret == -EOPNOTSUPP) // then none was ever given back here
		ret = allocate_line(file, i, ready);
	if (ret < 0) {
		errno = -ret;
		return NULL;
	}
	struct place_line *line = line_at(file, i);
	place_line_init(line, line_id, max);
	line->entries_ready = ready;
	file->used = (uint32_t)max_of(file->used, i + 1);
	return line;
}

struct place_line *place_file_line(struct place_file *file, uint32_t line_id)
{
	uint32_t free = file->used;
	for (uint32_t i = 0; i < file->used; i++) {
		struct place_line *line = line_at(file, i);
		if (line_is_taken(line) && line->line_id == line_id)
			return line;
		if (!line_is_taken(line) && free == file->used)
			free = i;
	}
	if (free < file->header->lines_max)
		return take_line(file, free, line_id);
	errno = ENFILE;
	return NULL;
}

struct place_line *place_file_next(struct place_file *file, uint32_t *next)
{
	while (*next < file->used) {
		struct place_line *line = line_at(file, (*next)++);
		if (line_is_taken(line))
			return line;
	}
	return NULL;
}

int place_file_give_back(struct place_file *file, struct place_line *line)
{
	const uint64_t bytes = (uint64_t)((char *)line - (char *)line_at(file, 0));
	const uint32_t i = (uint32_t)(bytes / file->header->line_bytes);
	assert(i < file->used && line == line_at(file, i) && line_is_taken(line));
	return punch(file, i);
}

uint64_t place_file_clock(const struct place_file *file)
{
	return file->header->clock_ms;
}

int place_file_turn(struct place_file *file, uint64_t now_ms)
{
	file->header->clock_ms = now_ms;
	int ret = 0;
	for (uint32_t i = 0; i < file->used; i++) {
		struct place_line *line = line_at(file, i);
		if (!line_is_taken(line))
			continue;
		const uint64_t ready = line->entries_ready;
		if (ready == line->entries_max ||
			line->index_end + PLACE_READY_STEP * 3 / 4 < ready)
			continue;
		const uint64_t more = min_of(ready + PLACE_READY_STEP, line->entries_max);
		const int got = allocate_line(file, i, more);
		if (got == 0)
			line->entries_ready = more;
		else if (ret == 0)
			ret = got;
	}
	return ret;
}

void place_file_close(struct place_file *file)
{
	if (!file)
		return;
	unmap(file);
	free(file);
}
