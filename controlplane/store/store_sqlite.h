// The store of one appliance: SQLite in a file, in WAL mode.
//
// A batch is one transaction. synchronous=FULL: a commit is on the disk before its answers leave,
// so neither kill -9 nor a loss of power can forget a pass that is out there (a visitor would have
// two sessions, and the origin more than its capacity). NORMAL would keep a killed process as safe
// and cost a third (26 instead of 83 us a commit, measured), but after a loss of power the commits
// since the last checkpoint are gone. Only turns that admit, renew or end write at all.
//
// The database is held exclusively: one process, and no shared-memory file.
//
// Control thread only.
#pragma once

#include "controlplane/store/store.h"

#define STORE_SQLITE_SCHEMA 5 // in user_version
#define STORE_SQLITE_BACKOFF_MIN_MS 100u // between tries while unsaved, doubled up to
#define STORE_SQLITE_BACKOFF_MAX_MS 5000u

struct store_sqlite_plan {
	const char *path; // of the database; made (mode 0600) at the first start
	const char *mark_path; // of the mark, see mark.h
	uint32_t records_max; // of a batch; see claims_records()
};

// Open the store. What is there is checked and never repaired or replaced: a damaged or foreign
// database, one of a later version, or an empty one where there was another before, is an error.
// Returns 0, or -errno with a sentence in `error` (STORE_ERROR_MAX bytes): -EUCLEAN damaged,
// foreign or lost; -ENOTSUP a later version; -EBUSY held by another process. Owned by the caller:
// store_close().
int store_sqlite_open(const struct store_sqlite_plan *plan, struct store **store, char *error);
