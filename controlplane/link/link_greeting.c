// Each reply is looked at by its type first: hiredis has checked the form, not the sense.

#include "controlplane/link/link_greeting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const link_greeting_config[LINK_GREETING_CONFIG_COUNT] = {
	"maxmemory-policy", "min-replicas-to-write", "appendonly", "appendfsync"};

static bool fail(char *error, const char *what)
{
	snprintf(error, LINK_GREETING_TEXT_BYTES, "%s", what);
	return false;
}

static bool is_control(char c)
{
	return (c >= 0 && c < ' ') || c == 0x7f;
}

// What Redis says went wrong, of which nothing may reach a terminal but what prints. A server that
// does not know a command repeats its arguments, of AUTH the password: they are cut off.
static bool fail_as_told(char *error, const redisReply *reply)
{
	static const char arguments[] = ", with args beginning with";
	const char *cut = memmem(reply->str, reply->len, arguments, sizeof(arguments) - 1);
	const size_t bytes = cut ? (size_t)(cut - reply->str) : reply->len;
	snprintf(error, LINK_GREETING_TEXT_BYTES, "%.*s", (int)bytes, reply->str);
	for (char *c = error; *c; c++)
		if (is_control(*c))
			*c = '?';
	return false;
}

static bool is_text(const redisReply *reply)
{
	return reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
}

static bool is_word(const redisReply *reply, const char *word)
{
	return is_text(reply) && reply->len == strlen(word) &&
	       memcmp(reply->str, word, reply->len) == 0;
}

// A text without zeroes and the like that fits into `bytes`.
static bool copy_text(const redisReply *reply, char *to, size_t bytes)
{
	if (!is_text(reply) || reply->len == 0 || reply->len >= bytes)
		return false;
	for (size_t i = 0; i < reply->len; i++)
		if (is_control(reply->str[i]))
			return false;
	memcpy(to, reply->str, reply->len);
	to[reply->len] = '\0';
	return true;
}

static bool is_array(const redisReply *reply, size_t elements_min)
{
	return reply->type == REDIS_REPLY_ARRAY && reply->elements >= elements_min;
}

bool link_greeting_take_ok(const redisReply *reply, char *error)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return fail_as_told(error, reply);
	return is_word(reply, "OK") || fail(error, "is no Redis");
}

static bool fail_as_replica(const redisReply *reply, char *error)
{
	char host[LINK_GREETING_HOST_BYTES];
	if (reply->elements < 3 || !copy_text(reply->element[1], host, sizeof(host)) ||
		reply->element[2]->type != REDIS_REPLY_INTEGER)
		return fail(error, "is a replica");
	snprintf(error, LINK_GREETING_TEXT_BYTES, "is a replica, of %s:%lld", host,
		reply->element[2]->integer);
	return false;
}

bool link_greeting_take_role(const redisReply *reply, char *error)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return fail_as_told(error, reply);
	if (!is_array(reply, 1))
		return fail(error, "has an unknown role");
	if (is_word(reply->element[0], "master"))
		return true;
	if (is_word(reply->element[0], "slave"))
		return fail_as_replica(reply, error);
	return fail(error, is_word(reply->element[0], "sentinel")
				   ? "is a sentinel, not the server; allowed: sentinel://"
				   : "has an unknown role");
}

// The value of `name` in lines of "name:value\r\n": its start, and its length. NULL if none.
static const char *find_value(const redisReply *info, const char *name, size_t *bytes)
{
	size_t name_bytes = strlen(name);
	const char *end = info->str + info->len;
	for (const char *line = info->str, *next; line < end; line = next) {
		const char *stop = memchr(line, '\n', end - line);
		next = stop ? stop + 1 : end;
		size_t len = (stop ? stop : end) - line;
		if (len > 0 && line[len - 1] == '\r')
			len--;
		if (len <= name_bytes || memcmp(line, name, name_bytes) != 0 ||
			line[name_bytes] != ':')
			continue;
		*bytes = len - name_bytes - 1;
		return line + name_bytes + 1;
	}
	return NULL;
}

static bool take_id(const redisReply *info, const char *name, char *id)
{
	size_t bytes = 0;
	const char *value = find_value(info, name, &bytes);
	if (!value || bytes != LINK_GREETING_ID_BYTES - 1)
		return false;
	memcpy(id, value, bytes);
	id[bytes] = '\0';
	return strspn(id, "0123456789abcdef") == bytes;
}

static bool take_number(const redisReply *info, const char *name, uint64_t *number)
{
	size_t bytes = 0;
	const char *value = find_value(info, name, &bytes);
	if (!value || bytes == 0 || bytes > 18)
		return false;
	*number = 0;
	for (size_t i = 0; i < bytes; i++) {
		if (value[i] < '0' || value[i] > '9')
			return false;
		*number = *number * 10 + (uint64_t)(value[i] - '0');
	}
	return true;
}

static void take_version(const redisReply *info, char *version, size_t bytes_max)
{
	size_t bytes = 0;
	const char *value = find_value(info, "redis_version", &bytes);
	if (value && bytes >= bytes_max)
		bytes = bytes_max - 1;
	if (value)
		memcpy(version, value, bytes);
	version[bytes] = '\0';
	version[strspn(version, "0123456789.")] = '\0';
}

bool link_greeting_take_info(const redisReply *reply, struct link_server *server, char *error)
{
	uint64_t loading = 0, replicas = 0;
	if (reply->type == REDIS_REPLY_ERROR)
		return fail_as_told(error, reply);
	if (!is_text(reply))
		return fail(error, "does not tell who it is");
	*server = (struct link_server){0};
	if (!take_id(reply, "run_id", server->run_id) ||
		!take_id(reply, "master_replid", server->replication_id) ||
		!take_number(reply, "master_repl_offset", &server->offset))
		return fail(error, "does not tell who it is");
	if (take_number(reply, "loading", &loading) && loading)
		return fail(error, "is still loading");
	if (take_number(reply, "connected_slaves", &replicas))
		server->replicas = replicas < UINT32_MAX ? (uint32_t)replicas : UINT32_MAX;
	take_version(reply, server->version, sizeof(server->version));
	return true;
}

static void warn(struct link_warnings *warnings, const char *format, const char *value)
{
	if (warnings->count == LINK_GREETING_WARNINGS_MAX)
		return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(warnings->texts[warnings->count++], LINK_GREETING_TEXT_BYTES, format, value);
#pragma GCC diagnostic pop
}

// The value of one of the asked for, or "?".
static const char *config_of(const redisReply *reply, const char *name, char value[32])
{
	snprintf(value, 32, "?");
	for (size_t i = 0; i + 1 < reply->elements; i += 2)
		if (is_word(reply->element[i], name))
			copy_text(reply->element[i + 1], value, 32);
	return value;
}

// Redis has more to say on each: what matters here is whether it forgets, or refuses.
static const struct advice {
	const char *good; // the value that is well; a first '!': any but it
	bool is_for_replicas;
	const char *format;
} advices[LINK_GREETING_CONFIG_COUNT] = {
	{"noeviction", false,
		"maxmemory-policy is %s: short of memory, it forgets; set noeviction"},
	{"!0", true,
		"min-replicas-to-write is %s: a fail-over may lose what it has acknowledged; set 1 "
		"or more"},
	{"yes", false, "appendonly is %s: a restart loses all since the last snapshot; set yes"},
	{"always", false,
		"appendfsync is %s: a power cut may lose what it has acknowledged; `always` would "
		"not"},
};

static bool is_good(const struct advice *advice, const char *value)
{
	if (advice->good[0] == '!')
		return strcmp(value, advice->good + 1) != 0 && strcmp(value, "?") != 0;
	return strcmp(value, advice->good) == 0;
}

void link_greeting_take_config(
	const redisReply *reply, bool has_replicas, struct link_warnings *warnings)
{
	char value[32];
	warnings->count = 0;
	if (!is_array(reply, 0)) {
		warn(warnings, "%s is refused: how it keeps what it is told could not be checked",
			"CONFIG GET");
		return;
	}
	bool keeps_log = strcmp(config_of(reply, "appendonly", value), "yes") == 0;
	for (size_t i = 0; i < LINK_GREETING_CONFIG_COUNT; i++) {
		const struct advice *advice = &advices[i];
		bool is_of_log = strcmp(link_greeting_config[i], "appendfsync") == 0;
		if ((advice->is_for_replicas && !has_replicas) || (is_of_log && !keeps_log))
			continue;
		if (!is_good(advice, config_of(reply, link_greeting_config[i], value)))
			warn(warnings, advice->format, value);
	}
}

bool link_greeting_take_script(const redisReply *reply, char *name, char *error)
{
	if (reply->type == REDIS_REPLY_ERROR)
		return fail_as_told(error, reply);
	if (!copy_text(reply, name, LINK_GREETING_ID_BYTES) ||
		strspn(name, "0123456789abcdef") != LINK_GREETING_ID_BYTES - 1)
		return fail(error, "does not name the script that it was given");
	return true;
}

bool link_greeting_take_primary(const redisReply *reply, char *host, uint16_t *port, char *error)
{
	char digits[6];
	if (reply->type == REDIS_REPLY_ERROR)
		return fail_as_told(error, reply);
	if (reply->type == REDIS_REPLY_NIL)
		return fail(error, "knows no primary of that name");
	if (!is_array(reply, 2) || !copy_text(reply->element[0], host, LINK_GREETING_HOST_BYTES) ||
		!copy_text(reply->element[1], digits, sizeof(digits)) ||
		strspn(digits, "0123456789") != strlen(digits))
		return fail(error, "does not tell where the primary is");
	unsigned long number = strtoul(digits, NULL, 10);
	if (number < 1 || number > UINT16_MAX)
		return fail(error, "does not tell where the primary is");
	*port = (uint16_t)number;
	return true;
}

static bool begins(const redisReply *reply, const char *word)
{
	size_t bytes = strlen(word);
	return reply->len > bytes && memcmp(reply->str, word, bytes) == 0 &&
	       reply->str[bytes] == ' ';
}

bool link_greeting_is_demoted(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR &&
	       (begins(reply, "READONLY") || begins(reply, "MASTERDOWN") ||
		       begins(reply, "LOADING"));
}

bool link_greeting_is_forgotten(const redisReply *reply)
{
	return reply->type == REDIS_REPLY_ERROR && begins(reply, "NOSCRIPT");
}
