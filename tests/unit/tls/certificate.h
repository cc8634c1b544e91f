// Certificates made for a test, as good or as bad as it needs.
#pragma once

#include <openssl/x509.h>
#include <stdbool.h>

#include "dataplane/tls/identity.h"

// Who signs: a key and its own certificate.
struct certificate {
	EVP_PKEY *key;
	X509 *x509;
};

struct certificate_recipe {
	const char *subject; // common name
	const char *names; // subjectAltName: "DNS:shop.example,IP:192.0.2.1"; NULL: none
	const char *usage; // extendedKeyUsage; NULL: none
	bool is_authority;
	bool is_rsa; // the key; else P-256
	long from_s, until_s; // from now; both 0: an hour either way
};

// `issuer` NULL: signed by itself.
struct certificate certificate_make(
	const struct certificate_recipe *recipe, const struct certificate *issuer);
void certificate_free(struct certificate *certificate);

// Write certificates to a new file below the folder of the test and return its path, good until the
// next call; the file is removed by certificate_remove_file().
const char *certificate_file(const struct certificate *const *certificates, int count);
void certificate_remove_file(const char *path);

// Write an OCSP response that says yes to a certificate until then, from now, signed by its issuer,
// to a new file and return its path, which the caller frees and certificate_remove_file() removes.
char *certificate_response(
	const struct certificate *certificate, const struct certificate *issuer, long until_s);

// Write a certificate and its key to two new files. certificate_remove_pair() removes them.
struct identity_files certificate_pair(const struct certificate *certificate);
void certificate_remove_pair(struct identity_files *files);
