// Folders of templates: which one holds for a room, and what is wrong with them. Each is looked at
// once, however many sites and rooms share it; what is wrong is said with the place in its own
// files.

#include "config/check.h"

#include "config/report.h"

#include <string.h>

struct folder {
	const char *path, *language;
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
	report_add(context, file, line, column, "%s", text);
}

static bool is_new(struct folder *seen, uint32_t count, struct folder folder)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(seen[i].path, folder.path) == 0 &&
			strcmp(seen[i].language, folder.language) == 0)
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

void check_pages(struct reading *r)
{
	const struct config_sites *sites = &r->config->sites;
	uint32_t count = 0;
	struct folder *seen = arena_take(
		r->scratch, (sites->count + config_room_count(r->config) + 1) * sizeof(*seen));
	for (uint32_t i = 0; i < sites->count; i++) {
		const struct config_site *site = &sites->at[i];
		check_language(r, site, site->pages_language);
		for (uint32_t j = 0; j <= site->rooms.count; j++) {
			const struct config_room *room = j ? &site->rooms.at[j - 1] : NULL;
			struct folder folder = {
				config_pages(site, room), config_pages_language(site, room)};
			if (room)
				check_language(r, room, room->pages_language);
			if (folder.path && folder.language && is_new(seen, count, folder))
				seen[count++] = folder;
		}
	}
	for (uint32_t i = 0; r->machine->pages_check && i < count; i++) {
		if (r->machine->turn)
			r->machine->turn(r->machine->turn_context);
		r->machine->pages_check(seen[i].path, seen[i].language, say, r->report);
	}
}
