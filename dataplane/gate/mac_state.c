// HMAC-SHA256 of 32 bytes by two compressions.
//
// HMAC hashes twice, each time a block that holds only the key, then the data. The states after the
// key blocks are saved with the key, so what is left of either hash is one block: 32 bytes of data
// and the padding, which is the same in both. OpenSSL's SHA256_Transform takes a state and a block
// and picks SHA-NI or AVX2 by itself; the one-shot HMAC() costs six times as much, in set-up.

// SHA256_Transform is deprecated in OpenSSL 3.0 in favour of interfaces that cannot resume from a
// saved state.
#define OPENSSL_SUPPRESS_DEPRECATED

#include "dataplane/gate/mac_state.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <string.h>

#define BLOCK_BYTES 64
#define DIGEST_BYTES 32

// What follows 32 bytes that end a hash whose first block was the key: 0x80, zeros, and the length
// of both blocks' content in bits, (64 + 32) * 8 = 768, big-endian.
static const uint8_t padding[BLOCK_BYTES - DIGEST_BYTES] = {
	0x80, [30] = 768 >> 8, [31] = 768 & 255};

static_assert(MAC_MESSAGE_BYTES == DIGEST_BYTES, "one padding serves both hashes");

static void state_after(uint32_t state[8], const uint32_t from[8], const uint8_t *block)
{
	SHA256_CTX sha;
	memcpy(sha.h, from, sizeof(sha.h));
	SHA256_Transform(&sha, block);
	memcpy(state, sha.h, sizeof(sha.h));
}

static void digest_write(const uint32_t state[8], uint8_t digest[DIGEST_BYTES])
{
	for (size_t i = 0; i < 8; i++) {
		uint32_t word_be = __builtin_bswap32(state[i]);
		memcpy(digest + 4 * i, &word_be, 4);
	}
}

void mac_state_tag(const struct mac_key *key, const uint8_t *message, uint8_t *tag)
{
	uint8_t block[BLOCK_BYTES];
	uint32_t state[8];
	memcpy(block, message, MAC_MESSAGE_BYTES);
	memcpy(block + MAC_MESSAGE_BYTES, padding, sizeof(padding));
	state_after(state, key->inner, block);
	digest_write(state, block);
	state_after(state, key->outer, block);
	digest_write(state, block);
	memcpy(tag, block, MAC_TAG_BYTES);
}

// What follows 8 bytes: the same for (64 + 8) * 8 = 576 bits.
static const uint8_t word_padding[BLOCK_BYTES - 8] = {
	0x80, [BLOCK_BYTES - 10] = 576 >> 8, [BLOCK_BYTES - 9] = 576 & 255};

uint64_t mac_state_word(const struct mac_key *key, uint64_t message)
{
	uint8_t block[BLOCK_BYTES];
	uint32_t state[8];
	const uint64_t message_be = __builtin_bswap64(message);
	memcpy(block, &message_be, sizeof(message_be));
	memcpy(block + sizeof(message_be), word_padding, sizeof(word_padding));
	state_after(state, key->inner, block);
	digest_write(state, block);
	memcpy(block + DIGEST_BYTES, padding, sizeof(padding));
	state_after(state, key->outer, block);
	return (uint64_t)state[0] << 32 | state[1];
}

void mac_state_burst(const struct mac_job *jobs, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		mac_state_tag(jobs[i].key, jobs[i].message, jobs[i].tag);
}

void mac_key_init(struct mac_key *key, const uint8_t *secret, size_t bytes)
{
	uint8_t block[BLOCK_BYTES] = {0};
	if (bytes > BLOCK_BYTES)
		SHA256(secret, bytes, block);
	else
		memcpy(block, secret, bytes);
	SHA256_CTX start;
	SHA256_Init(&start);
	for (int i = 0; i < BLOCK_BYTES; i++)
		block[i] ^= 0x36;
	state_after(key->inner, start.h, block);
	for (int i = 0; i < BLOCK_BYTES; i++)
		block[i] ^= 0x36 ^ 0x5c;
	state_after(key->outer, start.h, block);
	OPENSSL_cleanse(block, sizeof(block));
}
