// The pool of works, the last given first taken. Only what counts from the start is cleared: the
// sending half's two lines; the receiving half is given back as empty as it was taken.

#include "dataplane/net/tcp/work.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/net/tcp/send.h"

int work_init(struct tcp *t)
{
	const uint32_t count = t->plan.works_max;
	assert(count > 0 && count < UINT32_MAX);
	// COLD: at start
	t->works = aligned_alloc(64, (size_t)count * sizeof(*t->works));
	if (!t->works)
		return -ENOMEM;
	memset(t->works, 0, (size_t)count * sizeof(*t->works));
	for (uint32_t i = 0; i < count; i++)
		t->works[i].next_free = i + 1 < count ? i + 2 : 0;
	t->free_work = 1;
	return 0;
}

void work_fini(struct tcp *t)
{
	free(t->works);
	t->works = NULL;
}

struct tcp_work *work_take(struct tcp *t, struct tcp_conn *c)
{
	if (c->work != 0)
		return work_of(t, c);
	if (t->free_work == 0)
		return NULL;
	c->work = t->free_work;
	struct tcp_work *work = work_of(t, c);
	t->free_work = work->next_free;
	memset(&work->send, 0, offsetof(struct tcp_work_send, cubic));
	atomic_store_explicit(&t->stats.working,
		atomic_load_explicit(&t->stats.working, memory_order_relaxed) + 1,
		memory_order_relaxed);
	return work;
}

void work_give(struct tcp *t, struct tcp_conn *c)
{
	struct tcp_work *work = work_of(t, c);
	if (!work || send_needs_work(t, c) || work->receive.kept_count != 0 ||
		work->receive.has_fin)
		return;
	work->next_free = t->free_work;
	t->free_work = c->work;
	c->work = 0;
	atomic_store_explicit(&t->stats.working,
		atomic_load_explicit(&t->stats.working, memory_order_relaxed) - 1,
		memory_order_relaxed);
}
