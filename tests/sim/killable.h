// A store whose process can be killed at any moment: the store model, or the real SQLite, of which
// copies of the files are what a killed process leaves.
#pragma once

#include "tests/unit/store/store_model.h"

struct killable {
	struct store *store; // the model's, or SQLite's
	struct store_model model;
	bool is_sqlite;
	char place[64]; // SQLite's directory
	uint32_t life; // processes so far
};

void killable_begin(struct killable *k, bool is_sqlite);
void killable_end(struct killable *k, uint64_t now_ms);

// The process dies and the next one opens the store.
//   is_done  model: the batch in flight had arrived
// Returns whether it died unsaved, or had not settled an end of that sort before it.
bool killable_kill(struct killable *k, bool is_done, uint64_t now_ms);

// The weather from now on: how long a commit takes (SQLite: none), and whether writing fails, and
// how (0: it does not).
void killable_weather(struct killable *k, uint64_t delay_ms, uint32_t fault);

// Whether the store has this session, with a slot, to this end or a later one.
bool killable_knows(const struct killable *k, uint64_t visitor, uint64_t session, uint32_t expires);

// Whether the store has it that this session ended early.
bool killable_knows_end(const struct killable *k, uint64_t session);
