// A list of what waits; it is short: a few entries a draw.

#include "controlplane/draws/retired.h"

#include "controlplane/draws/gathering.h"

#include <openssl/crypto.h>
#include <stdlib.h>
#include <sys/mman.h>

void retired_add(
	struct retired *r, enum retired_kind kind, void *what, uint64_t bytes, uint64_t token)
{
	if (!what)
		return;
	struct retired_entry *entry = malloc(sizeof(*entry));
	if (!entry)
		return;
	*entry = (struct retired_entry){what, bytes, token, r->first, (uint8_t)kind};
	r->first = entry;
}

static bool is_read(const struct retired_entry *entry)
{
	const struct gathering *g = entry->what;
	return entry->kind == RETIRED_GATHERING && atomic_load(&g->list.readers) > 0;
}

static void give(const struct retired_entry *entry)
{
	struct gathering *g = entry->what;
	if (entry->kind == RETIRED_MAPPING)
		munmap(entry->what, entry->bytes);
	if (entry->kind == RETIRED_GATHERING) {
		draws_file_close(&g->file);
		free(g->job.hashes);
		OPENSSL_cleanse(g, sizeof(*g));
	}
	if (entry->kind != RETIRED_MAPPING)
		free(entry->what);
}

void retired_turn(struct retired *r, bool (*passed)(void *ctx, uint64_t token), void *ctx)
{
	for (struct retired_entry **at = &r->first; *at;) {
		struct retired_entry *entry = *at;
		if (passed && (!passed(ctx, entry->token) || is_read(entry))) {
			at = &entry->next;
			continue;
		}
		*at = entry->next;
		give(entry);
		free(entry);
	}
}
