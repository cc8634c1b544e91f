// Lists of codes. Each file is looked at once, however many lanes share it; what is wrong is said
// with the place in it.

#include "config/check.h"

#include "config/report.h"

#include <string.h>

// The first lane whose file that is.
struct named {
	struct reading *r;
	const struct config_lane *lane;
};

static void say(void *context, const char *file, uint32_t line, uint32_t column, const char *text)
{
	const struct named *named = context;
	if (line == 0)
		reading_fail(named->r, named->lane, "codes", READING_WHOLE,
			"is no use as a list of codes: %s: %s", file, text);
	else
		report_add(named->r->report, file, line, column, "%s", text);
}

static void warn(void *context, const char *file, uint32_t line, uint32_t column, const char *text)
{
	const struct named *named = context;
	report_warn(named->r->report, file, line, column, "%s", text);
}

static bool is_new(const struct config_lane *const *seen, uint32_t count, const char *path)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(seen[i]->codes, path) == 0)
			return false;
	return true;
}

void check_codes(struct reading *r)
{
	const struct config_sites *sites = &r->config->sites;
	uint32_t count = 0;
	const struct config_lane **seen =
		arena_take(r->scratch, (config_line_count(r->config) + 1) * sizeof(*seen));
	for (uint32_t i = 0; i < sites->count; i++)
		for (uint32_t j = 0; j < sites->at[i].rooms.count; j++) {
			const struct config_lanes *lanes = &sites->at[i].rooms.at[j].lanes;
			for (uint32_t k = 0; k < lanes->count; k++)
				if (lanes->at[k].codes && is_new(seen, count, lanes->at[k].codes))
					seen[count++] = &lanes->at[k];
		}
	for (uint32_t i = 0; r->machine->codes_check && i < count; i++) {
		if (r->machine->turn)
			r->machine->turn(r->machine->turn_context);
		struct named named = {r, seen[i]};
		r->machine->codes_check(seen[i]->codes, say, warn, &named);
	}
}
