// OpenSSL rotates no ticket key by itself; here it asks for each ticket which key to use. The
// cipher is fetched once for a driver: to fetch is to take a lock.

#include "dataplane/tls/ticket.h"

#include <assert.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <string.h>

#define IV_BYTES 16 // of AES-CBC

static void derive(const uint8_t *seed, char label, uint8_t *out, size_t bytes)
{
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned digest_bytes;
	const char text[] = {'t', 'i', 'c', 'k', 'e', 't', ' ', label};
	bool is_done = HMAC(EVP_sha256(), seed, TICKET_SEED_BYTES, (const uint8_t *)text,
		sizeof(text), digest, &digest_bytes);
	assert(is_done);
	assert(bytes <= digest_bytes);
	memcpy(out, digest, bytes);
	OPENSSL_cleanse(digest, sizeof(digest));
}

void ticket_add(struct ticket_keys *keys, const uint8_t *seed)
{
	assert(keys->count < TICKET_KEYS_MAX);
	struct ticket_key *key = &keys->of[keys->count++];
	derive(seed, 'n', key->name, sizeof(key->name));
	derive(seed, 'c', key->cipher, sizeof(key->cipher));
	derive(seed, 'm', key->mac, sizeof(key->mac));
}

const struct ticket_key *ticket_find(const struct ticket_keys *keys, const uint8_t *name)
{
	for (uint32_t i = 0; i < keys->count; i++)
		if (memcmp(keys->of[i].name, name, TICKET_NAME_BYTES) == 0)
			return &keys->of[i];
	return NULL;
}

static bool set_mac(EVP_MAC_CTX *mac, const struct ticket_key *key)
{
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
		OSSL_PARAM_construct_end()};
	return EVP_MAC_init(mac, key->mac, sizeof(key->mac), params);
}

static int seal(const struct ticket_keys *keys, const EVP_CIPHER *fetched, uint8_t *name,
	uint8_t *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac)
{
	const struct ticket_key *key = &keys->of[0];
	if (keys->count == 0)
		return 0;
	memcpy(name, key->name, sizeof(key->name));
	bool is_good = RAND_bytes(iv, IV_BYTES) == 1 &&
		       EVP_EncryptInit_ex2(cipher, fetched, key->cipher, iv, NULL) == 1;
	return is_good && set_mac(mac, key) ? 1 : -1;
}

int ticket_choose(const struct ticket_keys *keys, const EVP_CIPHER *fetched, uint8_t *name,
	uint8_t *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, bool is_new)
{
	if (is_new)
		return seal(keys, fetched, name, iv, cipher, mac);
	const struct ticket_key *key = ticket_find(keys, name);
	if (!key)
		return 0;
	if (!set_mac(mac, key) || !EVP_DecryptInit_ex2(cipher, fetched, key->cipher, iv, NULL))
		return -1;
	return key == &keys->of[0] ? 1 : 2;
}
