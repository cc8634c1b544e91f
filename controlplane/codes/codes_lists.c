// Lists are few, so they are found by looking at each.

#include "controlplane/codes/codes_lists.h"

#include "controlplane/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct codes_lists {
	uint32_t count;
	struct {
		const char *path; // of the configuration that it was read for
		struct codes_list *list;
	} at[];
};

static struct codes_list *find_list(const struct codes_lists *lists, const char *path)
{
	for (uint32_t i = 0; lists && i < lists->count; i++)
		if (strcmp(lists->at[i].path, path) == 0)
			return lists->at[i].list;
	return NULL;
}

static void log_fault(void *context, uint32_t line, bool is_warning, const char *text)
{
	if (is_warning)
		log_warning("%s:%u: %s", (const char *)context, line, text);
	else
		log_error("%s:%u: %s", (const char *)context, line, text);
}

// Add the list of a lane unless it has none, or another lane has the same.
static int load_lane(
	struct codes_lists *lists, const struct codes_lists *before, const struct config_lane *lane)
{
	const struct codes_list_ear ear = {log_fault, (void *)(uintptr_t)lane->codes};
	if (!lane->codes || find_list(lists, lane->codes))
		return 0;
	int ret = codes_list_read(
		lane->codes, find_list(before, lane->codes), &ear, &lists->at[lists->count].list);
	if (ret == 0)
		lists->at[lists->count++].path = lane->codes;
	return ret;
}

int codes_lists_load(
	const struct config *config, const struct codes_lists *before, struct codes_lists **lists)
{
	const uint64_t max = config_line_count(config);
	struct codes_lists *made = calloc(1, sizeof(*made) + max * sizeof(made->at[0]));
	int ret = made ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < config->sites.count; i++) {
		const struct config_rooms *rooms = &config->sites.at[i].rooms;
		for (uint32_t j = 0; j < rooms->count; j++)
			for (uint32_t k = 0; ret == 0 && k < rooms->at[j].lanes.count; k++)
				ret = load_lane(made, before, &rooms->at[j].lanes.at[k]);
	}
	if (ret == 0)
		*lists = made;
	else
		codes_lists_free(made);
	return ret;
}

void codes_lists_free(struct codes_lists *lists)
{
	if (!lists)
		return;
	for (uint32_t i = 0; i < lists->count; i++)
		codes_list_give(lists->at[i].list);
	free(lists);
}

const struct codes_list *codes_lists_of(
	const struct codes_lists *lists, const struct config_lane *lane)
{
	return lane->codes ? find_list(lists, lane->codes) : NULL;
}

struct check {
	const char *path;
	config_say *say, *warn;
	void *context;
	uint32_t errors;
};

static void pass_on(void *context, uint32_t line, bool is_warning, const char *text)
{
	struct check *check = context;
	check->errors += !is_warning;
	(is_warning ? check->warn : check->say)(check->context, check->path, line, line > 0, text);
}

uint32_t codes_lists_check(const char *path, config_say *say, config_say *warn, void *context)
{
	struct check check = {path, say, warn, context, 0};
	const struct codes_list_ear ear = {pass_on, &check};
	struct codes_list *list;
	if (codes_list_read(path, NULL, &ear, &list) == 0)
		codes_list_give(list);
	return check.errors;
}
