// Certificates are read once. The contexts of the workers have a store of their own each, but share
// the certificates in it, which nobody changes any more; their reference counts are atomic.
//
// What stands in the file is trusted as it is, also a certificate that is no root: who names an
// issuing authority means that one, and not all that its root has ever signed.

#include "dataplane/tls/trust.h"

#include "dataplane/tls/peer.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Debian's ca-certificates; OpenSSL's default is a link to it, which another package brings.
#define SYSTEM_FILE "/etc/ssl/certs/ca-certificates.crt"
#define CHAIN_DEPTH_MAX 10 // certificates between a server's own and a trusted one
#define CHAIN_BYTES_MAX (32 << 10) // of all that a server sends

struct trust {
	unsigned holders;
	unsigned workers;
	uint64_t hash;
	SSL_CTX *contexts[TRUST_WORKERS_MAX];
};

static const char *system_file(void)
{
	const char *named = getenv(X509_get_default_cert_file_env());
	return named ? named : SYSTEM_FILE;
}

static int fail(char *error, const char *path, int number)
{
	snprintf(error, TRUST_ERROR_MAX, "%s: %s", path, strerror(number));
	return -number;
}

// Why no further certificate came.
static int take_end(const char *path, int count, char *error)
{
	unsigned long cause = ERR_peek_error();
	bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	ERR_clear_error();
	if (is_end && count > 0)
		return 0;
	if (is_end)
		snprintf(error, TRUST_ERROR_MAX, "%s: holds no certificate", path);
	else
		snprintf(error, TRUST_ERROR_MAX, "%s: its certificate %d cannot be read (%s)", path,
			count + 1, ERR_reason_error_string(cause));
	return -EINVAL;
}

// Take all certificates of a file. Returns 0 or -errno with `error` filled.
static int read_file(const char *path, STACK_OF(X509) * list, char *error)
{
	X509 *certificate;
	int ret = 0;
	FILE *file = fopen(path, "re");
	if (!file)
		return fail(error, path, errno);
	ERR_clear_error();
	while (ret == 0 && (certificate = PEM_read_X509(file, NULL, NULL, NULL))) {
		X509_check_purpose(certificate, -1, 0); // works out now what it would at first use
		if (!sk_X509_push(list, certificate)) {
			X509_free(certificate);
			ret = fail(error, path, ENOMEM);
		}
	}
	if (ret == 0)
		ret = ferror(file) ? fail(error, path, errno)
				   : take_end(path, sk_X509_num(list), error);
	fclose(file);
	return ret;
}

static uint64_t hash_all(STACK_OF(X509) * list)
{
	uint64_t hash = 0;
	for (int i = 0; i < sk_X509_num(list); i++) {
		unsigned char digest[EVP_MAX_MD_SIZE];
		uint64_t part = 0;
		if (X509_digest(sk_X509_value(list, i), EVP_sha256(), digest, NULL))
			memcpy(&part, digest, sizeof(part));
		hash = hash * 0x9e3779b97f4a7c15u + part; // the order counts; the file is ours
	}
	return hash;
}

static SSL_CTX *make_context(STACK_OF(X509) * list)
{
	SSL_CTX *context = SSL_CTX_new(TLS_method());
	if (!context)
		return NULL;
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
	bool is_good = SSL_CTX_get_min_proto_version(context) >= TLS1_2_VERSION || // as configured
		       SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
	for (int i = 0; i < sk_X509_num(list); i++)
		is_good &= X509_STORE_add_cert(store, sk_X509_value(list, i));
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_verify_depth(context, CHAIN_DEPTH_MAX);
	SSL_CTX_set_max_cert_list(context, CHAIN_BYTES_MAX);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); // an idle stream holds no buffer
	peer_watch(context);
	if (is_good)
		return context;
	SSL_CTX_free(context);
	return NULL;
}

static int make_contexts(struct trust *trust, STACK_OF(X509) * list, unsigned workers)
{
	trust->hash = hash_all(list);
	for (; trust->workers < workers; trust->workers++)
		if (!(trust->contexts[trust->workers] = make_context(list)))
			return -ENOMEM;
	return 0;
}

int trust_create(const char *path, unsigned workers, struct trust **trust, char *error)
{
	assert(workers <= TRUST_WORKERS_MAX);
	struct trust *t = calloc(1, sizeof(*t)); // COLD: control
	STACK_OF(X509) *list = sk_X509_new_null();
	path = path ? path : system_file();
	int ret = t && list ? read_file(path, list, error) : fail(error, path, ENOMEM);
	if (ret == 0 && (ret = make_contexts(t, list, workers)) < 0)
		fail(error, path, -ret);
	sk_X509_pop_free(list, X509_free);
	if (ret < 0) {
		trust_give(t);
		return ret;
	}
	t->holders = 1;
	*trust = t;
	return 0;
}

struct trust *trust_hold(struct trust *trust)
{
	trust->holders++;
	return trust;
}

void trust_give(struct trust *trust)
{
	if (!trust || (trust->holders > 0 && --trust->holders > 0))
		return;
	for (unsigned i = 0; i < trust->workers; i++)
		SSL_CTX_free(trust->contexts[i]);
	free(trust);
}

uint64_t trust_hash(const struct trust *trust)
{
	return trust->hash;
}

SSL_CTX *trust_context(const struct trust *trust, unsigned worker)
{
	assert(worker < trust->workers);
	return trust->contexts[worker];
}
