// Ticket keys: the same from the same seed anywhere, each of another name, found by it.

#include "dataplane/tls/ticket.h"

#include <openssl/evp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t seeds[3][TICKET_SEED_BYTES] = {"one", "two", "three"};

static struct ticket_keys keys_of(unsigned count)
{
	struct ticket_keys keys = {0};
	for (unsigned i = 0; i < count; i++)
		ticket_add(&keys, seeds[i]);
	return keys;
}

static void keys_come_from_seeds(void **state)
{
	(void)state;
	struct ticket_keys a = keys_of(3), b = keys_of(3);
	assert_memory_equal(&a, &b, sizeof(a));
	for (unsigned i = 0; i < 3; i++) {
		const struct ticket_key *key = &a.of[i];
		assert_ptr_equal(ticket_find(&a, key->name), key);
		assert_memory_not_equal(key->cipher, key->mac, TICKET_KEY_BYTES);
		assert_memory_not_equal(key->cipher, seeds[i], TICKET_KEY_BYTES);
		assert_memory_not_equal(key->name, a.of[(i + 1) % 3].name, TICKET_NAME_BYTES);
	}
	b = keys_of(2);
	assert_null(ticket_find(&b, a.of[2].name));
	struct ticket_keys none = {0};
	assert_null(ticket_find(&none, a.of[0].name));
}

// What OpenSSL does with the answer: seal with what was chosen, open it with what is found by name.
static int round_trip(const struct ticket_keys *seal, const struct ticket_keys *open)
{
	uint8_t name[TICKET_NAME_BYTES], iv[EVP_MAX_IV_LENGTH], text[32] = "a session", out[64];
	int len;
	EVP_CIPHER *fetched = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	EVP_MAC *fetched_mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
	EVP_MAC_CTX *mac = EVP_MAC_CTX_new(fetched_mac);
	int ret = ticket_choose(seal, fetched, name, iv, cipher, mac, true);
	if (ret > 0) {
		assert_true(EVP_EncryptUpdate(cipher, out, &len, text, sizeof(text)));
		EVP_CIPHER_CTX_reset(cipher);
		ret = ticket_choose(open, fetched, name, iv, cipher, mac, false);
	}
	if (ret > 0) {
		EVP_CIPHER_CTX_set_padding(cipher, 0);
		assert_true(EVP_DecryptUpdate(cipher, out, &len, out, sizeof(text)));
		assert_memory_equal(out, text, sizeof(text));
	}
	EVP_MAC_CTX_free(mac);
	EVP_CIPHER_CTX_free(cipher);
	EVP_MAC_free(fetched_mac);
	EVP_CIPHER_free(fetched);
	return ret;
}

static void what_openssl_is_told(void **state)
{
	(void)state;
	struct ticket_keys none = {0}, one = keys_of(1), other = {0}, both = {0};
	ticket_add(&other, seeds[1]);
	ticket_add(&both, seeds[1]);
	ticket_add(&both, seeds[0]);
	assert_int_equal(round_trip(&one, &one), 1);
	assert_int_equal(round_trip(&one, &both), 2); // good, and to be replaced
	assert_int_equal(round_trip(&one, &other), 0);
	assert_int_equal(round_trip(&one, &none), 0);
	assert_int_equal(round_trip(&none, &one), 0); // no ticket is given
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_come_from_seeds),
		cmocka_unit_test(what_openssl_is_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
