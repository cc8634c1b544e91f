// A place for an SQLite store: a directory that each test makes and removes, and short ways to what
// the tests of the store do all the time.
#pragma once

#include "controlplane/store/store_sqlite.h"

#define SQLITE_PLACE_NOW 1764583200000ull
#define SQLITE_PLACE_RECORDS_MAX 20000u // of a batch

extern char sqlite_place_base[64], sqlite_place_path[96], sqlite_place_mark[96];
extern char sqlite_place_error[STORE_ERROR_MAX]; // of the last try to open

// Setup and teardown of a cmocka test.
int sqlite_place_new(void **state);
int sqlite_place_remove(void **state);

// Open the store there; the second one must succeed.
int sqlite_place_try_open(struct store **store);
struct store *sqlite_place_open(void);

struct store_record sqlite_place_session(uint64_t visitor, uint32_t expires);
void sqlite_place_put(struct store *s, uint64_t visitor, uint32_t expires);

// How many records there are. The first one is a store_record_fn; ctx is a uint64_t.
void sqlite_place_count(void *ctx, const struct store_record *record);
uint64_t sqlite_place_count_of(struct store *s, enum store_kind kind);

// Run `story` in a child that is killed at its end; it must get there.
void sqlite_place_in_a_child(void (*story)(void));

// Stories for it: commit sessions 1 to 100, one by one, and put one more.
void sqlite_place_commit_a_hundred(void);
