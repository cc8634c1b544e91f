// A URL is cut from the left: scheme, user, servers, and what follows the slash.
//
// No percent signs: what may stand in each part needs none. A password has no place here, because a
// configuration is shown, copied and mailed.

#include "config/store_url.h"

#include "config/config.h"
#include "config/host.h"

#include <stdio.h>
#include <string.h>

#define URL_BYTES_MAX 1023
#define SERVER_BYTES_MAX 270 // a host name of 253 bytes, ':' and a port
#define NAME_BYTES_MAX 63
#define SOCKET_BYTES_MAX 107 // sun_path less its NUL
#define DB_MAX 65535

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

// What is read so far.
struct reader {
	const char *at; // the rest
	const struct key *key;
	struct arena *arena;
	struct config_store store;
};

static bool is_name(const char *text, size_t len)
{
	return len > 0 && len <= NAME_BYTES_MAX && strspn(text, NAME_CHARS) >= len;
}

static const char *read_user(struct reader *r)
{
	size_t len = strcspn(r->at, "@/");
	if (r->at[len] != '@')
		return NULL;
	if (memchr(r->at, ':', len))
		return "has a password, which belongs into store_password_file";
	if (!is_name(r->at, len))
		return "has no user before '@'";
	r->store.user = arena_copy(r->arena, r->at, len);
	r->at += len + 1;
	return NULL;
}

// One of the servers, up to `len`.
static const char *read_server(struct reader *r, size_t len)
{
	char text[SERVER_BYTES_MAX + 1];
	struct config_servers *servers = &r->store.servers;
	if (len > SERVER_BYTES_MAX)
		return "is too long";
	if (servers->count == CONFIG_SENTINELS_MAX)
		return "has too many servers";
	snprintf(text, sizeof(text), "%.*s", (int)len, r->at);
	return host_read_server(r->key, text, r->arena, &servers->at[servers->count++]);
}

static const char *read_servers(struct reader *r, uint32_t max)
{
	r->store.servers.at = arena_take(r->arena, max * sizeof(struct config_server));
	for (;;) {
		size_t len = strcspn(r->at, ",/");
		const char *wrong = read_server(r, len);
		if (wrong)
			return wrong;
		r->at += len;
		if (*r->at != ',')
			return NULL;
		if (r->store.servers.count == max)
			return "has too many servers";
		r->at++;
	}
}

// "/DB", or nothing.
static const char *read_db(struct reader *r)
{
	if (!*r->at)
		return NULL;
	const char *digits = r->at + 1;
	size_t len = strspn(digits, "0123456789");
	if (*r->at != '/' || len == 0 || len > 5 || digits[len])
		return "has no number of a database at its end";
	for (const char *c = digits; *c; c++)
		r->store.db = r->store.db * 10 + (uint64_t)(*c - '0');
	return r->store.db > DB_MAX ? "has no number of a database at its end" : NULL;
}

static const char *read_redis(struct reader *r)
{
	r->store.kind = CONFIG_STORE_REDIS;
	const char *wrong = read_servers(r, 1);
	return wrong ? wrong : read_db(r);
}

static const char *read_sentinel(struct reader *r)
{
	r->store.kind = CONFIG_STORE_SENTINEL;
	const char *wrong = read_servers(r, CONFIG_SENTINELS_MAX);
	if (wrong)
		return wrong;
	size_t len = *r->at ? strcspn(r->at + 1, "/") : 0;
	if (len == 0 || !is_name(r->at + 1, len))
		return "does not name a primary after its servers";
	r->store.name = arena_copy(r->arena, r->at + 1, len);
	r->at += 1 + len;
	return read_db(r);
}

static const char *read_unix(struct reader *r)
{
	r->store.kind = CONFIG_STORE_UNIX;
	if (r->at[0] != '/')
		return "has no path from the root";
	if (strlen(r->at) > SOCKET_BYTES_MAX)
		return "has too long a path for a socket";
	r->store.name = arena_copy(r->arena, r->at, strlen(r->at));
	return NULL;
}

static const struct scheme {
	const char *text;
	const char *(*read)(struct reader *);
} schemes[] = {{"redis://", read_redis}, {"sentinel://", read_sentinel}, {"unix://", read_unix},
	{NULL, NULL}};

static const char *read_url(struct reader *r)
{
	for (const struct scheme *scheme = schemes; scheme->text; scheme++) {
		size_t len = strlen(scheme->text);
		if (strncmp(r->at, scheme->text, len) != 0)
			continue;
		r->at += len;
		const char *wrong = read_user(r);
		return wrong ? wrong : scheme->read(r);
	}
	return "is no store";
}

const char *store_url_read(const struct key *key, const char *text, struct arena *arena, void *to)
{
	struct reader r = {.at = text, .key = key, .arena = arena};
	size_t len = strlen(text);
	if (len > URL_BYTES_MAX)
		return "is too long";
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c == 0x7f)
			return "has other characters";
	const char *wrong = strcmp(text, "embedded") == 0 ? NULL : read_url(&r);
	if (wrong)
		return wrong;
	r.store.text = arena_copy(arena, text, len);
	memcpy(to, &r.store, sizeof(r.store));
	return NULL;
}
