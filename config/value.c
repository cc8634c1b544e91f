// Values: the types that are numbers, words and plain texts, and the table of all types.
//
// Each reader returns the end of a sentence; load.c puts file, line, key and value before it and
// what is allowed after it. Numbers are read saturating: too large is too large, whatever the
// width.

#include "config/value.h"

#include "config/config.h"
#include "config/host.h"
#include "config/store_url.h"
#include "config/when.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define S UINT64_C(1000) // ms in a second

struct unit {
	const char *name;
	uint64_t factor;
};

// Largest last, so that a number is shown in the largest unit that divides it.
static const struct unit duration_units[] = {{"ms", 1}, {"s", S}, {"m", 60 * S}, {"h", 3600 * S},
	{"d", 86400 * S}, {"y", 365 * 86400 * S}, {NULL, 0}};
static const struct unit size_units[] = {
	{"", 1}, {"k", 1u << 10}, {"m", 1u << 20}, {"g", 1u << 30}, {NULL, 0}};
static const struct unit rate_units[] = {{"/s", S}, {"/min", 60 * S}, {"/h", 3600 * S}, {NULL, 0}};

// What is said of a text that is none, and of a number with another unit or without one.
struct measure {
	const struct unit *units;
	const char *is_none, *is_unknown, *is_bare;
};

static const struct measure durations = {duration_units, "is not a duration",
	"has an unknown unit (known are ms, s, m, h, d)", "has no unit (s, m, h, d)"};
static const struct measure periods = {duration_units, "has no period",
	"has a period of an unknown unit (known are s, m, h, d)", "has a period without a unit"};
static const struct measure sizes = {
	size_units, "is not a size", "has an unknown unit (known are k, m, g)", "has no unit"};

// The digits at the start of `text`. Returns what follows them, NULL if there are none.
static const char *read_digits(const char *text, uint64_t *number)
{
	const char *c = text;
	for (*number = 0; *c >= '0' && *c <= '9'; c++)
		if (__builtin_mul_overflow(*number, 10, number) ||
			__builtin_add_overflow(*number, (uint64_t)(*c - '0'), number))
			*number = UINT64_MAX;
	return c > text ? c : NULL;
}

static const struct unit *find_unit(const struct unit *units, const char *name)
{
	for (const struct unit *unit = units; unit->name; unit++)
		if (strcmp(unit->name, name) == 0)
			return unit;
	return NULL;
}

static const char *store_number(const struct key *key, uint64_t number, void *to)
{
	if (number < key->min)
		return "is too small";
	if (number > key->max)
		return "is too large";
	memcpy(to, &number, sizeof(number));
	return NULL;
}

static const char *read_count(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)arena;
	uint64_t number;
	const char *rest = read_digits(text, &number);
	if (!rest || *rest)
		return "is not a whole number";
	return store_number(key, number, to);
}

// A list's min and max are its length, so the range of a core stands here.
static const char *read_core(const struct key *key, const char *text, struct arena *arena, void *to)
{
	struct key one = *key;
	one.min = 0;
	one.max = CPU_SETSIZE - 1;
	return read_count(&one, text, arena, to);
}

// `number` and its unit as a number in the base unit, saturating.
static const char *read_measure(const struct measure *measure, const char *text, uint64_t *number)
{
	const char *rest = read_digits(text, number);
	if (!rest)
		return measure->is_none;
	const struct unit *unit = find_unit(measure->units, rest);
	if (!unit)
		return *rest ? measure->is_unknown : measure->is_bare;
	if (__builtin_mul_overflow(*number, unit->factor, number))
		*number = UINT64_MAX;
	return NULL;
}

static uint64_t duration_scale(const struct key *key)
{
	return strcmp(key->of, "ms") == 0 ? 1 : S;
}

static const char *read_duration(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)arena;
	uint64_t ms, scale = duration_scale(key);
	bool is_nothing = strcmp(text, "0") == 0; // in any unit
	const char *wrong = is_nothing ? (ms = 0, NULL) : read_measure(&durations, text, &ms);
	if (wrong)
		return wrong;
	if (ms != UINT64_MAX && ms % scale)
		return "is not a whole number of seconds";
	return store_number(key, ms / scale, to);
}

static const char *read_size(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)arena;
	uint64_t bytes;
	const char *wrong = read_measure(&sizes, text, &bytes);
	return wrong ? wrong : store_number(key, bytes, to);
}

static const char *read_rate(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)arena;
	struct config_rate rate;
	const char *rest = read_digits(text, &rate.count);
	if (!rest)
		return "is not a rate";
	const struct unit *unit = find_unit(rate_units, rest);
	if (!unit)
		return *rest ? "has an unknown unit" : "has no unit";
	const char *wrong = store_number(key, rate.count, &rate.count);
	if (wrong)
		return wrong;
	rate.period_ms = unit->factor;
	memcpy(to, &rate, sizeof(rate));
	return NULL;
}

#define EVERY " every "

static const char *read_batch(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)arena;
	struct config_rate batch;
	const char *rest = read_digits(text, &batch.count);
	if (!rest || strncmp(rest, EVERY, strlen(EVERY)) != 0)
		return "is not a number of people every so long";
	const char *wrong = read_measure(&periods, rest + strlen(EVERY), &batch.period_ms);
	if (wrong || (wrong = store_number(key, batch.count, &batch.count)))
		return wrong;
	if (batch.period_ms < S || batch.period_ms > 86400 * S || batch.period_ms % S)
		return "has a period out of range";
	memcpy(to, &batch, sizeof(batch));
	return NULL;
}

// The number of `text` among `words` ("a|b;c"); `later` says that it stands after the ';'.
static int find_word(const char *words, const char *text, bool *later)
{
	size_t len = strlen(text);
	*later = false;
	for (int index = 0;; index++) {
		size_t word_len = strcspn(words, "|;");
		if (word_len == len && memcmp(words, text, len) == 0)
			return index;
		if (!words[word_len])
			return -1;
		*later |= words[word_len] == ';';
		words += word_len + 1;
	}
}

static const char *read_word(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)arena;
	bool later;
	int index = find_word(key->of, text, &later);
	if (index < 0)
		return "is not one of the words";
	if (later)
		return "is not supported by this version";
	memcpy(to, &index, sizeof(index));
	return NULL;
}

static const char *read_choice(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)arena;
	bool later;
	uint64_t number;
	if (find_word(key->of, text, &later) < 0)
		return "is not one of the numbers";
	read_digits(text, &number);
	memcpy(to, &number, sizeof(number));
	return NULL;
}

static const char *read_bool(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key, (void)arena;
	bool is_true = strcmp(text, "true") == 0;
	if (!is_true && strcmp(text, "false") != 0)
		return "is neither true nor false";
	memcpy(to, &is_true, sizeof(is_true));
	return NULL;
}

static const char *store_text(const char *text, struct arena *arena, void *to)
{
	const char *copy = arena_copy(arena, text, strlen(text));
	memcpy(to, &copy, sizeof(copy));
	return NULL;
}

static const char *check_length(const struct key *key, const char *text)
{
	size_t len = strlen(text);
	if (len < key->min)
		return "is empty";
	return len > key->max ? "is too long" : NULL;
}

#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"

// Names stand in cookie names and in paths, where "." and ".." have another meaning.
static const char *read_name(const struct key *key, const char *text, struct arena *arena, void *to)
{
	const char *wrong = check_length(key, text);
	if (wrong)
		return wrong;
	if (text[strspn(text, NAME_CHARS)])
		return "has other characters";
	if (strcmp(text, ".") == 0 || strcmp(text, "..") == 0)
		return "is not a name";
	return store_text(text, arena, to);
}

static bool has_controls(const char *text)
{
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == 0x7f)
			return true;
	return false;
}

static const char *read_plain(
	const struct key *key, const char *text, struct arena *arena, void *to)
{
	const char *wrong = check_length(key, text);
	if (wrong)
		return wrong;
	return has_controls(text) ? "has control characters" : store_text(text, arena, to);
}

// One row a type.
static const struct value_type {
	const char *name;
	const char *(*read)(const struct key *, const char *, struct arena *, void *);
	size_t bytes;
	bool is_text; // the struct begins with a text, which is all of its value
	const char *allowed; // NULL: from the range or the words
} types[KEY_TYPE_COUNT] = {
	[KEY_WORD] = {"word", read_word, sizeof(int), false, NULL},
	[KEY_CHOICE] = {"number", read_choice, sizeof(uint64_t), false, NULL},
	[KEY_BOOL] = {"boolean", read_bool, sizeof(bool), false, "true or false"},
	[KEY_COUNT] = {"number", read_count, sizeof(uint64_t), false, NULL},
	[KEY_CORE] = {"core", read_core, sizeof(uint64_t), false, "a core from 0 to 1023"},
	[KEY_DURATION] = {"duration", read_duration, sizeof(uint64_t), false, NULL},
	[KEY_SIZE] = {"size", read_size, sizeof(uint64_t), false, NULL},
	[KEY_RATE] = {"rate", read_rate, sizeof(struct config_rate), false, NULL},
	[KEY_BATCH] = {"batch", read_batch, sizeof(struct config_rate), false,
		"1 to 1000000 people every 1s to 1d, as in 1000 every 10m"},
	[KEY_NAME] = {"name", read_name, sizeof(char *), true, NULL},
	[KEY_HOST] = {"host", host_read_pattern, sizeof(char *), true,
		"a host name, an address, or *.NAME"},
	[KEY_DOMAIN] = {"host", host_read_name, sizeof(char *), true, "a host name"},
	[KEY_PATH] = {"path", read_plain, sizeof(char *), true,
		"at most 1024 bytes, beginning with '/'"},
	[KEY_FILE] = {"file", read_plain, sizeof(char *), true, "the path of a file or folder"},
	[KEY_ADDRESS] = {"address", host_read_address, sizeof(struct config_address), true,
		"ADDRESS:PORT, as in 192.0.2.1:80 or [2001:db8::1]:80"},
	[KEY_NETWORK] = {"network", host_read_network, sizeof(struct config_network), true,
		"a network, as in 10.0.0.0/8 or 2001:db8::/32"},
	[KEY_SERVER] = {"server", host_read_server, sizeof(struct config_server), true,
		"HOST:PORT, as in 10.0.0.1:80, [2001:db8::1]:80 or shop.internal:80"},
	[KEY_DEVICE] = {"device", read_plain, sizeof(char *), true,
		"a PCI address, as in 0000:01:00.0, or a device, as in "
		"net_af_packet0,iface=eth1"},
	[KEY_INTERFACE] = {"interface", host_read_interface, sizeof(struct config_interface), true,
		"an address and its prefix, as in 192.0.2.10/24 or 2001:db8::10/64"},
	[KEY_IP] = {"address", host_read_ip, sizeof(struct config_ip), true,
		"an address, as in 192.0.2.1 or 2001:db8::1"},
	[KEY_TIME] = {"time", when_read_time, sizeof(uint64_t), false,
		"a moment with its zone, as in 2026-12-01T10:00:00+09:00"},
	[KEY_HEX] = {"bytes", when_read_hex, sizeof(char *), true,
		"1 to 32 bytes in hex, as in 00ff17"},
	[KEY_WINDOW] = {"window", when_read_window, sizeof(struct config_window), false,
		"a duration from 1s to 1h, or a number of people up to 1000000"},
	[KEY_TEXT] = {"text", read_plain, sizeof(char *), true, "one line of at most 500 bytes"},
	[KEY_STORE] = {"store", store_url_read, sizeof(struct config_store), true,
		"embedded, redis://USER@HOST:PORT/DB, sentinel://USER@HOST:PORT,HOST:PORT/NAME/DB "
		"or unix://USER@PATH"},
	[KEY_MAP] = {"mapping", NULL, sizeof(void *), false, "a mapping"},
};

static_assert(CPU_SETSIZE == 1024, "the phrase of KEY_CORE says 1023");

const char *value_read(const struct key *key, const char *text, struct arena *arena, void *to)
{
	assert(types[key->type].read);
	if (key_may_be_none(key) && strcmp(text, "none") == 0) {
		memset(to, 0, types[key->type].bytes);
		return NULL;
	}
	if (!*text)
		return "is empty";
	return types[key->type].read(key, text, arena, to);
}

size_t value_bytes(const struct key *key)
{
	return types[key->type].bytes;
}

bool value_is_equal(const struct key *key, const void *a, const void *b)
{
	if (!types[key->type].is_text)
		return memcmp(a, b, types[key->type].bytes) == 0;
	const char *x, *y;
	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	return x == y || (x && y && strcmp(x, y) == 0);
}

const char *value_type_name(const struct key *key)
{
	return types[key->type].name;
}

const char *value_number(const struct key *key, uint64_t number, char *text)
{
	const struct unit *units = key->type == KEY_SIZE ? size_units : duration_units;
	if (key->type == KEY_DURATION)
		number *= duration_scale(key);
	else if (key->type != KEY_SIZE)
		return snprintf(text, 32, "%lu", number), text;

	const struct unit *best = &units[number == 0 && key->type == KEY_DURATION ? 1 : 0];
	for (const struct unit *unit = units; number > 0 && unit->name; unit++)
		if (number % unit->factor == 0)
			best = unit;
	snprintf(text, 32, "%lu%s", number / best->factor, best->name);
	return text;
}

// "a|b|c;d" as "a, b or c".
static void list_words(const char *words, FILE *out)
{
	size_t end = strcspn(words, ";");
	for (size_t at = 0, len; at < end; at += len + 1) {
		len = strcspn(words + at, "|;");
		bool is_last = at + len == end;
		fprintf(out, "%s%.*s",
			at == 0   ? ""
			: is_last ? " or "
				  : ", ",
			(int)len, words + at);
	}
}

// Of a mapping what must be in it.
static void print_required(const struct key_scope *scope, FILE *out)
{
	const char *before = " with ";
	fputs(types[KEY_MAP].allowed, out);
	for (unsigned i = 0; i < *scope->table_count; i++) {
		if (scope->table[i].scope != scope || !key_is_required(&scope->table[i]))
			continue;
		fprintf(out, "%s`%s`", before, scope->table[i].name);
		before = ", ";
	}
}

static void print_allowed(const struct key *key, FILE *out)
{
	char low[32], high[32];
	const char *from = value_number(key, key->min, low);
	const char *to = value_number(key, key->max, high);

	if (key->type == KEY_MAP)
		print_required(key->child, out);
	else if (types[key->type].allowed)
		fputs(types[key->type].allowed, out);
	else if (key->type == KEY_WORD || key->type == KEY_CHOICE)
		list_words(key->of, out);
	else if (key->type == KEY_RATE)
		fprintf(out, "%s to %s %s, as in 20/s, 300/min or 5/h", from, to, key->of);
	else if (key->type == KEY_NAME)
		fprintf(out, "%s to %s letters, digits, '_', '.' or '-'", from, to);
	else
		fprintf(out, "a %s from %s to %s", types[key->type].name, from, to);
	if (key_may_be_none(key))
		fputs(", or none", out);
}

const char *value_allowed(const struct key *key, char *phrase)
{
	FILE *out = fmemopen(phrase, VALUE_PHRASE_BYTES, "w");
	assert(out);
	if (key->shape == KEY_LIST)
		fprintf(out, "a list of %lu to %lu, each ", key->min, key->max);
	print_allowed(key, out);
	fclose(out);
	return phrase;
}
