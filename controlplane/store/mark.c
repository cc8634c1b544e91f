// A file of one page, whose blocks are written at creation. A process that is killed loses nothing
// of a shared mapping; for a loss of power it is also flushed, which may fail (a disk that refuses
// writes refuses this one) and is then as good as can be.
//
// Where blocks are copied on write (btrfs), overwriting would need space after all: the file asks
// not to be; elsewhere that request fails and does not matter.

#include "controlplane/store/mark.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 4096u

static const char magic[8] = "sluiceM1";

struct page {
	char magic[8];
	_Atomic uint32_t is_set;
	_Atomic uint32_t until; // written before is_set
};

struct mark {
	struct page *page;
};

bool mark_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

// Make the file whole under another name first, so that a half-made one is never found.
static int file_create(const char *path)
{
	char made[4096 + 8];
	if ((size_t)snprintf(made, sizeof(made), "%s.new", path) >= sizeof(made))
		return -ENAMETOOLONG;
	int fd = open(made, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	int flags = FS_NOCOW_FL;
	(void)!ioctl(fd, FS_IOC_SETFLAGS, &flags);
	char block[PAGE_BYTES] = {0};
	memcpy(block, magic, sizeof(magic));
	errno = ENOSPC;
	bool is_made = pwrite(fd, block, sizeof(block), 0) == sizeof(block) && fsync(fd) == 0 &&
		       rename(made, path) == 0;
	int ret = is_made ? 0 : -errno;
	if (!is_made)
		unlink(made);
	close(fd);
	return ret;
}

static int file_map(int fd, struct page **page)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size != PAGE_BYTES)
		return -EUCLEAN;
	void *map = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*page = map;
	if (memcmp((*page)->magic, magic, sizeof(magic)) == 0)
		return 0;
	munmap(map, PAGE_BYTES);
	return -EUCLEAN;
}

int mark_open(const char *path, struct mark **mark)
{
	int ret = mark_exists(path) ? 0 : file_create(path);
	if (ret < 0)
		return ret;
	int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	struct mark *made = calloc(1, sizeof(*made));
	ret = made ? file_map(fd, &made->page) : -ENOMEM;
	close(fd);
	if (ret < 0) {
		free(made);
		return ret;
	}
	*mark = made;
	return 0;
}

void mark_close(struct mark *mark)
{
	if (!mark)
		return;
	munmap(mark->page, PAGE_BYTES);
	free(mark);
}

void mark_set(struct mark *mark, uint32_t until)
{
	struct page *page = mark->page;
	bool was_set = atomic_load(&page->is_set);
	if (was_set && until <= atomic_load(&page->until))
		return;
	atomic_store(&page->until, until);
	atomic_store(&page->is_set, 1);
	msync(page, PAGE_BYTES, MS_SYNC);
}

void mark_clear(struct mark *mark)
{
	if (!atomic_load(&mark->page->is_set))
		return;
	atomic_store(&mark->page->is_set, 0);
	msync(mark->page, PAGE_BYTES, MS_SYNC);
}

bool mark_is_set(const struct mark *mark, uint32_t *until)
{
	*until = atomic_load(&mark->page->until);
	return atomic_load(&mark->page->is_set) != 0;
}
