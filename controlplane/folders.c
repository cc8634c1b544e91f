// Folders are few, so they are found by looking at each.

#include "controlplane/folders.h"

#include "controlplane/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct folders {
	uint32_t holders;
	uint32_t count;
	struct folder *at[]; // the first: those of the program
};

static bool is_folder(const struct folder *folder, const char *path, const char *language)
{
	const char *of = folder_path(folder);
	if (!path || !of)
		return !path && !of;
	return strcmp(path, of) == 0 && strcmp(language, folder_language(folder)) == 0;
}

static struct folder *find(const struct folders *folders, const char *path, const char *language)
{
	for (uint32_t i = 0; folders && i < folders->count; i++)
		if (is_folder(folders->at[i], path, language))
			return folders->at[i];
	return NULL;
}

static void log_fault(void *context, const struct template_place *place, const char *text)
{
	(void)context;
	log_error("%s:%u:%u: %s", place->file, place->line, place->column, text);
}

// Add a folder unless it is there.
static int add(struct folders *folders, const struct folders *before,
	const struct folder_pause *pause, const char *path, const char *language)
{
	static const struct template_ear ear = {log_fault, NULL};
	if (find(folders, path, language))
		return 0;
	int ret = folder_read(path, language, find(before, path, language), &ear, pause,
		&folders->at[folders->count]);
	if (ret < 0)
		log_error("pages %s: %s", path ? path : "of the program", strerror(-ret));
	else
		folders->count++;
	return ret;
}

static int add_site(struct folders *folders, const struct folders *before,
	const struct folder_pause *pause, const struct config_site *site)
{
	int ret = add(folders, before, pause, site->pages, site->pages_language);
	for (uint32_t i = 0; i < site->rooms.count; i++)
		for (uint32_t j = 0; ret == 0 && j <= site->rooms.at[i].events.count; j++) {
			const struct config_room room =
				config_room_during_nth(&site->rooms.at[i], j);
			ret = add(folders, before, pause, config_pages(site, &room),
				config_pages_language(site, &room));
		}
	return ret;
}

int folders_load(const struct config *config, const struct folders *before,
	const struct folder_pause *pause, struct folders **folders)
{
	uint64_t max = 1 + config_pages_most(config);
	struct folders *made = calloc(1, sizeof(*made) + max * sizeof(made->at[0]));
	if (!made) {
		log_error("pages: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	made->holders = 1;
	int ret = add(made, before, pause, NULL, "en");
	for (uint32_t i = 0; ret == 0 && i < config->sites.count; i++)
		ret = add_site(made, before, pause, &config->sites.at[i]);
	if (ret == 0)
		*folders = made;
	else
		folders_give(made);
	return ret;
}

struct folders *folders_hold(struct folders *folders)
{
	folders->holders++;
	return folders;
}

void folders_give(struct folders *folders)
{
	if (!folders || --folders->holders > 0)
		return;
	for (uint32_t i = 0; i < folders->count; i++)
		folder_give(folders->at[i]);
	free(folders);
}

const struct page_set *folders_of(const struct folders *folders, const struct config_site *site,
	const struct config_room *room)
{
	return folder_set(
		find(folders, config_pages(site, room), config_pages_language(site, room)));
}

uint32_t folders_assets(const struct folders *folders, struct gate_asset *assets)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < folders->count; i++) {
		const struct gate_asset *of;
		uint32_t more = folder_assets(folders->at[i], &of);
		if (assets && more > 0)
			memcpy(assets + count, of, more * sizeof(*of));
		count += more;
	}
	return count;
}

struct listener {
	config_say *say;
	void *context;
};

static void pass_on(void *context, const struct template_place *place, const char *text)
{
	const struct listener *listener = context;
	listener->say(listener->context, place->file, place->line, place->column, text);
}

uint32_t folders_check(const char *path, const char *language, config_say *say, void *context)
{
	struct listener listener = {say, context};
	struct template_ear ear = {pass_on, &listener};
	return folder_check(path, language, &ear);
}
