// The certificates by which a configuration's origins are verified: read, and found good, before
// anything goes over to that configuration.
#pragma once

#include "config/config.h"
#include "dataplane/tls/trust.h"

struct trusts;

// Read what the sites with `origin.tls` name; a file that several name once.
//   config   only for the call
//   workers  that will use them
// Returns 0, or -EIO or -ENOMEM with the reason logged.
int trusts_load(const struct config *config, unsigned workers, struct trusts **trusts);
void trusts_free(struct trusts *trusts); // accepts NULL

// What the servers of a site, by its index, are verified by; NULL: plain. Borrowed.
struct trust *trusts_of(const struct trusts *trusts, uint32_t site);

// What is wrong with a file of certificates (NULL: the system's), beginning with its name; NULL:
// nothing. The text is good until the next call.
const char *trusts_error(const char *ca);
