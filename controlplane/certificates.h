// The certificates that we show to visitors: read, and found good, before anything goes over to the
// configuration that names them.
#pragma once

#include "config/config.h"
#include "dataplane/tls/identity.h"

struct certificates;

// Read what the listeners name. Which listeners there are is said at start: one whose address the
// next configuration has not keeps its certificates until the restart that this needs.
//   started, next  the configuration of the start, and the one to go over to; for the call
//   before         those in force; NULL at start
//   workers        that will use them
// Returns 0, or -errno with the reason logged; owned by the caller: certificates_free().
int certificates_load(const struct config *started, const struct config *next,
	const struct certificates *before, unsigned workers, struct certificates **certificates);
void certificates_free(struct certificates *certificates); // accepts NULL

// Those of a listener, by its index at start; NULL: plain. Borrowed.
struct identity *certificates_of(const struct certificates *certificates, uint32_t listener);

// Whether something is wrong with such files: for struct config_machine.
bool certificates_fault(const struct config_certificate *files, struct config_fault *fault);

// Warn of files that this user cannot read: a reload will fail. After privileges were dropped.
void certificates_warn_unreadable(const struct config *config);
