// Everything that can be wrong with files is said here, with the file's name first. What OpenSSL
// itself objects to when it is given the result (a key too short) is identity.c's to say.

#include "dataplane/tls/material.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ocsp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct staple {
	uint64_t until_s; // unix time of its next update; 0: it does not say
	size_t bytes;
	char response[];
};

__attribute__((format(printf, 4, 5))) static int say(
	struct identity_fault *fault, enum identity_part part, int ret, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	vsnprintf(fault->text, sizeof(fault->text), format, values);
	va_end(values);
	fault->part = (uint8_t)part;
	ERR_clear_error();
	return ret;
}

static int say_errno(
	struct identity_fault *fault, enum identity_part part, const char *path, int number)
{
	return say(fault, part, -number, "%s: %s", path, strerror(number));
}

static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_error());
	return text ? text : "not as it should be";
}

// A file as OpenSSL reads it. Returns NULL with a fault.
static BIO *open_file(
	const char *path, enum identity_part part, struct identity_fault *fault, int *error)
{
	BIO *bio = NULL;
	char *bytes = malloc(IDENTITY_FILE_BYTES_MAX + 1); // COLD: control
	FILE *file = fopen(path, "re");
	size_t len = 0;
	*error = 0;
	if (!bytes || !file) {
		*error = say_errno(fault, part, path, bytes ? errno : ENOMEM);
	} else {
		len = fread(bytes, 1, IDENTITY_FILE_BYTES_MAX + 1, file);
		if (ferror(file) || len > IDENTITY_FILE_BYTES_MAX)
			*error = say_errno(fault, part, path, ferror(file) ? errno : EFBIG);
	}
	if (file)
		fclose(file);
	if (*error == 0) {
		bio = BIO_new(BIO_s_secmem());
		if (!bio || BIO_write(bio, bytes, (int)len) != (int)len)
			*error = say_errno(fault, part, path, ENOMEM);
	}
	if (bytes)
		OPENSSL_cleanse(bytes, len); // it may be the key
	free(bytes);
	if (*error == 0)
		return bio;
	BIO_free(bio);
	return NULL;
}

// ---- The certificate and its chain ----

static int read_chain(
	BIO *bio, const char *path, struct material *material, struct identity_fault *fault)
{
	X509 *next;
	ERR_clear_error();
	while ((next = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		X509_check_purpose(next, -1, 0); // works out now what it would at first use
		if (!material->leaf) {
			material->leaf = next;
		} else if (!sk_X509_push(material->chain, next)) {
			X509_free(next);
			return say_errno(fault, IDENTITY_CERTIFICATE, path, ENOMEM);
		}
	}
	bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	if (is_end && material->leaf)
		return 0;
	if (is_end)
		return say(fault, IDENTITY_CERTIFICATE, -EINVAL, "%s: holds no certificate", path);
	return say(fault, IDENTITY_CERTIFICATE, -EINVAL,
		"%s: its certificate %d cannot be read (%s)", path,
		material->leaf ? sk_X509_num(material->chain) + 2 : 1, reason());
}

static int read_certificate(
	const char *path, struct material *material, struct identity_fault *fault)
{
	int ret;
	BIO *bio = open_file(path, IDENTITY_CERTIFICATE, fault, &ret);
	if (!bio)
		return ret;
	ret = read_chain(bio, path, material, fault);
	BIO_free(bio);
	return ret;
}

// ---- The key ----

// Nobody is asked for a passphrase: whoever reads the file must be able to use it.
static int passphrase(char *to, int room, int writes, void *was_asked)
{
	(void)to;
	(void)room;
	(void)writes;
	*(bool *)was_asked = true;
	return -1;
}

static int judge_key(const char *path, const struct material *material, bool is_encrypted,
	struct identity_fault *fault)
{
	if (is_encrypted)
		return say(fault, IDENTITY_KEY, -EINVAL, "%s: is encrypted", path);
	if (!material->key)
		return say(fault, IDENTITY_KEY, -EINVAL, "%s: holds no key that can be read", path);
	int type = EVP_PKEY_get_base_id(material->key);
	if (type != EVP_PKEY_RSA && type != EVP_PKEY_EC)
		return say(fault, IDENTITY_KEY, -EINVAL, "%s: is neither RSA nor EC", path);
	if (!X509_check_private_key(material->leaf, material->key))
		return say(fault, IDENTITY_KEY, -EINVAL, "%s: is not the certificate's key", path);
	return 0;
}

static int read_key(const char *path, struct material *material, struct identity_fault *fault)
{
	bool is_encrypted = false;
	int ret;
	BIO *bio = open_file(path, IDENTITY_KEY, fault, &ret);
	if (!bio)
		return ret;
	ERR_clear_error();
	material->key = PEM_read_bio_PrivateKey(bio, NULL, passphrase, &is_encrypted);
	BIO_free(bio);
	return judge_key(path, material, is_encrypted, fault);
}

// ---- The stapled response ----

static void free_staple(
	void *parent, void *staple, CRYPTO_EX_DATA *data, int index, long number, void *pointer)
{
	(void)parent;
	(void)data;
	(void)index;
	(void)number;
	(void)pointer;
	free(staple);
}

// Where a certificate keeps its response.
static int staple_index(void)
{
	static int index = -1;
	if (index < 0)
		index = X509_get_ex_new_index(0, NULL, NULL, NULL, free_staple);
	return index;
}

// The part of a response that is about the certificate; NULL: none.
static OCSP_SINGLERESP *find_single(OCSP_BASICRESP *basic, const X509 *leaf)
{
	for (int i = 0; i < OCSP_resp_count(basic); i++) {
		OCSP_SINGLERESP *single = OCSP_resp_get0(basic, i);
		ASN1_INTEGER *serial;
		OCSP_id_get0_info(NULL, NULL, NULL, &serial,
			(OCSP_CERTID *)(uintptr_t)OCSP_SINGLERESP_get0_id(single));
		if (ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) == 0)
			return single;
	}
	return NULL;
}

static uint64_t unix_time(const ASN1_GENERALIZEDTIME *time)
{
	struct tm tm;
	if (!time || !ASN1_TIME_to_tm(time, &tm))
		return 0;
	time_t seconds = timegm(&tm);
	return seconds > 0 ? (uint64_t)seconds : 0;
}

// Returns 0, 1 or -EINVAL, as identity_check().
//   until_s  when it runs out; 0: never
static int judge_response(const char *path, OCSP_RESPONSE *response, const X509 *leaf,
	uint64_t *until_s, struct identity_fault *fault)
{
	OCSP_BASICRESP *basic = response ? OCSP_response_get1_basic(response) : NULL;
	OCSP_SINGLERESP *single = basic ? find_single(basic, leaf) : NULL;
	ASN1_GENERALIZEDTIME *until = NULL;
	int ret = 0, status = V_OCSP_CERTSTATUS_UNKNOWN;
	if (single)
		status = OCSP_single_get0_status(single, NULL, NULL, NULL, &until);
	if (!basic)
		ret = say(fault, IDENTITY_OCSP, -EINVAL, "%s: is no OCSP response that says yes",
			path);
	else if (!single)
		ret = say(fault, IDENTITY_OCSP, -EINVAL, "%s: is about another certificate", path);
	else if (status != V_OCSP_CERTSTATUS_GOOD)
		ret = say(fault, IDENTITY_OCSP, -EINVAL, "%s: says the certificate is %s", path,
			OCSP_cert_status_str(status));
	else if (until && X509_cmp_current_time(until) < 0)
		ret = say(fault, IDENTITY_OCSP, 1, "%s: has run out: not stapled", path);
	*until_s = unix_time(until);
	OCSP_BASICRESP_free(basic);
	return ret;
}

static int keep_response(const char *path, struct span response, uint64_t until_s, X509 *leaf,
	struct identity_fault *fault)
{
	struct staple *staple = malloc(sizeof(*staple) + response.len); // COLD: control
	if (!staple || !X509_set_ex_data(leaf, staple_index(), staple)) {
		free(staple);
		return say_errno(fault, IDENTITY_OCSP, path, ENOMEM);
	}
	staple->until_s = until_s;
	staple->bytes = response.len;
	memcpy(staple->response, response.at, response.len);
	return 0;
}

static int read_response(const char *path, X509 *leaf, struct identity_fault *fault)
{
	int ret;
	char *bytes;
	BIO *bio = open_file(path, IDENTITY_OCSP, fault, &ret);
	if (!bio)
		return ret;
	long len = BIO_get_mem_data(bio, &bytes);
	const unsigned char *at = (const unsigned char *)bytes;
	OCSP_RESPONSE *response = d2i_OCSP_RESPONSE(NULL, &at, len);
	uint64_t until_s;
	ret = judge_response(path, response, leaf, &until_s, fault);
	OCSP_RESPONSE_free(response);
	if (ret == 0)
		ret = keep_response(path, (struct span){bytes, (size_t)len}, until_s, leaf, fault);
	BIO_free(bio);
	return ret;
}

struct span material_staple(const X509 *leaf, uint64_t now_s, bool *ran_out)
{
	const struct staple *staple = leaf ? X509_get_ex_data(leaf, staple_index()) : NULL;
	*ran_out = staple && staple->until_s && now_s >= staple->until_s;
	if (!staple || *ran_out)
		return (struct span){0};
	return (struct span){staple->response, staple->bytes};
}

// ---- All of it ----

static int judge_dates(const char *path, const X509 *leaf, struct identity_fault *fault)
{
	if (X509_cmp_current_time(X509_get0_notAfter(leaf)) < 0)
		return say(fault, IDENTITY_CERTIFICATE, 1, "%s: has expired", path);
	if (X509_cmp_current_time(X509_get0_notBefore(leaf)) > 0)
		return say(fault, IDENTITY_CERTIFICATE, 1, "%s: is not valid yet", path);
	return 0;
}

int material_read(
	const struct identity_files *files, struct material *material, struct identity_fault *fault)
{
	staple_index(); // is known before any worker asks for it
	*material = (struct material){.chain = sk_X509_new_null()};
	int ret = material->chain
			  ? read_certificate(files->certificate, material, fault)
			  : say_errno(fault, IDENTITY_CERTIFICATE, files->certificate, ENOMEM);
	if (ret == 0)
		ret = read_key(files->key, material, fault);
	int warning = 0;
	if (ret == 0 && files->ocsp)
		ret = read_response(files->ocsp, material->leaf, fault);
	if (ret > 0)
		warning = ret, ret = 0;
	if (ret < 0) {
		material_end(material);
		return ret;
	}
	ret = judge_dates(files->certificate, material->leaf, fault);
	return ret ? ret : warning;
}

void material_end(struct material *material)
{
	X509_free(material->leaf);
	sk_X509_pop_free(material->chain, X509_free);
	EVP_PKEY_free(material->key);
	*material = (struct material){0};
}
