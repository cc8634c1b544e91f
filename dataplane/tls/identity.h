// Identities: who we are to visitors. A listener has one or more certificates with their keys; a
// visitor gets the one for the name that it asks for.
//
//   files ──▶ identity_create() ──▶ for each certificate and worker an SSL_CTX ──▶ connections
//
// Files are read, and all that can be wrong with them is found, when an identity is made: by
// control, at start and at a reload. A worker takes its own contexts from it, which no other thread
// uses; keys are decoded once for each, since OpenSSL locks them too. An identity is immutable.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct ssl_ctx_st;
struct identity;

#define IDENTITY_WORKERS_MAX 64u
#define IDENTITY_CERTIFICATES_MAX 64u // of one listener
#define IDENTITY_FILE_BYTES_MAX (1u << 20)
#define IDENTITY_TEXT_MAX 512

// Where a certificate comes from, all PEM but `ocsp`.
struct identity_files {
	const char *certificate; // our own first, then those that lead to a known authority
	const char *key; // RSA or EC; not encrypted
	const char *ocsp; // a response of the authority to be stapled, DER; NULL: none
};

enum identity_part {
	IDENTITY_CERTIFICATE,
	IDENTITY_KEY,
	IDENTITY_OCSP,
};

// What is wrong with such files.
struct identity_fault {
	uint8_t part; // enum identity_part
	unsigned index; // of the files
	char text[IDENTITY_TEXT_MAX]; // begins with the name of the file
};

// Whether one set of files is of use. Returns 0; 1 with a fault that is none yet (it has run out,
// or is not valid yet); or -errno with a fault: of open(2), -EINVAL, -ENOMEM. Reads files: control
// only.
int identity_check(const struct identity_files *files, struct identity_fault *fault);

// Read certificates and make contexts.
//   files    `count` of them, 1 to IDENTITY_CERTIFICATES_MAX; the first is for who asks for no
//            name that any of them has
//   workers  1 to IDENTITY_WORKERS_MAX
//   identity held once, by the caller
// Returns 0 or -errno with `fault`, as identity_check() does. Control only.
int identity_create(const struct identity_files *files, unsigned count, unsigned workers,
	struct identity **identity, struct identity_fault *fault);

// Hold it once more; let go of it, which frees it the last time. A stream outlives the identity
// that it began with. Control only. identity_give() accepts NULL.
struct identity *identity_hold(struct identity *identity);
void identity_give(struct identity *identity);

// Contexts of a worker, for it alone, borrowed: the first one's; and that for a host name as a
// client sent it: an exact one's before one for all names of a domain, the first among equals; NULL
// if there is none.
struct ssl_ctx_st *identity_first(const struct identity *identity, unsigned worker);
struct ssl_ctx_st *identity_find(
	const struct identity *identity, unsigned worker, const char *name);
