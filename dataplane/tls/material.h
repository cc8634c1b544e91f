// One certificate with its key and, perhaps, a stapled response: read from files, judged, decoded.
// Control only.
#pragma once

#include <openssl/x509.h>

#include "dataplane/tls/identity.h"
#include "drivers/span.h"

struct material {
	X509 *leaf;
	STACK_OF(X509) * chain; // without it
	EVP_PKEY *key;
};

// Read a set of files and decode it. Returns as identity_check() does; -errno: nothing is held.
// Ended by material_end(), which accepts all zero.
int material_read(const struct identity_files *files, struct material *material,
	struct identity_fault *fault);
void material_end(struct material *material);

// The response that was read with a certificate. It lives as long as that does.
//   now_s     unix time, at which it must not have run out; 0: it counts as good
//   ran_out   set if it has
// Returns it; empty: there is none, or it has run out.
struct span material_staple(const X509 *leaf, uint64_t now_s, bool *ran_out);
