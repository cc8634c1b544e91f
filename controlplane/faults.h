// Why origins' servers cannot be spoken to over TLS, for the log: of each server at once when that
// begins, then at most once a minute. Pure.
#pragma once

#include <stdint.h>

#define FAULTS_SERVERS_MAX 256u // that have had trouble; of those beyond nothing is said
#define FAULTS_QUIET_US 60000000u

struct faults_server {
	uint64_t id; // of origin_table_server; 0: this place is free
	uint64_t failures; // noted since the last faults_take(), of all workers
	uint64_t said; // of these, when last said
	uint64_t quiet_until_us;
	uint32_t fault; // dataplane/tls/fault.h
};

// Begin with {0}.
struct faults {
	struct faults_server servers[FAULTS_SERVERS_MAX];
};

// What is to be said of a server.
struct faults_due {
	uint64_t id;
	uint64_t fresh; // failures since last said
	uint32_t fault; // the latest
};

// One worker's figures of a server: handshakes that failed since the server is known, and why the
// latest did, 0 if it did not.
void faults_note(struct faults *faults, uint64_t id, uint32_t failures, uint32_t fault);

// After all have been noted: what is to be said now, at most FAULTS_SERVERS_MAX. Returns how many.
// A server that nobody has noted is forgotten.
uint32_t faults_take(struct faults *faults, uint64_t now_us, struct faults_due *due);
