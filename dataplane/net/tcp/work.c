// The pool of works, the last given first taken. Only what counts from the start is cleared: the
// sending half's two lines; the receiving half is given back as empty as it was taken.

#include "dataplane/net/tcp/work.h"

#include "dataplane/fresh.h"
#include "dataplane/net/tcp/send.h"

#include <errno.h>
#include <string.h>

#define KEPT_BYTES (TCP_KEPT_MAX * sizeof(struct tcp_kept)) // of one connection

static size_t kept_bytes(const struct tcp_plan *plan)
{
	return plan->receive_chunks * KEPT_BYTES;
}

int work_init(struct tcp *t)
{
	const uint32_t count = t->plan.works_max;
	assert(count > 0 && count < UINT32_MAX);
	t->works = fresh_map((size_t)count * sizeof(*t->works));
	t->kept = fresh_map(kept_bytes(&t->plan));
	return t->works && t->kept ? 0 : -ENOMEM;
}

void work_fini(struct tcp *t)
{
	fresh_unmap(t->works, (size_t)t->plan.works_max * sizeof(*t->works));
	fresh_unmap(t->kept, kept_bytes(&t->plan));
	t->works = NULL;
	t->kept = NULL;
}

uint64_t work_bytes(const struct tcp_plan *plan)
{
	return (uint64_t)plan->works_max * sizeof(struct tcp_work) + kept_bytes(plan);
}

// A free one, of those that have been used as long as there are; 0: none.
static uint32_t take_free(struct tcp *t)
{
	uint32_t taken = t->free_work;
	if (taken)
		t->free_work = t->works[taken - 1].next_free;
	else if (t->used_works < t->plan.works_max)
		taken = ++t->used_works;
	return taken;
}

struct tcp_work *work_take(struct tcp *t, struct tcp_conn *c)
{
	if (c->work != 0)
		return work_of(t, c);
	c->work = take_free(t);
	if (c->work == 0)
		return NULL;
	struct tcp_work *work = work_of(t, c);
	memset(&work->send, 0, offsetof(struct tcp_work_send, cubic));
	atomic_store_explicit(&t->stats.working,
		atomic_load_explicit(&t->stats.working, memory_order_relaxed) + 1,
		memory_order_relaxed);
	return work;
}

// A free one's first run says in `from` which is the next.
bool work_take_kept(struct tcp *t, struct tcp_work *work)
{
	if (work->receive.kept)
		return true;
	if (!t->free_kept && t->used_kept == t->plan.receive_chunks)
		return false;
	const uint32_t taken = t->free_kept ? t->free_kept : ++t->used_kept;
	work->receive.kept = &t->kept[(size_t)(taken - 1) * TCP_KEPT_MAX];
	t->free_kept = work->receive.kept->from; // 0 of one that is new
	return true;
}

static void give_kept(struct tcp *t, struct tcp_work *work)
{
	if (!work->receive.kept || work->receive.kept_count != 0)
		return;
	work->receive.kept->from = t->free_kept;
	t->free_kept = (uint32_t)((work->receive.kept - t->kept) / TCP_KEPT_MAX) + 1;
	work->receive.kept = NULL;
}

void work_give(struct tcp *t, struct tcp_conn *c)
{
	struct tcp_work *work = work_of(t, c);
	if (!work)
		return;
	give_kept(t, work);
	if (send_needs_work(t, c) || work->receive.kept_count != 0 || work->receive.has_fin)
		return;
	work->next_free = t->free_work;
	t->free_work = c->work;
	c->work = 0;
	atomic_store_explicit(&t->stats.working,
		atomic_load_explicit(&t->stats.working, memory_order_relaxed) - 1,
		memory_order_relaxed);
}
