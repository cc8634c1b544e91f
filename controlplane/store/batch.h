// A batch: records that are not saved yet, merged, so that it holds one for each thing there is.
//
// It is what a turn commits, and it is the journal of what could not be written: nothing is moved
// when the disk fails. A visitor who was admitted and forgotten meanwhile leaves no trace.
//
// Control thread only.
#pragma once

#include "controlplane/store/store.h"

#define BATCH_RECORDS_MIN 64u

struct batch;

// A batch for up to `records_max` records (at least BATCH_RECORDS_MIN; the last quarter for
// STORE_GRANTED only, and at most STORE_HISTORY_MAX of history). Returns NULL when memory is short.
struct batch *batch_create(uint32_t records_max);

// Forgets secrets for good. Accepts NULL.
void batch_destroy(struct batch *b);

// Add a record, or replace the one it is about. Texts are copied. Returns false if there is no room
// or a text is longer than STORE_TEXT_MAX.
bool batch_put(struct batch *b, const struct store_record *record);

// Go through the records, in no order: *at is 0 at first, and moves on. Returns NULL at the end.
// The record is the batch's.
const struct store_record *batch_next(const struct batch *b, uint32_t *at);

// Records in it, and how many more it takes.
uint32_t batch_count(const struct batch *b);
uint32_t batch_free_count(const struct batch *b);

// The latest `expires` of a pass put since the batch was last cleared, unix s.
uint32_t batch_until(const struct batch *b);

// Everything was saved.
void batch_clear(struct batch *b);
