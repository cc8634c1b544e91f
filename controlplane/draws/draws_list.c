// List: the ids of the ledger, sorted on a thread as soon as it has them all, or those that were
// said.

#include "controlplane/draws/draws_cluster.h"

#include "controlplane/draws/inside.h"

#include <stdlib.h>
#include <string.h>

// Whether the ledger has all ids: everybody who lives has told so, or was silent for long.
static bool is_whole(const struct draws_line *l, const struct gathering *g, uint64_t now_ms)
{
	const uint64_t live = l->draws->view.live;
	const uint64_t since_ms = g->ids.grown_ms > g->told_ms ? g->ids.grown_ms : g->told_ms;
	return ((g->ids.whole & live) == live || now_ms > since_ms + DRAWS_SILENCE_MS) &&
	       g->ids.count == g->ids.total && g->ids.read_ms > g->told_ms;
}

static bool has_list(const struct gathering *g)
{
	return g->job.hashes && !g->job.is_running && g->job.error == 0;
}

static bool is_as_said(const struct gathering *g)
{
	return has_list(g) && g->job.count == g->said.count &&
	       memcmp(g->job.list_sha256, g->said.list_sha256, sizeof(g->said.list_sha256)) == 0;
}

// How many ids the job is to be run with now; UINT64_MAX: it is not. Once it was run with those
// that were said and did not come out as was said (the store had lost some since, and they were
// told in another order), it is run with all there are.
static uint64_t to_draw(const struct draws_line *l, const struct gathering *g, uint64_t now_ms)
{
	const struct gathering_ids *ids = &g->ids;
	if (g->said.step == DRAWS_CLOSED) {
		const bool is_done = has_list(g) && g->tried == ids->count;
		const bool is_mine = l->draws->view.is_in_office && is_whole(l, g, now_ms);
		return is_mine && !is_done ? ids->count : UINT64_MAX;
	}
	if (is_as_said(g))
		return UINT64_MAX;
	if (!has_list(g) || g->tried != g->said.total)
		return ids->count >= g->said.total ? g->said.total : UINT64_MAX;
	return ids->is_new && ids->count >= ids->total ? ids->count : UINT64_MAX;
}

static void run_job(struct draws_line *l, struct gathering *g, uint64_t count)
{
	free(g->job.hashes);
	g->job = (struct draws_job){.ids = g->ids.at, .taken = count, .is_unique = true};
	gathering_key(g, &g->job.mac);
	g->tried = count;
	g->ids.is_new = false;
	const int ret = draws_job_start(&g->job);
	if (ret < 0)
		inside_say(l, "the draw waits: %s", strerror(-ret));
}

// Make the list, if it can be made now. The conductor does before it is said.
void inside_list_draw(struct draws_line *l, struct gathering *g, uint64_t now_ms)
{
	if (g->job.is_running && !draws_job_is_done(&g->job, false))
		return;
	const uint64_t count = g->is_gone ? UINT64_MAX : to_draw(l, g, now_ms);
	if (count != UINT64_MAX)
		run_job(l, g, count);
}

// The list, or without it: then keys are known, and places are not exact.
bool inside_list_is_ready(struct draws_line *l, struct gathering *g, uint64_t now_ms)
{
	if (g->said.step != DRAWS_DRAWN || g->job.is_running || !g->is_settled)
		return false;
	if (is_as_said(g))
		return true;
	if (!g->is_gone && now_ms < g->told_ms + DRAWS_PATIENCE_MS)
		return false;
	free(g->job.hashes);
	g->job = (struct draws_job){0};
	if (!g->is_gone)
		inside_say(l, "the store has not all ids of a draw: its places are not exact here");
	return true;
}
