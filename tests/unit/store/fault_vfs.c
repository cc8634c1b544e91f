// Every file the VFS opens gets a copy of its methods in which writing and syncing are ours.

#include "tests/unit/store/fault_vfs.h"

#include <sqlite3.h>

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum fault_vfs_mode fault_vfs_mode;

#define METHODS_MAX 4u // the VFS has one set of methods for each style of locking

static sqlite3_vfs vfs, *below;
static sqlite3_io_methods methods[METHODS_MAX]; // ours
static const sqlite3_io_methods *theirs[METHODS_MAX];

// The methods that a file of ours had.
static const sqlite3_io_methods *methods_below(const sqlite3_file *file)
{
	return theirs[file->pMethods - methods];
}

static int fault_of_write(void)
{
	switch (fault_vfs_mode) {
	case FAULT_VFS_FULL:
		return SQLITE_FULL;
	case FAULT_VFS_READONLY:
		return SQLITE_READONLY;
	case FAULT_VFS_IO:
		return SQLITE_IOERR_WRITE;
	default:
		return SQLITE_OK;
	}
}

static int fault_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 offset)
{
	int fault = fault_of_write();
	return fault != SQLITE_OK ? fault : methods_below(file)->xWrite(file, data, len, offset);
}

static int fault_sync(sqlite3_file *file, int flags)
{
	if (fault_vfs_mode != FAULT_VFS_NONE)
		return SQLITE_IOERR_FSYNC;
	return methods_below(file)->xSync(file, flags);
}

static int fault_open(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags, int *out)
{
	(void)self;
	int ret = below->xOpen(below, name, file, flags, out);
	if (!file->pMethods)
		return ret;
	uint32_t i = 0;
	while (theirs[i] && theirs[i] != file->pMethods)
		i++;
	assert(i < METHODS_MAX);
	theirs[i] = file->pMethods;
	methods[i] = *theirs[i];
	methods[i].xWrite = fault_write;
	methods[i].xSync = fault_sync;
	file->pMethods = &methods[i];
	return ret;
}

void fault_vfs_install(void)
{
	below = sqlite3_vfs_find(NULL);
	assert(below);
	vfs = *below;
	vfs.zName = "fault";
	vfs.xOpen = fault_open;
	sqlite3_vfs_register(&vfs, 1);
}
