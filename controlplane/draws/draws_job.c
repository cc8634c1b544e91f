// The draw. Half a million take about a tenth of a second where the processor has instructions for
// SHA-256, half a second where it has not.

#include "controlplane/draws/draws_job.h"

#include "dataplane/gate/mac_state.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>

#define LINES 3840u // of the list, hashed at once
static_assert(DRAWS_JOB_SHA_BYTES == 32, "SHA-256");

static void hash_ids(struct draws_job *job)
{
	for (uint64_t i = 0; i < job->taken; i++) {
		const uint64_t visitor = atomic_load_explicit(&job->ids[i], memory_order_acquire);
		if (visitor != 0)
			job->hashes[job->count++] = mac_state_word(&job->mac, visitor);
	}
}

// Of sorted hashes. (Two people have the same one once in ten million draws of two million.)
static void drop_twins(struct draws_job *job)
{
	uint64_t kept = 0;
	for (uint64_t i = 0; i < job->count; i++)
		if (kept == 0 || job->hashes[kept - 1] != job->hashes[i])
			job->hashes[kept++] = job->hashes[i];
	job->count = kept;
}

static int hash_list(struct draws_job *job)
{
	static _Thread_local char text[LINES * DRAW_LINE_BYTES];
	EVP_MD_CTX *sha = EVP_MD_CTX_new();
	bool is_good = sha && EVP_DigestInit_ex(sha, EVP_sha256(), NULL);
	for (uint64_t at = 0; is_good && at < job->count; at += LINES) {
		const uint64_t lines = job->count - at < LINES ? job->count - at : LINES;
		draw_text(job->hashes, at, lines, text);
		is_good = EVP_DigestUpdate(sha, text, lines * DRAW_LINE_BYTES);
	}
	is_good = is_good && EVP_DigestFinal_ex(sha, job->list_sha256, NULL);
	EVP_MD_CTX_free(sha);
	return is_good ? 0 : -ENOMEM;
}

int draws_job_run(struct draws_job *job)
{
	job->count = 0;
	job->hashes = malloc((job->taken + 1) * sizeof(*job->hashes));
	uint64_t *scratch = malloc((job->taken + 1) * sizeof(*scratch));
	job->error = job->hashes && scratch ? 0 : -ENOMEM;
	if (job->error == 0) {
		hash_ids(job);
		draw_sort(job->hashes, scratch, job->count);
		if (job->is_unique)
			drop_twins(job);
		job->error = hash_list(job);
	}
	free(scratch);
	if (job->error < 0) {
		free(job->hashes);
		job->hashes = NULL;
	}
	return job->error;
}

static void *run(void *context)
{
	struct draws_job *job = context;
	pthread_setname_np(pthread_self(), "sluice-draw");
	draws_job_run(job);
	atomic_store(&job->is_done, true);
	return NULL;
}

int draws_job_start(struct draws_job *job)
{
	pthread_t thread;
	assert(!job->is_running);
	atomic_store(&job->is_done, false);
	int error = pthread_create(&thread, NULL, run, job);
	if (error)
		return -error;
	job->thread = thread;
	job->is_running = true;
	return 0;
}

bool draws_job_is_done(struct draws_job *job, bool wait)
{
	assert(job->is_running);
	if (!wait && !atomic_load(&job->is_done))
		return false;
	pthread_join(job->thread, NULL);
	job->is_running = false;
	return true;
}
