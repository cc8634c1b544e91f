// Seals: secrets and seeds as records that a store may hold, but neither read nor change.
//
//   record = version (1 byte, 1) | nonce (12) | ciphertext | tag (16)
//   AES-256-GCM (NIST SP 800-38D) under the cluster's key; AAD = kind, 0, id
//
// A nonce is 96 random bits. A key seals a few thousand records in its life; two of 2^32 would have
// the same nonce with a chance of 2^-33 (8.3 of that paper).
//
// The kind and the id are what the record is stored under, so that one cannot be put in the place
// of another.
//
// Control thread, and before it starts.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SEAL_KEY_BYTES 32u
#define SEAL_PLAIN_BYTES_MAX 4096u
#define SEAL_OVERHEAD_BYTES (1u + 12u + 16u) // of a record over its plain text
#define SEAL_NAME_BYTES_MAX 255u // of a kind, and of an id
#define SEAL_TEXT_BYTES 256u

struct seal; // a key, in locked memory

// Read a key: 64 hex digits and at most one line's end, in a regular file that only its owner can
// read (mode 0600 or less).
//   error  SEAL_TEXT_BYTES; what is wrong, beginning with the path
// Returns 0 or -errno (-EINVAL: that is no key; -EPERM: others may read it; -ENOMEM). The caller's:
// seal_destroy(), which accepts NULL and wipes.
int seal_create(const char *path, struct seal **seal, char *error);
void seal_destroy(struct seal *seal);

// What is wrong with a file of a key, as above, or NULL. It is the function's own until its next
// call.
const char *seal_key_error(const char *path);

// Seal `bytes` of `plain`, at most SEAL_PLAIN_BYTES_MAX.
//   kind, id  at most SEAL_NAME_BYTES_MAX each
//   record    bytes + SEAL_OVERHEAD_BYTES
// Returns 0 or -EIO (no random numbers, or no memory, to be had).
int seal_close(const struct seal *seal, const char *kind, const char *id, const void *plain,
	size_t bytes, uint8_t *record);

enum seal_result {
	SEAL_OPEN,
	SEAL_SHORT, // or too long: no record of ours
	SEAL_VERSION, // of a version to come
	SEAL_WRONG, // another key's, another place's, or damaged
	SEAL_FAILED, // no memory to be had
};

// Open a record of any length.
//   plain  bytes - SEAL_OVERHEAD_BYTES; wiped unless the result is SEAL_OPEN
enum seal_result seal_open(const struct seal *seal, const char *kind, const char *id,
	const uint8_t *record, size_t bytes, uint8_t *plain);

// The result as the end of a sentence that begins with what was to be opened.
const char *seal_result_text(enum seal_result result);
