// A store in memory that does as it is told: completes at once or later, cannot write, crashes.
//
// What was committed stays through a crash, as does the mark that says something was not.
#pragma once

#include "controlplane/store/store.h"

#define STORE_MODEL_MAX 65536u // records of each kind

struct store_model {
	struct store store;
	struct batch *gathering, *flying; // put; begun
	uint64_t delay_ms; // from begin to done; 0: within the call
	bool is_failing; // cannot write: keeps records in memory, unsaved
	int load_error; // what loading fails with; 0: it does not
	uint64_t due_ms; // when the flying batch is done

	// What is committed.
	uint32_t session_count, ended_count, line_count;
	struct store_session *sessions;
	struct store_ended *ended;
	struct store_line *lines;
	uint64_t clock_ms;

	bool is_marked;
	uint32_t marked_until;
};

// records_max: of a batch. Never fails.
void store_model_init(struct store_model *m, uint32_t records_max);
void store_model_fini(struct store_model *m);

// The process dies: what was not committed is gone, but for the batch in flight if `is_done`.
void store_model_crash(struct store_model *m, bool is_done);

// The committed record of a visitor, or NULL.
struct store_session *store_model_session(
	struct store_model *m, uint32_t line_id, uint64_t visitor);
