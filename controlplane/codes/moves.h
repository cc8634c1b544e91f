// Moves: who came into a lane by a code or a link, and which place they got for it, so that whoever
// lost the answer gets the same place again and not another, or none.
//
// A holder is who showed the code, or followed the link: the visitor of the ticket that they had,
// or whoever has the random number of a page (`is_once`; mixed with the code, so that a number
// alone is worth nothing). The last STORE_MOVES_MAX moves are remembered, in the store too; nothing
// grows, nothing is hashed anew. Who is forgotten finds the code spent, as anybody does.
//
// Control thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "controlplane/store/store.h"

struct moves;

// Take over what the store knows. Returns 0 or -errno. Owned by the caller: moves_destroy(), which
// accepts NULL.
int moves_create(struct store *store, struct moves **moves);
void moves_destroy(struct moves *moves);

// The move of a holder, or NULL. It dies with the next moves_add().
const struct store_move *moves_find(const struct moves *moves, uint64_t holder, bool is_once);

// Remember one, instead of an earlier one of the same holder; the oldest is forgotten for it.
//   move  all but its number, which is set: then it is to be saved
void moves_add(struct moves *moves, struct store_move *move);

// The move that this visitor's place came from has come to nothing. Returns false if there is none
// among the last `among`.
//   move  to be saved otherwise
bool moves_forget(struct moves *moves, uint64_t visitor, uint64_t among, struct store_move *move);

// Bytes of what is remembered, for the bill.
uint64_t moves_bytes(void);
