// A guard against guessing: how many codes each source has tried in vain in the minute under way.
//
// A source is an IPv4 address or an IPv6 /56, as for connections (source.h). All workers share one
// table, so that a source has one allowance however its connections are spread: a code is counted
// when it is asked for and taken off when it was good, so people who share an address and type what
// they were given are never kept out by each other for long.
//
// A fixed number of buckets of eight words, each a source's hash, its minute and its count, changed
// by compare-and-swap. A word of another minute is free. If all eight of a bucket are in use, a
// newcomer takes over the one with the fewest and goes on from its count: a source may be counted
// too much then, never too little ("Space-Saving", Metwally et al. 2005).
//
// Any thread; no locks, one cache line.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct guard;

#define GUARD_BUCKETS 8192u // 65,536 sources a minute in half a megabyte
#define GUARD_LIMIT_MAX 65535u // attempts of a source in a minute that can be counted
#define GUARD_MINUTE_S 60u

// Bytes that a guard takes, a multiple of 64.
size_t guard_bytes(void);

// Make an empty guard in `memory` (guard_bytes(), aligned to 64; stays the caller's).
//   seed  random, so that nobody can aim for a bucket
struct guard *guard_init(void *memory, uint64_t seed);

// Count an attempt of `ip` (IPv4 mapped). Returns false, counting nothing, if the source has had
// `limit` of them in this minute.
bool guard_take(struct guard *guard, const uint8_t ip[16], uint32_t limit, uint32_t now_s);

// An attempt that guard_take() counted was good. In another minute it makes no difference.
void guard_give(struct guard *guard, const uint8_t ip[16], uint32_t now_s);
