// Disk faults for SQLite at will: the default VFS, whose writes fail when told to.
#pragma once

enum fault_vfs_mode {
	FAULT_VFS_NONE,
	FAULT_VFS_FULL, // writes: SQLITE_FULL
	FAULT_VFS_READONLY, // writes: SQLITE_READONLY
	FAULT_VFS_IO, // writes: SQLITE_IOERR_WRITE
	FAULT_VFS_SYNC, // everything is written, and then syncing fails: SQLITE_IOERR_FSYNC
};

extern enum fault_vfs_mode fault_vfs_mode;

// Make it the default. Once.
void fault_vfs_install(void);
