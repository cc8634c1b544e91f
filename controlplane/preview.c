// The same compiler and the same renderer as for visitors; only the values are made up.

#include "controlplane/preview.h"

#include "controlplane/pages/folder.h"
#include "dataplane/gate/rooms.h"

#include <errno.h>
#include <string.h>
#include <time.h>

static const struct config_room *find_room(
	const struct config *config, const char *name, const struct config_site **site)
{
	for (uint32_t i = 0; i < config->sites.count; i++) {
		*site = &config->sites.at[i];
		for (uint32_t j = 0; j < (*site)->rooms.count; j++)
			if (strcmp((*site)->rooms.at[j].name, name) == 0)
				return &(*site)->rooms.at[j];
	}
	fprintf(stderr, "sluice: no room is called %s\n", name);
	return NULL;
}

static int find_kind(const char *state)
{
	for (int kind = 0; kind < PAGE_KIND_COUNT; kind++) {
		struct span word = page_kind_word((enum page_kind)kind);
		if (strlen(state) == word.len && memcmp(state, word.at, word.len) == 0)
			return kind;
	}
	fprintf(stderr, "sluice: no page is called %s; known are", state);
	for (int kind = 0; kind < PAGE_KIND_COUNT; kind++) {
		struct span word = page_kind_word((enum page_kind)kind);
		fprintf(stderr, " %.*s", (int)word.len, word.at);
	}
	fputc('\n', stderr);
	return -1;
}

static int find_language(const struct page_set *set, const char *language)
{
	for (uint32_t i = 0; i < set->language_count; i++)
		if (!language ||
			(strlen(language) == set->languages[i].len &&
				memcmp(language, set->languages[i].at, set->languages[i].len) == 0))
			return (int)i;
	fprintf(stderr, "sluice: no page is in %s; known are", language);
	for (uint32_t i = 0; i < set->language_count; i++)
		fprintf(stderr, " %.*s", (int)set->languages[i].len, set->languages[i].at);
	fputc('\n', stderr);
	return -1;
}

static struct status example_of(int kind)
{
	const uint32_t now = (uint32_t)time(NULL);
	bool has_place = kind == STATUS_waiting || kind == STATUS_next;
	bool is_before = kind == STATUS_prequeue || kind == STATUS_before;
	return (struct status){.state = kind <= PAGE_LAST_STATE ? (uint8_t)kind : 0,
		.poll_after = 10,
		.opens = is_before ? now + 754 : 0,
		.position = has_place ? 1285 : STATUS_UNKNOWN,
		.ahead = kind == STATUS_waiting ? 1284
			 : kind == STATUS_next  ? 0
						: STATUS_UNKNOWN,
		.progress = kind == STATUS_next ? 1000 : 380,
		.eta_low = kind == STATUS_waiting ? 1200 : STATUS_UNKNOWN,
		.eta_high = kind == STATUS_waiting ? 1500 : STATUS_UNKNOWN,
		.now = now};
}

static int render(
	const struct page_set *set, int kind, int language, const struct page_view *view, FILE *out)
{
	static char text[PAGE_BODY_BYTES_MAX];
	const struct page *page = set->pages[language][kind];
	if (!page) {
		fprintf(stderr, "sluice: the room has no such page of its own\n");
		return -EINVAL;
	}
	fwrite(text, 1, page_render(page, ACCEPT_IDENTITY, view, text), out);
	return 0;
}

static void say_fault(void *context, const struct template_place *place, const char *text)
{
	(void)context;
	fprintf(stderr, "%s:%u:%u: %s\n", place->file, place->line, place->column, text);
}

int preview(const struct config *config, const char *name, const char *state, const char *language,
	FILE *out)
{
	static const struct template_ear ear = {say_fault, NULL};
	const struct config_site *config_site;
	const struct config_room *config_room = find_room(config, name, &config_site);
	int kind = config_room ? find_kind(state) : -1;
	struct folder *folder;
	if (kind < 0 || folder_preview(config_pages(config_site, config_room),
				config_pages_language(config_site, config_room), &ear, &folder) < 0)
		return -EINVAL;
	const struct page_set *set = folder_set(folder);
	const struct status status = example_of(kind);
	const struct gate_site site = {.name = {config_site->name, strlen(config_site->name)}};
	const struct gate_room room = {.name = {name, strlen(name)}};
	const struct page_view view = {.status = &status,
		.site = &site,
		.room = &room,
		.kind = (uint8_t)kind,
		.code = 502};
	int at = find_language(set, language);
	int ret = at < 0 ? -EINVAL : render(set, kind, at, &view, out);
	folder_give(folder);
	return ret;
}
