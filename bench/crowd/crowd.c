// The loop: do what is due, wait, take what has come.

#include "bench/crowd/crowd.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "bench/crowd/talk.h"
#include "bench/crowd/visit.h"

#define DUE_MAX 256u // in one turn, so that answers are not kept waiting
#define WAIT_MAX_US 100000

static int64_t clock_us(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return now.tv_sec * 1000000ll + now.tv_nsec / 1000;
}

int64_t crowd_clock_us(void)
{
	return clock_us(CLOCK_MONOTONIC);
}

static void look_at_clock(struct crowd *crowd)
{
	crowd->now_us = crowd_clock_us() - crowd->start_us;
}

static int make_members(struct crowd *crowd, uint32_t share)
{
	const struct plan *plan = crowd->plan;
	crowd->visitor_count = (plan->visitors - share + plan->processes - 1) / plan->processes;
	crowd->member_count = crowd->visitor_count * (plan->tabs > 0 ? 2 : 1);
	crowd->living = crowd->visitor_count;
	crowd->members = calloc(crowd->member_count, sizeof(*crowd->members));
	int64_t *arrivals_us = calloc(plan->visitors, sizeof(*arrivals_us));
	if (!crowd->members || !arrivals_us || !agenda_init(&crowd->agenda, crowd->member_count)) {
		free(arrivals_us);
		return -ENOMEM;
	}
	shape_fill(plan->shape, plan->over_s, plan->seed, arrivals_us, plan->visitors);
	for (uint32_t i = 0; i < crowd->member_count; i++) {
		struct crowd_member *member = &crowd->members[i];
		member->twin = member->admission = CROWD_NOBODY;
		member->is_tab = i >= crowd->visitor_count;
		member->step = member->is_tab ? CROWD_OVER : CROWD_AWAY;
		member->target = (uint8_t)(i % plan->target_count);
		if (member->is_tab)
			continue;
		member->due_us = arrivals_us[share + i * plan->processes];
		agenda_set(&crowd->agenda, i, member->due_us);
	}
	free(arrivals_us);
	return 0;
}

static void turn(struct crowd *crowd)
{
	uint32_t id;
	look_at_clock(crowd);
	for (uint32_t i = 0; i < DUE_MAX && agenda_take(&crowd->agenda, crowd->now_us, &id); i++) {
		visit_due(crowd, id);
		look_at_clock(crowd);
	}
	int64_t wait_us = agenda_next_us(&crowd->agenda);
	wait_us = wait_us < crowd->now_us + WAIT_MAX_US ? wait_us - crowd->now_us : WAIT_MAX_US;
	links_wait(&crowd->links, wait_us > 0 ? (uint64_t)wait_us : 0);
	struct link_event event;
	look_at_clock(crowd);
	while (links_next(&crowd->links, &event)) {
		talk_event(crowd, &event);
		look_at_clock(crowd);
	}
	links_recycle(&crowd->links);
}

int crowd_run(const struct plan *plan, uint32_t share, int64_t start_us, atomic_bool *stop,
	struct tally *tally)
{
	struct crowd crowd = {.plan = plan,
		.tally = tally,
		.start_us = start_us,
		.start_unix_us = clock_us(CLOCK_REALTIME) + start_us - crowd_clock_us(),
		.random = plan->seed << 32 | share};
	int ret = make_members(&crowd, share);
	if (ret == 0)
		ret = links_init(&crowd.links, crowd.member_count);
	if (ret < 0)
		goto out;
	const int64_t limit_us = (int64_t)(plan->limit_s * 1e6);
	do {
		turn(&crowd);
	} while (crowd.living > 0 && crowd.now_us < limit_us && !atomic_load(stop));
	for (uint32_t i = 0; i < crowd.member_count; i++)
		visit_unfinished(&crowd, i);
	links_fini(&crowd.links);
out:
	agenda_fini(&crowd.agenda);
	free(crowd.members);
	return ret;
}
