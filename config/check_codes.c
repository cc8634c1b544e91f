// Lists of codes. Each file is looked at once, however many lanes share it; what is wrong is said
// with the place in it.

#include "config/check.h"

#include "config/report.h"

#include <stdlib.h>
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

// A lane, and which one named the same list before it.
struct user {
	const struct config_room *room;
	const struct config_lane *lane;
	const char *file; // its real name, so that it is known by any
};

// Lanes of one room would honour a code once each, so that one who shows it twice has two places
// for it. Of another room it is meant perhaps.
static void say_shared(struct reading *r, const struct user *is, const struct user *before)
{
	if (is->room == before->room)
		reading_fail(r, is->lane, "codes", READING_WHOLE,
			"is the list of lane %s too: a code would be good in both; allowed: a list "
			"of its own",
			before->lane->name);
	else
		reading_warn(r, is->lane, "codes", READING_WHOLE,
			"is the list of %s/%s too: a code is good as often in each of the rooms",
			before->room->name, before->lane->name);
}

static const struct user *find_user(const struct user *users, uint32_t count, const char *file)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(users[i].file, file) == 0)
			return &users[i];
	return NULL;
}

static const char *real_name(struct reading *r, const char *path)
{
	char *real = realpath(path, NULL);
	if (!real)
		return path;
	char *copy = arena_take(r->scratch, strlen(real) + 1);
	memcpy(copy, real, strlen(real) + 1);
	free(real);
	return copy;
}

// All lanes with a list; those that share one are told. Returns how many name another list.
static uint32_t find_users(struct reading *r, struct user *users)
{
	const struct config_sites *sites = &r->config->sites;
	uint32_t count = 0;
	for (uint32_t i = 0; i < sites->count; i++)
		for (uint32_t j = 0; j < sites->at[i].rooms.count; j++) {
			const struct config_room *room = &sites->at[i].rooms.at[j];
			for (uint32_t k = 0; k < room->lanes.count; k++) {
				const struct config_lane *lane = &room->lanes.at[k];
				if (!lane->codes)
					continue;
				const struct user user = {room, lane, real_name(r, lane->codes)};
				const struct user *before = find_user(users, count, user.file);
				if (before)
					say_shared(r, &user, before);
				else
					users[count++] = user;
			}
		}
	return count;
}

void check_codes(struct reading *r)
{
	struct user *users =
		arena_take(r->scratch, (config_line_count(r->config) + 1) * sizeof(*users));
	const uint32_t count = find_users(r, users);
	r->config->codes_bytes = 0;
	for (uint32_t i = 0; r->machine->codes_check && i < count; i++) {
		uint64_t bytes;
		if (r->machine->turn)
			r->machine->turn(r->machine->turn_context);
		struct named named = {r, users[i].lane};
		r->machine->codes_check(
			r->machine->codes_context, users[i].lane->codes, &bytes, say, warn, &named);
		r->config->codes_bytes += bytes;
	}
}
