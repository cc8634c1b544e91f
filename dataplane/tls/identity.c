// All names of all certificates in one sorted table: a search for the name, then one for "*." and
// what follows its first label (RFC 6125 6.4.3: a wildcard stands for one label).
//
// Two certificates for the same names, one RSA and one EC, go into each other's contexts, so that
// OpenSSL takes what the client can verify.

#include "dataplane/tls/identity.h"

#include "dataplane/tls/material.h"
#include "dataplane/tls/server.h"

#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 253 // of a host name (RFC 1035 2.3.4)

struct name {
	char *text; // lower case; "*.shop.example" stands for one label more
	unsigned index; // of the certificate
};

struct identity {
	unsigned holders, workers, count;
	unsigned name_count, names_max;
	struct name *names; // sorted, each once
	SSL_CTX *contexts[]; // workers x count
};

static const char *lower(const char *text, size_t len, char to[NAME_BYTES_MAX + 1])
{
	if (len == 0 || len > NAME_BYTES_MAX)
		return NULL;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\0')
			return NULL;
		to[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
	}
	to[len] = '\0';
	return to;
}

// ---- Names ----

static bool add_name(struct identity *identity, const ASN1_STRING *from, unsigned index)
{
	char text[NAME_BYTES_MAX + 1];
	if (!lower((const char *)ASN1_STRING_get0_data(from), (size_t)ASN1_STRING_length(from),
		    text))
		return true; // such a name cannot be asked for
	if (identity->name_count == identity->names_max) {
		unsigned room = identity->names_max * 2 + 16;
		struct name *names =
			realloc(identity->names, room * sizeof(*names)); // COLD: control
		if (!names)
			return false;
		identity->names = names;
		identity->names_max = room;
	}
	struct name *name = &identity->names[identity->name_count];
	*name = (struct name){strdup(text), index};
	identity->name_count += name->text != NULL;
	return name->text;
}

// What a certificate is for: its DNS names; its common name only if it has no other kind of name.
static bool add_names(struct identity *identity, X509 *leaf, unsigned index)
{
	bool is_good = true;
	GENERAL_NAMES *names = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
	X509_NAME *subject = X509_get_subject_name(leaf);
	for (int i = 0; i < sk_GENERAL_NAME_num(names); i++) {
		int type;
		ASN1_STRING *value =
			GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(names, i), &type);
		if (type == GEN_DNS)
			is_good &= add_name(identity, value, index);
	}
	int at = names ? -1 : X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
	if (at >= 0)
		is_good &= add_name(identity,
			X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), index);
	GENERAL_NAMES_free(names);
	return is_good;
}

static int by_text(const void *a, const void *b)
{
	const struct name *x = a, *y = b;
	int order = strcmp(x->text, y->text);
	return order ? order : (x->index > y->index) - (x->index < y->index);
}

// Of equal names the first certificate's stays.
static void sort_names(struct identity *identity)
{
	unsigned kept = 0;
	if (identity->name_count > 0)
		qsort(identity->names, identity->name_count, sizeof(struct name), by_text);
	for (unsigned i = 0; i < identity->name_count; i++) {
		if (kept > 0 &&
			strcmp(identity->names[kept - 1].text, identity->names[i].text) == 0)
			free(identity->names[i].text);
		else
			identity->names[kept++] = identity->names[i];
	}
	identity->name_count = kept;
}

static int compare(const void *text, const void *name)
{
	return strcmp(text, ((const struct name *)name)->text);
}

static const struct name *search(const struct identity *identity, const char *text)
{
	if (identity->name_count == 0)
		return NULL;
	return bsearch(text, identity->names, identity->name_count, sizeof(struct name), compare);
}

SSL_CTX *identity_find(const struct identity *identity, unsigned worker, const char *name)
{
	char text[NAME_BYTES_MAX + 1];
	assert(worker < identity->workers);
	if (!lower(name, strnlen(name, NAME_BYTES_MAX + 1), text))
		return NULL;
	const struct name *found = search(identity, text);
	char *dot = strchr(text, '.');
	if (!found && dot && dot > text) {
		dot[-1] = '*';
		found = search(identity, dot - 1);
	}
	return found ? identity->contexts[worker * identity->count + found->index] : NULL;
}

SSL_CTX *identity_first(const struct identity *identity, unsigned worker)
{
	assert(worker < identity->workers);
	return identity->contexts[worker * identity->count];
}

// ---- Contexts ----

// Whether the names of two certificates are the same, as they stand there.
static bool has_same_names(const X509 *a, const X509 *b)
{
	const X509 *both[] = {a, b};
	const ASN1_OCTET_STRING *names[2] = {NULL, NULL};
	for (int i = 0; i < 2; i++) {
		int at = X509_get_ext_by_NID(both[i], NID_subject_alt_name, -1);
		if (at >= 0)
			names[i] = X509_EXTENSION_get_data(X509_get_ext(both[i], at));
	}
	return names[0] && names[1] && ASN1_OCTET_STRING_cmp(names[0], names[1]) == 0;
}

static bool use(SSL_CTX *context, const struct material *material)
{
	EVP_PKEY *key = EVP_PKEY_dup(material->key); // its locks are this worker's alone
	bool is_good = key && SSL_CTX_use_cert_and_key(
				      context, material->leaf, key, material->chain, 1) == 1;
	EVP_PKEY_free(key);
	return is_good;
}

// The context of one certificate, and of the other kind's for the same names. NULL: OpenSSL's
// queue says why.
static SSL_CTX *make_context(const struct material *all, unsigned count, unsigned index)
{
	ERR_clear_error();
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	const struct material *own = &all[index];
	if (!context || !server_prepare(context)) {
		SSL_CTX_free(context);
		return NULL;
	}
	for (unsigned i = 0; i < count; i++)
		if (i != index &&
			EVP_PKEY_get_base_id(all[i].key) != EVP_PKEY_get_base_id(own->key) &&
			has_same_names(all[i].leaf, own->leaf))
			use(context, &all[i]);
	ERR_clear_error();
	if (use(context, own))
		return context;
	SSL_CTX_free(context);
	return NULL;
}

static int fail(struct identity_fault *fault, const char *path)
{
	unsigned long error = ERR_peek_last_error();
	const char *why = ERR_reason_error_string(error);
	snprintf(fault->text, sizeof(fault->text), "%s: is no use (%s)", path,
		why ? why : "out of memory");
	fault->part = IDENTITY_CERTIFICATE;
	ERR_clear_error();
	return ERR_GET_REASON(error) == ERR_R_MALLOC_FAILURE || !error ? -ENOMEM : -EINVAL;
}

static int make_contexts(struct identity *identity, const struct identity_files *files,
	const struct material *all, struct identity_fault *fault)
{
	for (unsigned i = 0; i < identity->workers * identity->count; i++) {
		unsigned index = i % identity->count;
		fault->index = index;
		identity->contexts[i] = make_context(all, identity->count, index);
		if (!identity->contexts[i])
			return fail(fault, files[index].certificate);
	}
	return 0;
}

static int fill(struct identity *identity, const struct identity_files *files, struct material *all,
	struct identity_fault *fault)
{
	for (unsigned i = 0; i < identity->count; i++) {
		fault->index = i;
		int ret = material_read(&files[i], &all[i], fault);
		if (ret < 0)
			return ret;
		if (!add_names(identity, all[i].leaf, i))
			return fail(fault, files[i].certificate);
	}
	sort_names(identity);
	return make_contexts(identity, files, all, fault);
}

int identity_create(const struct identity_files *files, unsigned count, unsigned workers,
	struct identity **identity, struct identity_fault *fault)
{
	assert(count > 0 && count <= IDENTITY_CERTIFICATES_MAX);
	assert(workers > 0 && workers <= IDENTITY_WORKERS_MAX);
	struct material all[IDENTITY_CERTIFICATES_MAX] = {0};
	struct identity *made = // COLD: control
		calloc(1, sizeof(*made) + workers * count * sizeof(made->contexts[0]));
	*fault = (struct identity_fault){0};
	if (!made)
		return fail(fault, files[0].certificate);
	made->holders = 1;
	made->workers = workers;
	made->count = count;
	int ret = fill(made, files, all, fault);
	for (unsigned i = 0; i < count; i++)
		material_end(&all[i]);
	if (ret < 0) {
		identity_give(made);
		return ret;
	}
	*identity = made;
	return 0;
}

int identity_check(const struct identity_files *files, struct identity_fault *fault)
{
	struct material material;
	*fault = (struct identity_fault){0};
	int ret = material_read(files, &material, fault);
	if (ret < 0)
		return ret;
	SSL_CTX *context = make_context(&material, 1, 0);
	if (!context)
		ret = fail(fault, files->certificate);
	SSL_CTX_free(context);
	material_end(&material);
	return ret;
}

struct identity *identity_hold(struct identity *identity)
{
	identity->holders++;
	return identity;
}

void identity_give(struct identity *identity)
{
	if (!identity || --identity->holders > 0)
		return;
	for (unsigned i = 0; i < identity->workers * identity->count; i++)
		SSL_CTX_free(identity->contexts[i]);
	for (unsigned i = 0; i < identity->name_count; i++)
		free(identity->names[i].text);
	free(identity->names);
	free(identity);
}
