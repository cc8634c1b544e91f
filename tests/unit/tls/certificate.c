// Keys are on P-256, which is fast.

#include "tests/unit/tls/certificate.h"

#include <assert.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_extension(X509 *x509, int nid, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx_nodb(&context);
	X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
	assert(extension);
	assert(X509_add_ext(x509, extension, -1));
	X509_EXTENSION_free(extension);
}

struct certificate certificate_make(
	const struct certificate_recipe *recipe, const struct certificate *issuer)
{
	static long serial;
	struct certificate made = {
		recipe->is_rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"), X509_new()};
	long from_s = recipe->from_s, until_s = recipe->until_s;
	if (from_s == 0 && until_s == 0) {
		from_s = -3600;
		until_s = 3600;
	}
	X509_set_version(made.x509, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(made.x509), ++serial);
	X509_gmtime_adj(X509_getm_notBefore(made.x509), from_s);
	X509_gmtime_adj(X509_getm_notAfter(made.x509), until_s);
	X509_set_pubkey(made.x509, made.key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(made.x509), "CN", MBSTRING_ASC,
		(const unsigned char *)recipe->subject, -1, -1, 0);
	const struct certificate *by = issuer ? issuer : &made;
	X509_set_issuer_name(made.x509, X509_get_subject_name(by->x509));
	add_extension(made.x509, NID_basic_constraints,
		recipe->is_authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (recipe->names)
		add_extension(made.x509, NID_subject_alt_name, recipe->names);
	if (recipe->usage)
		add_extension(made.x509, NID_ext_key_usage, recipe->usage);
	assert(X509_sign(made.x509, by->key, EVP_sha256()));
	return made;
}

void certificate_free(struct certificate *certificate)
{
	EVP_PKEY_free(certificate->key);
	X509_free(certificate->x509);
	*certificate = (struct certificate){0};
}

const char *certificate_file(const struct certificate *const *certificates, int count)
{
	static char path[64];
	snprintf(path, sizeof(path), "/tmp/sluice-test-XXXXXX");
	int fd = mkstemp(path);
	assert(fd >= 0);
	FILE *file = fdopen(fd, "w");
	assert(file);
	for (int i = 0; i < count; i++)
		assert(PEM_write_X509(file, certificates[i]->x509));
	fclose(file);
	return path;
}

void certificate_remove_file(const char *path)
{
	unlink(path);
}

char *certificate_response(
	const struct certificate *certificate, const struct certificate *issuer, long until_s)
{
	char path[] = "/tmp/sluice-test-XXXXXX";
	OCSP_BASICRESP *basic = OCSP_BASICRESP_new();
	OCSP_CERTID *id = OCSP_cert_to_id(EVP_sha1(), certificate->x509, issuer->x509);
	ASN1_TIME *from = X509_gmtime_adj(NULL, -60), *until = X509_gmtime_adj(NULL, until_s);
	assert(OCSP_basic_add1_status(basic, id, V_OCSP_CERTSTATUS_GOOD, 0, NULL, from, until));
	assert(OCSP_basic_sign(basic, issuer->x509, issuer->key, EVP_sha256(), NULL, 0));
	OCSP_RESPONSE *response = OCSP_response_create(OCSP_RESPONSE_STATUS_SUCCESSFUL, basic);
	FILE *file = fdopen(mkstemp(path), "w");
	assert(file);
	unsigned char *der = NULL;
	int len = i2d_OCSP_RESPONSE(response, &der);
	assert(len > 0 && fwrite(der, (size_t)len, 1, file) == 1);
	OPENSSL_free(der);
	fclose(file);
	OCSP_RESPONSE_free(response);
	OCSP_BASICRESP_free(basic);
	OCSP_CERTID_free(id);
	ASN1_TIME_free(from);
	ASN1_TIME_free(until);
	return strdup(path);
}

// A new file, which the caller closes.
static FILE *open_new(char **path)
{
	*path = strdup("/tmp/sluice-test-XXXXXX");
	assert(*path);
	int fd = mkstemp(*path);
	assert(fd >= 0);
	FILE *file = fdopen(fd, "w");
	assert(file);
	return file;
}

struct identity_files certificate_pair(const struct certificate *certificate)
{
	char *paths[2];
	FILE *file = open_new(&paths[0]);
	assert(PEM_write_X509(file, certificate->x509));
	fclose(file);
	file = open_new(&paths[1]);
	assert(PEM_write_PrivateKey(file, certificate->key, NULL, NULL, 0, NULL, NULL));
	fclose(file);
	return (struct identity_files){paths[0], paths[1], NULL};
}

void certificate_remove_pair(struct identity_files *files)
{
	unlink(files->certificate);
	unlink(files->key);
	free((char *)files->certificate);
	free((char *)files->key);
	*files = (struct identity_files){0};
}
