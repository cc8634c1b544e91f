// The state directory: everything that lasts, in one place, for one process.
//
// A process has it while it holds the lock on the file `lock`, whose text is its process id. The
// kernel gives the lock back however the process ends.
//
// Control thread only, at start and stop.
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#define STATE_ERROR_MAX 512u

enum state_file {
	STATE_LOCK,
	STATE_PLACES, // place.h
	STATE_STORE, // store_sqlite.h
	STATE_STORE_LOG, // its write-ahead log, made by SQLite
	STATE_UNSAVED, // mark.h
	STATE_ADMIN, // the socket of the admin commands
	STATE_APPLIANCE, // appliance.h
	STATE_FILES,
};

struct state;

// Open the directory at `path`, made (mode 0700) if absent, and lock it. A directory that was there
// must be empty or ours (it has a `lock`), and nobody else may write to it.
// Returns 0, or -errno with a sentence in `error` (STATE_ERROR_MAX bytes): -EBUSY another process
// has it; -ENOTEMPTY it holds something else; -EPERM others may write to it. Owned by the caller:
// state_close().
int state_open(const char *path, struct state **state, char *error);

// Give the directory and the files of it that are there to the user the process will run as. While
// still root, after the files were made. Returns 0 or -errno.
int state_give(struct state *state, uid_t user, gid_t group);

// The path of one of its files; lives as long as the state.
const char *state_path(const struct state *state, enum state_file file);

// Give up the lock. The directory stays. Accepts NULL.
void state_close(struct state *state);

// The process that holds the directory at `path`; 0 if none does. For the command line.
pid_t state_holder(const char *path);
