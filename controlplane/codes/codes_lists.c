// Lists are few, so they are found by looking at each.

#include "controlplane/codes/codes_lists.h"

#include "controlplane/codes/codes.h"
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

struct codes_lists_reading {
	const struct codes_lists *before;
	const struct codes_list_pause *pause;
	uint32_t count, max;
	struct kept {
		char *path;
		struct codes_list *list;
	} * kept;
};

struct codes_lists_reading *codes_lists_begin(
	const struct codes_lists *before, const struct codes_list_pause *pause)
{
	struct codes_lists_reading *reading = calloc(1, sizeof(*reading));
	if (reading)
		*reading = (struct codes_lists_reading){.before = before, .pause = pause};
	return reading;
}

void codes_lists_end(struct codes_lists_reading *reading)
{
	for (uint32_t i = 0; reading && i < reading->count; i++) {
		codes_list_give_slowly(reading->kept[i].list, reading->pause);
		free(reading->kept[i].path);
	}
	if (reading)
		free(reading->kept);
	free(reading);
}

static struct codes_list *find_list(const struct codes_lists *lists, const char *path)
{
	for (uint32_t i = 0; lists && i < lists->count; i++)
		if (strcmp(lists->at[i].path, path) == 0)
			return lists->at[i].list;
	return NULL;
}

static struct codes_list *find_kept(const struct codes_lists_reading *reading, const char *path)
{
	for (uint32_t i = 0; reading && i < reading->count; i++)
		if (strcmp(reading->kept[i].path, path) == 0)
			return reading->kept[i].list;
	return NULL;
}

// One that is not kept, for want of memory, is read again.
static void keep(struct codes_lists_reading *reading, const char *path, struct codes_list *list)
{
	if (reading->count == reading->max) {
		const uint32_t max = reading->max + 8;
		struct kept *more = realloc(reading->kept, max * sizeof(*more));
		if (!more)
			return;
		reading->kept = more;
		reading->max = max;
	}
	char *copy = strdup(path);
	if (copy)
		reading->kept[reading->count++] = (struct kept){copy, codes_list_hold(list)};
}

static void log_fault(void *context, uint32_t line, bool is_warning, const char *text)
{
	if (is_warning)
		log_warning("%s:%u: %s", (const char *)context, line, text);
	else
		log_error("%s:%u: %s", (const char *)context, line, text);
}

static int read_list(const char *path, const struct codes_lists_reading *reading,
	const struct codes_list_ear *ear, struct codes_list **list)
{
	struct codes_list *before = reading ? find_list(reading->before, path) : NULL;
	return codes_list_read(path, before, ear, reading ? reading->pause : NULL, list);
}

// Add the list of a lane unless it has none, or another lane has the same.
static int load_lane(struct codes_lists *lists, const struct codes_lists_reading *reading,
	const struct config_lane *lane)
{
	const struct codes_list_ear ear = {log_fault, (void *)(uintptr_t)lane->codes};
	if (!lane->codes || find_list(lists, lane->codes))
		return 0;
	struct codes_list *kept = find_kept(reading, lane->codes), *list = NULL;
	const int ret = kept ? 0 : read_list(lane->codes, reading, &ear, &list);
	if (ret < 0)
		return ret;
	lists->at[lists->count].list = kept ? codes_list_hold(kept) : list;
	lists->at[lists->count++].path = lane->codes;
	return 0;
}

int codes_lists_load(const struct config *config, struct codes_lists_reading *reading,
	struct codes_lists **lists)
{
	const uint64_t max = config_line_count(config);
	struct codes_lists *made = calloc(1, sizeof(*made) + max * sizeof(made->at[0]));
	int ret = made ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < config->sites.count; i++) {
		const struct config_rooms *rooms = &config->sites.at[i].rooms;
		for (uint32_t j = 0; j < rooms->count; j++)
			for (uint32_t k = 0; ret == 0 && k < rooms->at[j].lanes.count; k++)
				ret = load_lane(made, reading, &rooms->at[j].lanes.at[k]);
	}
	if (ret == 0)
		*lists = made;
	else
		codes_lists_free(made, reading ? reading->pause : NULL);
	return ret;
}

void codes_lists_free(struct codes_lists *lists, const struct codes_list_pause *pause)
{
	if (!lists)
		return;
	for (uint32_t i = 0; i < lists->count; i++)
		codes_list_give_slowly(lists->at[i].list, pause);
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

uint32_t codes_lists_check(void *reading, const char *path, uint64_t *bytes, config_say *say,
	config_say *warn, void *context)
{
	struct check check = {path, say, warn, context, 0};
	const struct codes_list_ear ear = {pass_on, &check};
	struct codes_list *list;
	*bytes = 0;
	if (read_list(path, reading, &ear, &list) < 0)
		return check.errors;
	// During a reload there are two of them.
	*bytes = 2 * codes_list_bytes(list) + codes_list_count(list) * (uint64_t)CODES_USED_BYTES;
	if (reading)
		keep(reading, path, list);
	codes_list_give_slowly(
		list, reading ? ((struct codes_lists_reading *)reading)->pause : NULL);
	return check.errors;
}
