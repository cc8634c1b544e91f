// Random numbers nobody can guess: visitor ids, jitter.
//
// One generator per worker: ChaCha20 keystream in blocks of 4 kB, each block's first bytes becoming
// the key of the next ("fast key erasure", Bernstein 2017), so that what was drawn cannot be
// computed from what is in memory. Keyed by the kernel once at the start; no system call and no
// allocation after.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct random;

// Returns 0 or -errno. Owned by the caller: random_destroy(), which accepts NULL.
int random_create(struct random **random);
void random_destroy(struct random *random);

// 64 uniform bits, never 0 (0 means "none" in tickets and claims).
uint64_t random_u64(struct random *random);

// 32 uniform bits.
uint32_t random_u32(struct random *random);
