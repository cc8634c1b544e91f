// The draw itself: from ids and a seed to a sorted list and its SHA-256, on a thread of its own, so
// that neither workers nor control wait for it.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/draw.h"
#include "dataplane/gate/gather.h"

#define DRAWS_JOB_SHA_BYTES 32u

struct draws_job {
	// Set by the caller; the ids stay as they are.
	const _Atomic uint64_t *ids; // 0: nobody's
	uint64_t taken; // of the ids, those to look at
	bool is_unique; // drop who is there twice
	struct mac_key mac;
	// Filled in.
	uint64_t *hashes; // the caller's, to be freed
	uint64_t count; // ids that were written
	uint8_t list_sha256[DRAWS_JOB_SHA_BYTES];
	int error; // 0, or -ENOMEM
	// Its own.
	unsigned long thread;
	bool is_running;
	_Atomic bool is_done;
};

// Do it now. At a start. Returns 0 or -ENOMEM.
int draws_job_run(struct draws_job *job);

// Begin it on another thread. Returns 0 or -errno.
int draws_job_start(struct draws_job *job);

// Whether it has come to its end; then `error` says how. To be called until true; with `wait` it
// is.
bool draws_job_is_done(struct draws_job *job, bool wait);
