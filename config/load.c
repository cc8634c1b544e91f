// From a file to a checked configuration.
//
//   file ─▶ tree (tree.c) ─▶ structs, by the table of keys (here) ─▶ rules (check.c)
//
// The walk knows no key: what a mapping may hold, of which type, and what stands in for what is
// absent comes from its scope's table. A value that cannot be read leaves its default behind, so
// that one mistake is one error and the rules can still look at the rest.

#include "config/load.h"

#include "config/check.h"
#include "config/config.h"
#include "config/key.h"
#include "config/reading.h"
#include "config/report.h"
#include "config/tree.h"
#include "config/value.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

// What config_destroy() gets back. The arena holds it all, this struct included.
struct loaded {
	struct config config;
	struct arena arena;
};

static const char *const is_kind[] = {"is a single value", "is a list", "is a mapping"};

static void derive(struct config *config, struct arena *arena);

// All of a file, or -errno. One byte more than allowed is read, so that tree.c sees the excess.
static ssize_t read_file(const char *path, char *text, size_t bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t got, len = 0;
	while ((got = read(fd, text + len, bytes - len)) > 0)
		len += got;
	ssize_t ret = got < 0 ? -errno : len;
	close(fd);
	return ret;
}

char *load_text(const char *path, size_t *len, int *error, struct config_report *report)
{
	size_t bytes = CONFIG_FILE_BYTES_MAX + 1;
	char *text = malloc(bytes);
	*error = -ENOMEM;
	if (!text)
		return NULL;
	ssize_t got = read_file(path, text, bytes);
	if (got >= 0) {
		*len = got;
		return text;
	}
	report_add(report, path, 1, 1, "cannot be read: %s", strerror((int)-got));
	*error = -EINVAL;
	free(text);
	return NULL;
}

int config_load(const char *path, const struct config_machine *machine, struct config **config,
	struct config_report *report)
{
	int ret;
	size_t len;
	char *text = load_text(path, &len, &ret, report);
	if (text)
		ret = config_read(path, text, len, machine, config, report);
	free(text);
	return ret;
}

int config_read(const char *path, const char *text, size_t len,
	const struct config_machine *machine, struct config **config, struct config_report *report)
{
	struct arena keep = {0}, scratch = {0};
	struct tree_node *root;
	struct reading r = {.file = path,
		.machine = machine,
		.report = report,
		.keep = &keep,
		.scratch = &scratch};
	int ret = -ENOMEM;

	if (arena_init(&keep) < 0 || arena_init(&scratch) < 0)
		goto fail;
	if ((ret = tree_read(path, text, len, &scratch, report, &root)) < 0)
		goto fail;
	struct loaded *loaded = arena_take(&keep, sizeof(*loaded));
	r.config = &loaded->config;
	load_map(&r, key_root(), root, "", r.config);
	derive(r.config, r.keep);
	check_run(&r);
	report_sort(report);
	if (report->count > 0) {
		ret = -EINVAL;
		goto fail;
	}
	loaded->arena = keep;
	*config = &loaded->config;
	arena_fini(&scratch);
	return 0;

fail:
	arena_fini(&scratch);
	arena_fini(&keep);
	return ret;
}

void load_burst(uint64_t *burst, const struct config_rate *rate)
{
	const uint64_t second = rate->count ? rate->count * 1000 / rate->period_ms : 0;
	if (!*burst)
		*burst = second > 1 ? second : 1;
}

static void derive_lane(
	const struct config_room *room, struct config_lane *lane, struct arena *arena)
{
	char name[2 * 64];
	if (!room->name || !lane->name)
		return;
	const int len = snprintf(name, sizeof(name), "%s/%s", room->name, lane->name);
	lane->full_name = arena_copy(arena, name, (size_t)len);
	lane->line_id = XXH3_64bits(name, (size_t)len);
}

static void derive_room(struct config_room *room, struct arena *arena)
{
	load_burst(&room->burst, &room->rate);
	for (uint32_t i = 0; i < room->events.count; i++)
		if (room->events.at[i].rate.count)
			load_burst(&room->events.at[i].burst, &room->events.at[i].rate);
	if (room->name)
		room->line_id = XXH3_64bits(room->name, strlen(room->name));
	for (uint32_t i = 0; i < room->lanes.count; i++)
		derive_lane(room, &room->lanes.at[i], arena);
}

// What keys.def marks with '=', and what follows from other values.
static void derive(struct config *config, struct arena *arena)
{
	uint64_t quarter = config->connections / 4;
	if (!config->origin_connections)
		config->origin_connections = quarter < 4096 ? quarter : 4096;
	if (!config->connections_per_source)
		config->connections_per_source = quarter;
	if (!config->tls_connections)
		config->tls_connections = config->connections;
	for (uint32_t i = 0; i < config->pools.count; i++)
		load_burst(&config->pools.at[i].burst, &config->pools.at[i].rate);
	for (uint32_t i = 0; i < config->sites.count; i++)
		for (uint32_t j = 0; j < config->sites.at[i].rooms.count; j++)
			derive_room(&config->sites.at[i].rooms.at[j], arena);
}

void config_destroy(struct config *config)
{
	if (!config)
		return;
	struct arena arena = ((struct loaded *)config)->arena;
	arena_fini(&arena);
}

static char *join(struct reading *r, const char *path, const char *name, uint32_t index)
{
	char text[256];
	int len = index == READING_WHOLE
			  ? snprintf(text, sizeof(text), "%s%s.", path, name)
			  : snprintf(text, sizeof(text), "%s%s[%u].", path, name, index);
	assert(len > 0 && (size_t)len < sizeof(text));
	return arena_copy(r->scratch, text, len);
}

static void *member(const struct key *key, void *base)
{
	return (char *)base + key->offset;
}

// Say that a value is not what the key allows.
static void refuse(
	struct reading *r, const struct key *key, void *base, uint32_t index, const char *wrong)
{
	char phrase[VALUE_PHRASE_BYTES];
	struct key one = *key;
	if (index != READING_WHOLE)
		one.shape = KEY_ONE;
	reading_fail(
		r, base, key->name, index, "%s; allowed: %s", wrong, value_allowed(&one, phrase));
}

// A relative file is one beside the configuration.
static void resolve_file(struct reading *r, const char **file)
{
	const char *slash = strrchr(r->file, '/');
	if (!*file || **file == '/' || !slash)
		return;
	size_t folder_len = slash + 1 - r->file, len = strlen(*file);
	char *joined = arena_take(r->keep, folder_len + len + 1);
	memcpy(joined, r->file, folder_len);
	memcpy(joined + folder_len, *file, len);
	*file = joined;
}

// One value into `to`. Returns whether it was good.
static bool read_value(struct reading *r, const struct key *key, const struct tree_node *node,
	void *base, uint32_t index, void *to)
{
	const char *wrong = node->kind == TREE_SCALAR ? value_read(key, node->text, r->keep, to)
						      : is_kind[node->kind];
	if (wrong) {
		refuse(r, key, base, index, wrong);
		return false;
	}
	if (key->type == KEY_FILE)
		resolve_file(r, to);
	return true;
}

static void *read_child(
	struct reading *r, const struct key *key, const struct tree_node *map, const char *path)
{
	void *child = arena_take(r->keep, key->child->bytes);
	load_map(r, key->child, map, join(r, path, key->name, READING_WHOLE), child);
	return child;
}

// What an absent or unreadable value leaves behind.
static void apply_fallback(struct reading *r, const struct key *key, const char *path, void *base)
{
	static const struct tree_node empty = {.kind = TREE_MAP, .line = 1, .column = 1};
	if (key_is_required(key) || key_is_computed(key))
		return;
	if (key->shape == KEY_LIST)
		return;
	if (key->type == KEY_MAP) {
		if (!key_may_be_none(key))
			*(void **)member(key, base) = read_child(r, key, &empty, path);
		return;
	}
	const char *wrong = value_read(key, key->fallback, r->keep, member(key, base));
	assert(!wrong);
}

static bool is_none(const struct key *key, const struct tree_node *node)
{
	return key_may_be_none(key) && node->kind == TREE_SCALAR && strcmp(node->text, "none") == 0;
}

static void read_list(struct reading *r, const struct key *key, const struct tree_node *list,
	const char *path, void *base)
{
	struct key_list *to = member(key, base);
	size_t bytes = key->child ? key->child->bytes : value_bytes(key);
	uint32_t index = 0;

	if (is_none(key, list))
		return;
	if (list->kind != TREE_LIST) {
		refuse(r, key, base, READING_WHOLE, is_kind[list->kind]);
		return;
	}
	if (list->count < key->min || list->count > key->max) {
		refuse(r, key, base, READING_WHOLE, "has a wrong length");
		return;
	}
	*to = (struct key_list){list->count, arena_take(r->keep, list->count * bytes)};
	for (const struct tree_node *node = list->first; node; node = node->next, index++) {
		void *element = (char *)to->at + index * bytes;
		reading_mark(r, base, key->name, index, node, NULL);
		if (!key->child)
			read_value(r, key, node, base, index, element);
		else if (node->kind == TREE_MAP)
			load_map(r, key->child, node, join(r, path, key->name, index), element);
		else
			refuse(r, key, base, index, is_kind[node->kind]); // stays zeroed
	}
}

static void read_mapping(struct reading *r, const struct key *key, const struct tree_node *node,
	const char *path, void *base)
{
	if (node->kind == TREE_MAP) {
		*(void **)member(key, base) = read_child(r, key, node, path);
	} else if (!is_none(key, node)) {
		refuse(r, key, base, READING_WHOLE, is_kind[node->kind]);
		apply_fallback(r, key, path, base);
	}
}

static void read_key(struct reading *r, const struct key *key, const struct tree_node *node,
	const char *path, void *base)
{
	reading_mark(r, base, key->name, READING_WHOLE, node, NULL);
	if (key->shape == KEY_LIST)
		read_list(r, key, node, path, base);
	else if (key->type == KEY_MAP)
		read_mapping(r, key, node, path, base);
	else if (!read_value(r, key, node, base, READING_WHOLE, member(key, base)))
		apply_fallback(r, key, path, base);
}

static void refuse_unknown(struct reading *r, const struct key_scope *scope,
	const struct tree_node *node, const char *path)
{
	const struct key *known = key_elsewhere(scope, node->key);
	char name[READING_QUOTE_BYTES];

	report_add(r->report, r->file, node->key_line, node->key_column,
		known ? "%s%s: unknown key here; known is %s%s"
		      : "%s%s: unknown key; the nearest known is %s%s",
		path, reading_quote(node->key, name), known ? known->scope->path : path,
		known ? known->name : key_nearest(scope, node->key)->name);
}

void load_map(struct reading *r, const struct key_scope *scope, const struct tree_node *map,
	const char *path, void *base)
{
	const struct tree_node *given[KEY_TABLE_MAX] = {NULL};
	char phrase[VALUE_PHRASE_BYTES];

	reading_mark(r, base, NULL, READING_WHOLE, map, path);
	for (const struct tree_node *node = map->first; node; node = node->next) {
		const struct key *key = key_find(scope, node->key);
		if (!key)
			refuse_unknown(r, scope, node, path);
		else if (given[key - scope->table])
			report_add(r->report, r->file, node->key_line, node->key_column,
				"%s%s: given twice, first on line %u", path, key->name,
				given[key - scope->table]->key_line);
		else
			given[key - scope->table] = node;
	}
	for (const struct key *key = scope->table; key < scope->table + *scope->table_count;
		key++) {
		if (key->scope != scope)
			continue;
		if (given[key - scope->table])
			read_key(r, key, given[key - scope->table], path, base);
		else if (key_is_required(key))
			reading_fail(r, base, key->name, READING_WHOLE, "is missing; allowed: %s",
				value_allowed(key, phrase));
		else
			apply_fallback(r, key, path, base);
	}
}

static int read_state(const char *path, const char *text, size_t len, char *state,
	struct config_report *report, struct arena *arena)
{
	struct reading r = {.file = path, .report = report, .keep = arena, .scratch = arena};
	const struct key *key = key_find(key_root(), "state");
	const char *folder = key->fallback;
	struct tree_node *root;
	int ret = tree_read(path, text, len, arena, report, &root);
	if (ret < 0)
		return ret;
	reading_mark(&r, root, NULL, READING_WHOLE, root, "");
	const struct tree_node *node = root->first;
	while (node && strcmp(node->key, key->name) != 0)
		node = node->next;
	if (node) {
		reading_mark(&r, root, key->name, READING_WHOLE, node, NULL);
		if (!read_value(&r, key, node, root, READING_WHOLE, &folder))
			return -EINVAL;
	}
	snprintf(state, CONFIG_STATE_BYTES, "%s", folder);
	return 0;
}

int config_load_state(const char *path, char *state, struct config_report *report)
{
	struct arena arena = {0};
	int ret;
	size_t len;
	char *text = load_text(path, &len, &ret, report);
	if (text && (ret = arena_init(&arena)) == 0)
		ret = read_state(path, text, len, state, report, &arena);
	arena_fini(&arena);
	free(text);
	return ret;
}
