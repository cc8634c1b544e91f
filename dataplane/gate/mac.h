// MACs of tokens: HMAC-SHA256 (RFC 2104, RFC 6234) over exactly 32 bytes, cut to 128 bits, many at
// a time.
//
// A burst of requests has its tokens checked together, because lanes side by side cost a fifth of
// one after the other. Two engines do the work and agree bit for bit; which one takes a burst is
// decided by its size, at a threshold measured on this processor when the engine is made.
//
//   lanes   intel-ipsec-mb: as many messages side by side as the registers hold; x86-64 only
//   states  one by one from saved SHA-256 states: two compressions each, everywhere
#pragma once

#include <stddef.h>
#include <stdint.h>

#define MAC_MESSAGE_BYTES 32u
#define MAC_TAG_BYTES 16u
#define MAC_LANES_NEVER UINT32_MAX // threshold when lanes are not to be had, or never pay

// A secret, prepared: SHA-256 states after the first block of the inner and of the outer hash. As
// secret as the secret. Shared read-only by all workers.
struct mac_key {
	uint32_t inner[8];
	uint32_t outer[8];
};

// One MAC to compute. All three are the caller's and must live until mac_burst() returns; several
// jobs may share a key or a message, not a tag.
struct mac_job {
	const struct mac_key *key;
	const uint8_t *message; // MAC_MESSAGE_BYTES
	uint8_t *tag; // MAC_TAG_BYTES, written
};

struct mac_engine;

// Prepare a secret of `bytes` bytes; secrets longer than 64 bytes are hashed first, as RFC 2104
// says. Pure; any thread.
void mac_key_init(struct mac_key *key, const uint8_t *secret, size_t bytes);

// Make an engine: for one worker alone, at start. Runs a known-answer test on all that it will use,
// then measures for at most a few milliseconds from how many jobs on lanes pay.
// Returns 0, -ENOMEM, or -EBADMSG if a known answer does not come out. Owns its memory.
int mac_create(struct mac_engine **engine);

// Free an engine. Accepts NULL.
void mac_destroy(struct mac_engine *engine);

// The size from which a burst goes to lanes, or MAC_LANES_NEVER; and fixing it, for tests and
// benches (1: lanes always, if there are any).
uint32_t mac_threshold(const struct mac_engine *engine);
void mac_set_threshold(struct mac_engine *engine, uint32_t threshold);

// Compute the tags of `count` jobs, any number. The engine's worker only; no allocation, no system
// call.
void mac_burst(struct mac_engine *engine, const struct mac_job *jobs, uint32_t count);
