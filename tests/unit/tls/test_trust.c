// Files of certificates: what is taken, and what is said of what is not.

#include "dataplane/tls/trust.h"
#include "tests/unit/tls/certificate.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct certificate one, two;

static int make(void **state)
{
	static const struct certificate_recipe recipe = {.subject = "root", .is_authority = true};
	(void)state;
	one = certificate_make(&recipe, NULL);
	two = certificate_make(&recipe, NULL);
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	certificate_free(&one);
	certificate_free(&two);
	return 0;
}

static int stored(struct trust *trust, unsigned worker)
{
	X509_STORE *store = SSL_CTX_get_cert_store(trust_context(trust, worker));
	return sk_X509_OBJECT_num(X509_STORE_get0_objects(store));
}

static void a_context_for_each_worker(void **state)
{
	const struct certificate *list[] = {&one, &two, &one};
	char error[TRUST_ERROR_MAX];
	struct trust *trust;
	(void)state;
	const char *path = certificate_file(list, 3);
	assert_int_equal(trust_create(path, TRUST_WORKERS_MAX, &trust, error), 0);
	certificate_remove_file(path);
	for (unsigned i = 0; i < TRUST_WORKERS_MAX; i++) {
		assert_int_equal(stored(trust, i), 2); // one is there twice
		for (unsigned j = 0; j < i; j++)
			assert_ptr_not_equal(trust_context(trust, i), trust_context(trust, j));
	}
	assert_ptr_equal(trust_hold(trust), trust);
	trust_give(trust);
	assert_int_equal(stored(trust, 0), 2); // still held
	trust_give(trust);
	trust_give(NULL);
}

static uint64_t hash_of(const struct certificate *const *list, int count)
{
	char error[TRUST_ERROR_MAX];
	struct trust *trust;
	const char *path = certificate_file(list, count);
	assert_int_equal(trust_create(path, 0, &trust, error), 0);
	certificate_remove_file(path);
	uint64_t hash = trust_hash(trust);
	trust_give(trust);
	return hash;
}

static void the_hash_is_of_what_is_in_the_file(void **state)
{
	const struct certificate *list[] = {&one, &two, &one};
	(void)state;
	assert_int_equal(hash_of(list, 1), hash_of(list + 2, 1));
	assert_int_equal(hash_of(list, 2), hash_of(list, 2));
	assert_int_not_equal(hash_of(list, 1), hash_of(list, 2));
	assert_int_not_equal(hash_of(list, 1), hash_of(list + 1, 1));
	assert_int_not_equal(hash_of(list, 2), hash_of(list + 1, 2));
}

static void files_that_are_not_good(void **state)
{
	static const struct {
		const char *text; // added to a good certificate, if `has_good`
		bool has_good;
		int ret;
		const char *error; // follows the path
	} table[] = {
		{"", true, 0, NULL},
		{"some words\n", true, 0, NULL},
		{"", false, -EINVAL, ": holds no certificate"},
		{"some words\n", false, -EINVAL, ": holds no certificate"},
		{"-----BEGIN CERTIFICATE-----\n????\n-----END CERTIFICATE-----\n", true, -EINVAL,
			": its certificate 2 cannot be read (bad base64 decode)"},
		{"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", false, -EINVAL,
			": its certificate 1 cannot be read (wrong tag)"},
		{"-----BEGIN CERTIFICATE-----\nAAAA\n", true, -EINVAL,
			": its certificate 2 cannot be read (bad end line)"},
	};
	const struct certificate *list[] = {&one};
	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		char error[TRUST_ERROR_MAX] = "";
		struct trust *trust = NULL;
		const char *path = certificate_file(list, table[i].has_good);
		FILE *file = fopen(path, "a");
		fputs(table[i].text, file);
		fclose(file);
		assert_int_equal(trust_create(path, 1, &trust, error), table[i].ret);
		if (table[i].error) {
			assert_memory_equal(error, path, strlen(path));
			assert_string_equal(error + strlen(path), table[i].error);
		}
		assert_true(!trust == (table[i].ret != 0));
		trust_give(trust);
		certificate_remove_file(path);
	}
}

static void files_that_cannot_be_read(void **state)
{
	char error[TRUST_ERROR_MAX];
	struct trust *trust;
	(void)state;
	assert_int_equal(trust_create("/nowhere/ca.pem", 1, &trust, error), -ENOENT);
	assert_string_equal(error, "/nowhere/ca.pem: No such file or directory");
	assert_int_equal(trust_create("/tmp", 1, &trust, error), -EISDIR);
	assert_string_equal(error, "/tmp: Is a directory");
}

static void the_system_s(void **state)
{
	const struct certificate *list[] = {&one, &two};
	char error[TRUST_ERROR_MAX];
	struct trust *trust;
	(void)state;
	const char *path = certificate_file(list, 2);
	setenv("SSL_CERT_FILE", path, 1);
	assert_int_equal(trust_create(NULL, 1, &trust, error), 0);
	assert_int_equal(stored(trust, 0), 2);
	trust_give(trust);
	certificate_remove_file(path);
	assert_int_equal(trust_create(NULL, 1, &trust, error), -ENOENT);
	assert_memory_equal(error, path, strlen(path));
	unsetenv("SSL_CERT_FILE");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_context_for_each_worker),
		cmocka_unit_test(the_hash_is_of_what_is_in_the_file),
		cmocka_unit_test(files_that_are_not_good),
		cmocka_unit_test(files_that_cannot_be_read),
		cmocka_unit_test(the_system_s),
	};
	return cmocka_run_group_tests(tests, make, unmake);
}
