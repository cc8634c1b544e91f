// The tables of the SQLite store: one statement that writes each kind of record, one that reads it.
//
// Only store_sqlite.c includes this. Control thread only.
#pragma once

#include <sqlite3.h>

#include "controlplane/store/store.h"
#include "controlplane/store/store_sqlite.h"

// What makes the tables, for a database that has none; and what one of each earlier version, from 1
// on, lacks of the next.
extern const char store_sqlite_table_schema[];
extern const char *const store_sqlite_table_steps[STORE_SQLITE_SCHEMA];

struct store_sqlite_table;

// Prepare the statements. Returns an SQLite result.
int store_sqlite_table_create(sqlite3 *db, struct store_sqlite_table **table);

// Accepts NULL.
void store_sqlite_table_destroy(struct store_sqlite_table *table);

// Write one record. Returns SQLITE_OK or an SQLite error.
int store_sqlite_table_write(struct store_sqlite_table *table, const struct store_record *record);

// Read all records of a kind, oldest first, as store_load() says. Returns SQLITE_OK, SQLITE_TOOBIG
// after `max`, or an SQLite error (SQLITE_CORRUPT also for a row that cannot be).
int store_sqlite_table_read(
	sqlite3 *db, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx);
