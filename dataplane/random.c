// The generator of random.h on OpenSSL's ChaCha20.

#include "dataplane/random.h"

#include <openssl/evp.h>

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BLOCK_BYTES 4096u
#define KEY_BYTES 32u
#define COUNTER_BYTES 16u // ChaCha20's counter and nonce, as EVP takes them

struct random {
	EVP_CIPHER_CTX *cipher;
	size_t used; // bytes of the block given out
	uint8_t block[BLOCK_BYTES];
};

static void refill(struct random *random);

int random_create(struct random **random)
{
	struct random *r = calloc(1, sizeof(*r)); // COLD: at start
	if (!r)
		return -ENOMEM;
	r->cipher = EVP_CIPHER_CTX_new();
	if (!r->cipher || EVP_EncryptInit_ex(r->cipher, EVP_chacha20(), NULL, NULL, NULL) != 1) {
		random_destroy(r);
		return -ENOMEM;
	}
	if (getrandom(r->block, KEY_BYTES + COUNTER_BYTES, 0) != KEY_BYTES + COUNTER_BYTES) {
		random_destroy(r);
		return -EIO;
	}
	refill(r);
	*random = r;
	return 0;
}

void random_destroy(struct random *random)
{
	if (!random)
		return;
	EVP_CIPHER_CTX_free(random->cipher);
	OPENSSL_cleanse(random, sizeof(*random));
	free(random);
}

// Key and nonce from the block's head, which is not given out and is overwritten.
static void refill(struct random *random)
{
	static const uint8_t zeros[BLOCK_BYTES];
	int len = 0;
	const uint8_t *key = random->block, *nonce = random->block + KEY_BYTES;
	int ok = EVP_EncryptInit_ex(random->cipher, NULL, NULL, key, nonce);
	assert(ok == 1);
	ok = EVP_EncryptUpdate(random->cipher, random->block, &len, zeros, BLOCK_BYTES);
	assert(ok == 1);
	assert(len == BLOCK_BYTES);
	random->used = KEY_BYTES + COUNTER_BYTES;
}

static void take(struct random *random, void *out, size_t bytes)
{
	if (random->used + bytes > BLOCK_BYTES)
		refill(random);
	memcpy(out, random->block + random->used, bytes);
	memset(random->block + random->used, 0, bytes);
	random->used += bytes;
}

uint64_t random_u64(struct random *random)
{
	uint64_t value = 0;
	while (value == 0)
		take(random, &value, sizeof(value));
	return value;
}

uint32_t random_u32(struct random *random)
{
	uint32_t value;
	take(random, &value, sizeof(value));
	return value;
}
