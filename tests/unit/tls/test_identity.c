// Identities: which certificate a name gets, checked against a twin that looks at all of them; and
// what is said of files that are no use.

#include "dataplane/tls/identity.h"

#include "tests/unit/tls/certificate.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

// An identity with a certificate for each of these names, and which of them each of its contexts
// is for.
static struct identity *identity_of(
	const struct certificate_recipe *recipes, unsigned count, unsigned workers)
{
	struct identity_files files[IDENTITY_CERTIFICATES_MAX] = {0};
	struct identity_fault fault;
	struct identity *identity;
	for (unsigned i = 0; i < count; i++) {
		struct certificate made = certificate_make(&recipes[i], NULL);
		files[i] = certificate_pair(&made);
		certificate_free(&made);
	}
	assert_int_equal(identity_create(files, count, workers, &identity, &fault), 0);
	for (unsigned i = 0; i < count; i++)
		certificate_remove_pair(&files[i]);
	return identity;
}

// The common name of a context's certificate, which tells them apart.
static const char *subject_of(SSL_CTX *context)
{
	static char text[64];
	if (!context)
		return "none";
	X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_CTX_get0_certificate(context)),
		NID_commonName, text, sizeof(text));
	return text;
}

static void names(void **state)
{
	static const struct certificate_recipe recipes[] = {
		{.subject = "0", .names = "DNS:first.example,DNS:*.wild.example"},
		{.subject = "1", .names = "DNS:Exact.wild.example,DNS:first.example"},
		{.subject = "2", .names = "DNS:*.deep.wild.example,IP:192.0.2.1"},
		{.subject = "common.example"},
	};
	static const struct {
		const char *asked, *gets;
	} table[] = {
		{"first.example", "0"}, // the first among equals
		{"FIRST.example", "0"},
		{"a.wild.example", "0"},
		{"exact.wild.example", "1"}, // an exact one first
		{"a.deep.wild.example", "2"},
		{"deep.wild.example", "0"},
		{"a.b.wild.example", "none"}, // one label alone
		{"wild.example", "none"},
		{".wild.example", "none"},
		{"common.example", "common.example"},
		{"192.0.2.1", "none"}, // addresses are not asked for (RFC 6066 3)
		{"other.example", "none"},
		{"*.wild.example", "0"},
		{"", "none"},
		{".", "none"},
	};
	(void)state;
	struct identity *identity = identity_of(recipes, 4, 2);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		print_message("%s\n", table[i].asked);
		for (unsigned worker = 0; worker < 2; worker++)
			assert_string_equal(
				subject_of(identity_find(identity, worker, table[i].asked)),
				table[i].gets);
	}
	assert_string_equal(subject_of(identity_first(identity, 1)), "0");
	assert_ptr_not_equal(identity_first(identity, 0), identity_first(identity, 1));
	identity_give(identity);
}

static void long_names(void **state)
{
	static const struct certificate_recipe recipe = {.subject = "0", .names = "DNS:*.example"};
	char name[300];
	(void)state;
	struct identity *identity = identity_of(&recipe, 1, 1);
	memset(name, 'a', sizeof(name));
	memcpy(name + 253 - 8, ".example", 9); // of 253 bytes
	assert_non_null(identity_find(identity, 0, name));
	memset(name, 'a', sizeof(name));
	memcpy(name + 254 - 8, ".example", 9);
	assert_null(identity_find(identity, 0, name));
	identity_give(identity);
}

// ---- The twin ----

#define LABELS 3
#define CERTIFICATES 12
#define NAMES_EACH 4

static void random_name(char *to, bool may_be_wild)
{
	static const char *const labels[LABELS] = {"a", "b", "c"};
	int depth = 1 + rand() % 3, len = 0;
	if (may_be_wild && rand() % 3 == 0)
		len = snprintf(to, 16, "*.");
	for (int i = 0; i < depth; i++)
		len += snprintf(to + len, 16 - (size_t)len, "%s.", labels[rand() % LABELS]);
	snprintf(to + len, 16 - (size_t)len, "x");
}

static const char *twin_find(
	char (*all)[NAMES_EACH][16], unsigned count, const char *asked, char *index)
{
	const char *parent = strchr(asked, '.');
	for (int wild = 0; wild < 2; wild++)
		for (unsigned i = 0; i < count; i++)
			for (int j = 0; j < NAMES_EACH; j++) {
				const char *name = all[i][j];
				bool is_it = wild ? name[0] == '*' && !strcmp(name + 1, parent)
						  : !strcmp(name, asked);
				if (!is_it)
					continue;
				snprintf(index, 8, "%u", i);
				return index;
			}
	return "none";
}

static void a_table_and_its_twin(void **state)
{
	unsigned seed = (unsigned)time(NULL);
	(void)state;
	print_message("seed %u\n", seed);
	srand(seed);
	char all[CERTIFICATES][NAMES_EACH][16], subjects[CERTIFICATES][8];
	char texts[CERTIFICATES][NAMES_EACH * 24], index[8];
	struct certificate_recipe recipes[CERTIFICATES];
	for (unsigned i = 0; i < CERTIFICATES; i++) {
		int len = 0;
		for (int j = 0; j < NAMES_EACH; j++) {
			random_name(all[i][j], true);
			len += snprintf(texts[i] + len, sizeof(texts[i]) - (size_t)len, "%sDNS:%s",
				j ? "," : "", all[i][j]);
		}
		snprintf(subjects[i], 8, "%u", i);
		recipes[i] = (struct certificate_recipe){.subject = subjects[i], .names = texts[i]};
	}
	struct identity *identity = identity_of(recipes, CERTIFICATES, 1);
	for (int i = 0; i < 2000; i++) {
		char asked[16];
		random_name(asked, false);
		assert_string_equal(subject_of(identity_find(identity, 0, asked)),
			twin_find(all, CERTIFICATES, asked, index));
	}
	identity_give(identity);
}

// ---- Two kinds of key ----

static int kinds_of(SSL_CTX *context)
{
	int kinds = 0;
	for (int more = SSL_CTX_set_current_cert(context, SSL_CERT_SET_FIRST); more;
		more = SSL_CTX_set_current_cert(context, SSL_CERT_SET_NEXT))
		kinds++;
	return kinds;
}

static void two_kinds_of_key_for_the_same_names(void **state)
{
	static const struct certificate_recipe recipes[] = {
		{.subject = "0", .names = "DNS:a.example", .is_rsa = true},
		{.subject = "1", .names = "DNS:a.example"},
		{.subject = "2", .names = "DNS:b.example", .is_rsa = true},
	};
	(void)state;
	struct identity *identity = identity_of(recipes, 3, 1);
	assert_int_equal(kinds_of(identity_find(identity, 0, "a.example")), 2);
	assert_int_equal(kinds_of(identity_find(identity, 0, "b.example")), 1);
	identity_give(identity);
}

// ---- Who holds it ----

static void a_context_outlives_its_identity(void **state)
{
	static const struct certificate_recipe recipe = {.subject = "0", .names = "DNS:a.example"};
	(void)state;
	struct identity *identity = identity_of(&recipe, 1, 1);
	assert_ptr_equal(identity_hold(identity), identity);
	identity_give(identity);
	SSL *ssl = SSL_new(identity_first(identity, 0));
	identity_give(identity);
	identity_give(NULL);
	assert_string_equal(subject_of(SSL_get_SSL_CTX(ssl)), "0");
	SSL_free(ssl);
}

// ---- What is wrong with files ----

static void files(void **state)
{
	static const struct certificate_recipe good = {.subject = "s", .names = "DNS:a"},
					       old = {.subject = "s", .from_s = -9, .until_s = -5},
					       early = {
						       .subject = "s", .from_s = 90, .until_s = 99};
	struct certificate one = certificate_make(&good, NULL), two = certificate_make(&good, NULL);
	struct certificate past = certificate_make(&old, NULL);
	struct certificate future = certificate_make(&early, NULL);
	struct identity_files a = certificate_pair(&one), b = certificate_pair(&two);
	struct identity_files c = certificate_pair(&past), d = certificate_pair(&future);
	(void)state;
	const struct {
		struct identity_files files;
		int ret;
		enum identity_part part;
		const char *says;
	} table[] = {
		{a, 0, 0, ""},
		{{"/none", a.key, NULL}, -ENOENT, IDENTITY_CERTIFICATE, "/none: No such file"},
		{{a.certificate, "/none", NULL}, -ENOENT, IDENTITY_KEY, "/none: No such file"},
		{{a.certificate, a.key, "/none"}, -ENOENT, IDENTITY_OCSP, "/none: No such file"},
		{{a.key, a.key, NULL}, -EINVAL, IDENTITY_CERTIFICATE, "holds no certificate"},
		{{a.certificate, b.key, NULL}, -EINVAL, IDENTITY_KEY, "is not the certificate's"},
		{{a.certificate, a.certificate, NULL}, -EINVAL, IDENTITY_KEY, "holds no key"},
		{{a.certificate, a.key, a.key}, -EINVAL, IDENTITY_OCSP, "is no OCSP response"},
		{{"/proc", a.key, NULL}, -EISDIR, IDENTITY_CERTIFICATE, "/proc: Is a directory"},
		{{"/dev/zero", a.key, NULL}, -EFBIG, IDENTITY_CERTIFICATE, "/dev/zero: File too"},
		{c, 1, IDENTITY_CERTIFICATE, "has expired"},
		{d, 1, IDENTITY_CERTIFICATE, "is not valid yet"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct identity_fault fault;
		print_message("%s\n", table[i].says);
		assert_int_equal(identity_check(&table[i].files, &fault), table[i].ret);
		assert_int_equal(fault.part, table[i].part);
		assert_non_null(strstr(fault.text, table[i].says));
	}
	struct identity_files both[] = {a, {b.certificate, "/none", NULL}};
	struct identity_fault fault;
	struct identity *identity;
	assert_int_equal(identity_create(both, 2, 1, &identity, &fault), -ENOENT);
	assert_int_equal(fault.index, 1);
	struct identity_files *all[] = {&a, &b, &c, &d};
	for (int i = 0; i < 4; i++)
		certificate_remove_pair(all[i]);
	certificate_free(&one);
	certificate_free(&two);
	certificate_free(&past);
	certificate_free(&future);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(long_names),
		cmocka_unit_test(a_table_and_its_twin),
		cmocka_unit_test(two_kinds_of_key_for_the_same_names),
		cmocka_unit_test(a_context_outlives_its_identity),
		cmocka_unit_test(files),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
