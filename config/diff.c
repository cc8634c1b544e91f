// Which keys differ that only a restart can change.
//
// The same walk as load.c's, over two configurations at once. Lists of mappings are compared place
// by place: those that hold restart keys (listen) are opened at start in that order.

#include "config/config.h"
#include "config/key.h"
#include "config/value.h"

#include <assert.h>
#include <string.h>

static uint32_t diff_map(const struct key_scope *scope, const char *path, const void *now,
	const void *next, FILE *out);

uint32_t config_diff(const struct config *now, const struct config *next, FILE *out)
{
	return diff_map(key_root(), "", now, next, out);
}

static bool lists_are_equal(
	const struct key *key, const struct key_list *a, const struct key_list *b)
{
	size_t bytes = value_bytes(key);
	if (a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!value_is_equal(key, (char *)a->at + i * bytes, (char *)b->at + i * bytes))
			return false;
	return true;
}

static uint32_t name_key(const struct key *key, const char *path, FILE *out)
{
	if (key->change != KEY_RESTART)
		return 0;
	fprintf(out, "%s%s\n", path, key->name);
	return 1;
}

static uint32_t diff_list(const struct key *key, const char *path, const struct key_list *now,
	const struct key_list *next, FILE *out)
{
	uint32_t count = 0;
	if (!key->child)
		return lists_are_equal(key, now, next) ? 0 : name_key(key, path, out);
	if (now->count != next->count)
		return name_key(key, path, out);
	for (uint32_t i = 0; i < now->count; i++) {
		char below[256];
		snprintf(below, sizeof(below), "%s%s[%u].", path, key->name, i);
		count += diff_map(key->child, below, (char *)now->at + i * key->child->bytes,
			(char *)next->at + i * key->child->bytes, out);
	}
	return count;
}

static uint32_t diff_mapping(const struct key *key, const char *path, const void *const *now,
	const void *const *next, FILE *out)
{
	char below[256];
	if (!*now != !*next)
		return name_key(key, path, out);
	if (!*now)
		return 0;
	snprintf(below, sizeof(below), "%s%s.", path, key->name);
	return diff_map(key->child, below, *now, *next, out);
}

static uint32_t diff_map(const struct key_scope *scope, const char *path, const void *now,
	const void *next, FILE *out)
{
	uint32_t count = 0;
	for (const struct key *key = key_table; key < key_table + key_count; key++) {
		const void *a = (const char *)now + key->offset;
		const void *b = (const char *)next + key->offset;
		if (key->scope != scope)
			continue;
		if (key->shape == KEY_LIST)
			count += diff_list(key, path, a, b, out);
		else if (key->type == KEY_MAP)
			count += diff_mapping(key, path, a, b, out);
		else if (!value_is_equal(key, a, b))
			count += name_key(key, path, out);
	}
	return count;
}
