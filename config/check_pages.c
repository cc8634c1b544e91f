// Folders of templates: which one holds for a room or an event of it, and what is wrong with them.
// Each is looked at once, however many sites and rooms share it; what is wrong is said with the
// place in its own files.

#include "config/check.h"

#include "config/report.h"

#include <string.h>

struct folder {
	const char *path, *language;
	const void *base; // the first that names it
	struct reading *r;
};

struct folders {
	uint32_t count;
	struct folder *at;
};

const char *config_pages(const struct config_site *site, const struct config_room *room)
{
	return room && room->pages ? room->pages : site->pages;
}

const char *config_pages_language(const struct config_site *site, const struct config_room *room)
{
	return room && room->pages_language ? room->pages_language : site->pages_language;
}

static void say(void *context, const char *file, uint32_t line, uint32_t column, const char *text)
{
	const struct folder *folder = context;
	if (line == 0)
		reading_fail(folder->r, folder->base, "pages", READING_WHOLE,
			"is no use as a folder of templates: %s: %s", file, text);
	else
		report_add(folder->r->report, file, line, column, "%s", text);
}

static bool is_new(const struct folders *seen, struct folder folder)
{
	for (uint32_t i = 0; i < seen->count; i++)
		if (strcmp(seen->at[i].path, folder.path) == 0 &&
			strcmp(seen->at[i].language, folder.language) == 0)
			return false;
	return true;
}

static void check_language(struct reading *r, const void *base, const char *language)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
	if (language && (strspn(language, allowed) != strlen(language) || strlen(language) < 2 ||
				strlen(language) > 15))
		reading_fail(r, base, "pages_language", READING_WHOLE,
			"is no language; allowed: 2 to 15 lower-case letters, digits and -, as in "
			"pt-br");
}

uint64_t config_pages_most(const struct config *config)
{
	uint64_t most = config->sites.count + config_room_count(config);
	for (uint32_t i = 0; i < config->sites.count; i++)
		for (uint32_t j = 0; j < config->sites.at[i].rooms.count; j++)
			most += config->sites.at[i].rooms.at[j].events.count;
	return most;
}

static void check_languages(struct reading *r, const struct config_site *site)
{
	check_language(r, site, site->pages_language);
	for (uint32_t i = 0; i < site->rooms.count; i++) {
		const struct config_room *room = &site->rooms.at[i];
		check_language(r, room, room->pages_language);
		for (uint32_t j = 0; j < room->events.count; j++)
			check_language(r, &room->events.at[j], room->events.at[j].pages_language);
	}
}

// Whose key it is that names the folder of a room during an event.
static const void *base_of(const struct config_site *site, const struct config_room *room,
	const struct config_event *event)
{
	if (event && event->pages)
		return event;
	return room && room->pages ? (const void *)room : site;
}

static void note(struct reading *r, struct folders *seen, const struct config_site *site,
	const struct config_room *room, const struct config_event *event)
{
	const struct config_room during =
		room ? config_room_during(room, event) : (struct config_room){0};
	const struct config_room *now = room ? &during : NULL;
	struct folder folder = {config_pages(site, now), config_pages_language(site, now),
		base_of(site, room, event), r};
	if (folder.path && folder.language && is_new(seen, folder))
		seen->at[seen->count++] = folder;
}

void check_pages(struct reading *r)
{
	const struct config_sites *sites = &r->config->sites;
	struct folders seen = {.at = arena_take(r->scratch,
				       (config_pages_most(r->config) + 1) * sizeof(*seen.at))};
	for (uint32_t i = 0; i < sites->count; i++) {
		const struct config_site *site = &sites->at[i];
		check_languages(r, site);
		note(r, &seen, site, NULL, NULL);
		for (uint32_t j = 0; j < site->rooms.count; j++)
			for (uint32_t k = 0; k <= site->rooms.at[j].events.count; k++)
				note(r, &seen, site, &site->rooms.at[j],
					k ? &site->rooms.at[j].events.at[k - 1] : NULL);
	}
	for (uint32_t i = 0; r->machine->pages_check && i < seen.count; i++) {
		if (r->machine->turn)
			r->machine->turn(r->machine->turn_context);
		r->machine->pages_check(seen.at[i].path, seen.at[i].language, say, &seen.at[i]);
	}
}
