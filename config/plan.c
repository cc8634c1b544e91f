// From a file to a checked plan: the walk of load.c, then the rules that look at more than one
// value.

#include "config/plan.h"

#include "config/load.h"
#include "config/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// What plan_destroy() gets back. The arena holds it all, this struct included.
struct loaded_plan {
	struct plan plan;
	struct arena arena;
};

// What was no mapping stays zeroed, and has been reported: rules must not stumble over it.

static void check_room(struct reading *r, const struct plan *plan, const struct plan_room *room)
{
	for (const struct plan_room *other = plan->rooms.at; other < room; other++)
		if (other->name && room->name && strcmp(other->name, room->name) == 0)
			reading_fail(r, room, "name", READING_WHOLE,
				"names two rooms, first on line %u; allowed: once",
				reading_line(r, other, "name", READING_WHOLE));
	if (room->prequeue_s > room->opens_s)
		reading_fail(r, room, "prequeue", READING_WHOLE,
			"begins before the plan; allowed: up to opens, %lus", room->opens_s);
	if (room->opens_s >= plan->lasts_s)
		reading_fail(r, room, "opens", READING_WHOLE,
			"is behind the end of the plan; allowed: below lasts, %lus", plan->lasts_s);
	if (room->stay_spread_s > 0 && room->stay_s == 0)
		reading_fail(r, room, "stay_spread", READING_WHOLE,
			"needs a stay; allowed: with `stay`");
	if (room->sliding && room->stay_s == 0)
		reading_fail(r, room, "sliding", READING_WHOLE,
			"needs a stay, or passes never end; allowed: true with `stay`");
	if (!plan->pool && room->priority > 1)
		reading_fail(
			r, room, "priority", READING_WHOLE, "needs a pool; allowed: with `pool`");
	if (!plan->pool && room->weight > 1)
		reading_fail(
			r, room, "weight", READING_WHOLE, "needs a pool; allowed: with `pool`");
}

// Whoever comes after the end is a mistake in one of the two.
static void check_waves(struct reading *r, struct plan *plan, const struct plan_room *room)
{
	for (uint32_t i = 0; i < room->arrivals.count; i++) {
		const struct plan_arrivals *wave = &room->arrivals.at[i];
		plan->people += wave->people;
		if (wave->from_s + wave->over_s > plan->lasts_s)
			reading_fail(r, wave, "over", READING_WHOLE,
				"ends behind the end of the plan; allowed: from + over up to "
				"lasts, %lus",
				plan->lasts_s);
	}
}

static void check_plan(struct reading *r, struct plan *plan)
{
	if (plan->pool)
		load_burst(&plan->pool->burst, &plan->pool->rate);
	for (uint32_t i = 0; i < plan->rooms.count; i++) {
		struct plan_room *room = &plan->rooms.at[i];
		load_burst(&room->burst, &room->rate);
		check_room(r, plan, room);
		check_waves(r, plan, room);
	}
	if (plan->people > PLAN_PEOPLE_MAX)
		reading_fail(r, plan, "rooms", READING_WHOLE,
			"have %lu people come; allowed: up to %u in all", plan->people,
			PLAN_PEOPLE_MAX);
}

int plan_read(const char *path, const char *text, size_t len, struct plan **plan,
	struct config_report *report)
{
	struct arena keep = {0}, scratch = {0};
	struct tree_node *root;
	struct reading r = {.file = path, .report = report, .keep = &keep, .scratch = &scratch};
	int ret = -ENOMEM;

	if (arena_init(&keep) < 0 || arena_init(&scratch) < 0)
		goto end;
	if ((ret = tree_read(path, text, len, &scratch, report, &root)) < 0)
		goto end;
	struct loaded_plan *loaded = arena_take(&keep, sizeof(*loaded));
	load_map(&r, key_plan_root(), root, "", &loaded->plan);
	if (!loaded->plan.title)
		loaded->plan.title = arena_copy(&keep, path, strlen(path));
	check_plan(&r, &loaded->plan);
	report_sort(report);
	ret = report->count > 0 ? -EINVAL : 0;
	if (ret == 0) {
		loaded->arena = keep;
		keep = (struct arena){0};
		*plan = &loaded->plan;
	}

end:
	arena_fini(&scratch);
	arena_fini(&keep);
	return ret;
}

int plan_load(const char *path, struct plan **plan, struct config_report *report)
{
	int ret;
	size_t len;
	char *text = load_text(path, &len, &ret, report);
	if (text)
		ret = plan_read(path, text, len, plan, report);
	free(text);
	return ret;
}

void plan_destroy(struct plan *plan)
{
	if (!plan)
		return;
	struct arena arena = ((struct loaded_plan *)plan)->arena;
	arena_fini(&arena);
}
