// A link of the product promises: replies in order, at most one for each batch, none after the
// connection is gone. So what comes late here is a batch that arrives though its connection is no
// more (a stray), and whose reply nobody waits for.
//
// A store that forgets is the journal, played again up to a moment of the past.

#include "tests/sim/cluster/network.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/controller/random.h"

static bool chance(struct network *n, double share)
{
	return share > 0 && (double)random_below(n->random, 1000000) < share * 1e6;
}

static uint64_t delay(struct network *n)
{
	return random_below(n->random, n->faults.delay_max_ms + 1);
}

static void name_run(struct network *n)
{
	snprintf(n->run, sizeof(n->run), "%040u", ++n->runs);
}

void network_init(struct network *n, uint64_t *random)
{
	*n = (struct network){.random = random};
	model_init(&n->model);
	name_run(n);
}

static void forget(struct network_batch *batch)
{
	free(batch->entries);
	batch->entries = NULL;
}

static void drop_news(struct network_link *link)
{
	for (uint32_t i = 0; i < NETWORK_NEWS; i++) {
		free(link->news[i].text);
		link->news[i].text = NULL;
	}
}

void network_fini(struct network *n)
{
	model_fini(&n->model);
	for (uint32_t i = 0; i < n->journal.count; i++)
		forget(&n->journal.at[i].batch);
	free(n->journal.at);
	for (uint32_t i = 0; i < n->link_count; i++) {
		struct network_link *link = &n->links[i];
		forget(&link->batch);
		for (uint32_t s = 0; s < NETWORK_STRAYS; s++)
			forget(&link->strays[s]);
		free(link->reply);
		drop_news(link);
	}
}

void network_add(struct network *n, struct appliance *appliance)
{
	assert(n->link_count < NETWORK_LINKS);
	n->links[n->link_count++].appliance = appliance;
}

uint64_t network_raw(const struct network *n, uint64_t world_ms)
{
	return (uint64_t)((int64_t)world_ms + n->clock_ms);
}

// Records point into their sender; here they have at most a few bytes.
static struct network_batch copy(const struct ledger_batch *batch)
{
	struct network_batch c = {.is = *batch};
	const size_t bytes = batch->count * sizeof(*batch->entries);
	size_t extra = 0;
	for (uint32_t i = 0; i < batch->count; i++)
		extra += batch->entries[i].kind == LEDGER_RECORD ? batch->entries[i].record.len : 0;
	c.entries = malloc(bytes + extra + 1);
	assert(c.entries);
	memcpy(c.entries, batch->entries, bytes);
	uint8_t *at = (uint8_t *)c.entries + bytes;
	for (uint32_t i = 0; i < batch->count; i++) {
		struct ledger_record *r = &c.entries[i].record;
		if (c.entries[i].kind != LEDGER_RECORD || r->len == 0)
			continue;
		memcpy(at, r->bytes, r->len);
		r->bytes = at;
		at += r->len;
	}
	c.is.entries = c.entries;
	return c;
}

// --- the store

static void publish(struct network *n, uint64_t world_ms)
{
	const char *told = n->model.told.at;
	for (uint32_t i = 0; *told && i < n->link_count; i++) {
		struct network_link *link = &n->links[i];
		uint32_t copies = !link->is_up || chance(n, n->faults.news_lost) ? 0 : 1;
		copies += copies && chance(n, n->faults.news_twice);
		for (uint32_t k = 0; copies > 0 && k < NETWORK_NEWS; k++) {
			if (link->news[k].text)
				continue;
			link->news[k] = (struct network_news){strdup(told), world_ms + delay(n)};
			copies--;
		}
	}
}

// The reply; the caller's.
static char *run(struct network *n, struct network_batch *batch, uint64_t world_ms)
{
	const uint64_t raw = network_raw(n, world_ms);
	char *reply = model_batch(&n->model, &batch->is, raw);
	n->batch_count++;
	if (n->taken)
		n->taken(n->ctx, &batch->is, reply);
	publish(n, world_ms);
	if (!n->has_journal) {
		forget(batch);
		return reply;
	}
	const struct network_record record = {*batch, raw, world_ms};
	MODEL_ADD(n->journal, record);
	batch->entries = NULL;
	return reply;
}

void network_fail_over(struct network *n, uint64_t lost_ms, uint64_t down_ms, uint64_t world_ms)
{
	assert(n->has_journal);
	name_run(n);
	model_fini(&n->model);
	model_init(&n->model);
	uint32_t kept = 0;
	for (; kept < n->journal.count; kept++) {
		struct network_record *r = &n->journal.at[kept];
		if (r->at_ms + lost_ms > world_ms)
			break;
		free(model_batch(&n->model, &r->batch.is, r->raw_ms));
	}
	for (uint32_t i = kept; i < n->journal.count; i++)
		forget(&n->journal.at[i].batch);
	n->journal.count = kept;
	n->down_until_ms = world_ms + down_ms;
	for (uint32_t i = 0; i < n->link_count; i++) {
		for (uint32_t s = 0; s < NETWORK_STRAYS; s++)
			forget(&n->links[i].strays[s]);
		forget(&n->links[i].batch);
		network_break(n, i, world_ms);
	}
}

// --- links

static bool is_reachable(const struct network *n, const struct network_link *link, uint64_t ms)
{
	return ms >= n->down_until_ms && ms >= link->cut_until_ms;
}

static void clear(struct network *n, struct network_link *link, uint64_t world_ms)
{
	if (link->batch.entries && link->batch.at_ms != UINT64_MAX)
		for (uint32_t s = 0; s < NETWORK_STRAYS && link->batch.entries; s++) {
			if (link->strays[s].entries)
				continue;
			link->strays[s] = link->batch;
			link->batch.entries = NULL;
		}
	forget(&link->batch);
	free(link->reply);
	link->reply = NULL;
	link->has_batch = link->is_up = false;
	link->connect_ms = world_ms + 1 + random_below(n->random, NETWORK_AGAIN_MS);
	drop_news(link);
}

void network_break(struct network *n, uint32_t i, uint64_t world_ms)
{
	struct network_link *link = &n->links[i];
	const bool was_up = link->is_up;
	clear(n, link, world_ms);
	if (was_up && link->appliance->state == APPLIANCE_UP)
		member_lost(link->appliance->member, appliance_now(link->appliance, world_ms));
	else
		link->is_lost |= was_up;
	link->appliance->out = NULL;
}

void network_reset(struct network *n, uint32_t i, uint64_t world_ms)
{
	clear(n, &n->links[i], world_ms);
	n->links[i].is_lost = false;
}

static void take_out(struct network *n, struct network_link *link, uint64_t world_ms)
{
	struct appliance *a = link->appliance;
	link->batch = copy(a->out);
	a->out = NULL;
	link->has_batch = true;
	link->sent_ms = world_ms;
	link->sent_now = appliance_now(a, world_ms);
	link->batch.at_ms = chance(n, n->faults.lost) ? UINT64_MAX : world_ms + delay(n);
}

static void arrive(struct network *n, struct network_link *link, uint64_t world_ms)
{
	for (uint32_t s = 0; s < NETWORK_STRAYS; s++) {
		struct network_batch *stray = &link->strays[s];
		if (stray->entries && stray->at_ms <= world_ms && world_ms >= n->down_until_ms)
			free(run(n, stray, world_ms));
	}
	if (!link->batch.entries || link->batch.at_ms > world_ms ||
		!is_reachable(n, link, world_ms))
		return;
	char *reply = run(n, &link->batch, world_ms);
	free(link->reply);
	link->reply = reply;
	link->arrived_ms = world_ms;
	link->arrived_news = n->model.news;
	link->reply_ms = chance(n, n->faults.lost) ? UINT64_MAX : world_ms + delay(n);
}

static void hear(struct network_link *link, uint64_t world_ms)
{
	struct appliance *a = link->appliance;
	const uint64_t now = appliance_now(a, world_ms);
	for (uint32_t i = 0; i < NETWORK_NEWS; i++) {
		struct network_news *news = &link->news[i];
		if (!news->text || news->at_ms > world_ms)
			continue;
		const bool is_read = member_news(a->member, news->text, strlen(news->text), now);
		if (!is_read)
			fprintf(stderr, "%s\n", news->text);
		assert(is_read);
		free(news->text);
		news->text = NULL;
	}
	if (!link->reply || link->reply_ms > world_ms)
		return;
	char *reply = link->reply;
	link->reply = NULL;
	link->has_batch = false;
	const bool is_read = member_reply(a->member, reply, strlen(reply), link->sent_now, now);
	struct member_status status;
	member_status(a->member, &status);
	if (status.is_ready && !status.is_resyncing && status.cursor >= link->arrived_news)
		a->heard_ms = link->arrived_ms;
	if (!is_read)
		fprintf(stderr, "%s\n", reply);
	assert(is_read);
	free(reply);
}

static void turn(struct network *n, uint32_t i, uint64_t world_ms)
{
	struct network_link *link = &n->links[i];
	struct appliance *a = link->appliance;
	arrive(n, link, world_ms);
	if (a->state != APPLIANCE_UP)
		return;
	if (link->is_lost)
		member_lost(a->member, appliance_now(a, world_ms));
	link->is_lost = false;
	if (!link->is_up && world_ms >= link->connect_ms && is_reachable(n, link, world_ms)) {
		link->is_up = true;
		a->out = NULL;
		member_connected(a->member, n->run, appliance_now(a, world_ms));
	}
	if (!link->is_up)
		return;
	if (is_reachable(n, link, world_ms))
		hear(link, world_ms);
	if (link->has_batch && world_ms > link->sent_ms + NETWORK_ANSWER_MS)
		network_break(n, i, world_ms);
	else if (a->out && !link->has_batch)
		take_out(n, link, world_ms);
}

void network_turn(struct network *n, uint64_t world_ms)
{
	for (uint32_t i = 0; i < n->link_count; i++)
		turn(n, i, world_ms);
}
