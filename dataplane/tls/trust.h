// Trust: whose signature makes a server's certificate good, as one file of certificates says.
//
// Files are read, and all that can be wrong with them is found, when a trust is made: by control,
// at start and at a reload. A worker takes its own SSL_CTX from it, which no other thread uses:
// what threads share in OpenSSL they lock. A trust is immutable.
#pragma once

#include <stdint.h>

struct ssl_ctx_st;
struct trust;

#define TRUST_WORKERS_MAX 64u
#define TRUST_ERROR_MAX 512 // bytes of an error's text

// Read certificates and make a context for each worker.
//   path     a PEM file; NULL: the system's ($SSL_CERT_FILE, or that of ca-certificates)
//   workers  up to TRUST_WORKERS_MAX; 0: only find out whether the file is good
//   trust    held once, by the caller
//   error    TRUST_ERROR_MAX bytes; what is wrong, beginning with the file
// Returns 0 or -errno: of open(2), -EINVAL (no certificate in it, or one that cannot be read),
// -ENOMEM. Reads a file: control only.
int trust_create(const char *path, unsigned workers, struct trust **trust, char *error);

// Hold it once more; let go of it, which frees it the last time. A stream outlives the trust that
// it began with. Control only. trust_give() accepts NULL.
struct trust *trust_hold(struct trust *trust);
void trust_give(struct trust *trust);

// A hash of all its certificates, in their order: the same for the same file, whenever it is read.
uint64_t trust_hash(const struct trust *trust);

// The context of that worker, for it alone: TLS 1.2 and 1.3, verifying. Borrowed.
struct ssl_ctx_st *trust_context(const struct trust *trust, unsigned worker);
