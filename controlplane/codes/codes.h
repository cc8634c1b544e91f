// Codes that were used, and how often.
//
// Lists (codes_list.h) say what is good; what was used is known apart from them, by line and
// digest, and kept in the store: so a list that is read again, or comes back, refreshes nothing.
// Control decides alone, one claim after the other, so two requests at once, on whatever workers,
// are honoured once; the answer leaves when the store has it.
//
// Control thread only.
#pragma once

#include "controlplane/store/store.h"
#include "dataplane/gate/claim.h"
#include "dataplane/gate/code.h"

#define CODES_USED_MAX (1u << 23) // codes of all lines that were ever used; beyond: refused
#define CODES_USED_BYTES 40u // that each of them takes

struct codes;

// Take over what the store knows. Returns 0 or -errno. Owned by the caller: codes_destroy(), which
// accepts NULL.
int codes_create(struct store *store, struct codes **codes);
void codes_destroy(struct codes *codes);

// How often a code was used in a line.
uint32_t codes_used(const struct codes *codes, uint32_t line_id, const struct code_digest *digest);

// Codes of a line that were used, and how often all together.
struct codes_view {
	uint32_t codes;
	uint64_t uses;
};
struct codes_view codes_look(const struct codes *codes, uint32_t line_id);

// The codes that were used, one after the other, in the order in which they were used first.
//   next  0 at first
// Returns how often, or 0: there are no more.
uint32_t codes_next(
	const struct codes *codes, uint32_t *next, uint32_t *line_id, struct code_digest *digest);

// A visitor shows a code, which may be used `uses` times in a line. Returns whether it is honoured
// or spent, or CLAIM_REFUSED: there is no room to remember it.
//   record  to be saved if it is honoured
enum claim_verdict codes_use(struct codes *codes, uint32_t line_id, uint32_t uses,
	const struct code_digest *digest, struct store_code *record);

// One use was not made after all. Returns false if there was none.
//   record  to be saved otherwise
bool codes_give_back(struct codes *codes, uint32_t line_id, const struct code_digest *digest,
	struct store_code *record);
