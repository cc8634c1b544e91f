// Matching paths against a naive twin of the contract's four readings, and one of all readings,
// under random targets made of what attackers use.
//
// The twin's readings are lists of segments, all of them made, none skipped because it could make
// no difference.

#include "tests/unit/gate/append.h"
#include "tests/unit/gate/matching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define LEN_MAX 1024
#define READINGS_MAX 128

struct text {
	char at[LEN_MAX];
	size_t len;
};

struct readings {
	struct text all[READINGS_MAX];
	int count;
	bool is_bad;
};

enum {
	ENCODED_IS_LETTER = 1,
	BACKSLASH_IS_LETTER = 2,
	EMPTY_IS_SEGMENT = 4,
	NO_PARAMETERS = 8,
};

static void twin_add(struct readings *readings, const struct text *text)
{
	assert_true(readings->count < READINGS_MAX);
	readings->all[readings->count++] = *text;
}

static bool twin_decode(const struct text *in, bool opaque, struct text *out)
{
	struct text made = {.len = 0};
	for (size_t i = 0; i < in->len;) {
		if (in->at[i] != '%') {
			made.at[made.len++] = in->at[i++];
			continue;
		}
		char digits[3] = {0}, *end;
		for (size_t j = 0; j < 2 && i + 1 + j < in->len; j++)
			digits[j] = in->at[i + 1 + j];
		if (!strchr("0123456789abcdefABCDEF", digits[0]) || !digits[0])
			return false;
		char c = (char)strtol(digits, &end, 16);
		if (end != digits + 2)
			return false;
		made.at[made.len++] = opaque && (c == '/' || c == '\\') ? 0 : c;
		i += 3;
	}
	*out = made;
	return true;
}

static bool twin_resolve(const struct text *in, unsigned ways, struct text *out)
{
	static struct text segments[LEN_MAX];
	int count = 0;
	bool is_open = true; // the path ends with a slash
	for (size_t i = 0; i < in->len;) {
		struct text segment = {.len = 0};
		for (i++; i < in->len; i++) {
			if (in->at[i] == '/' ||
				(in->at[i] == '\\' && !(ways & BACKSLASH_IS_LETTER)))
				break;
			segment.at[segment.len++] = in->at[i];
		}
		for (size_t j = 0; ways & NO_PARAMETERS && j < segment.len; j++)
			if (segment.at[j] == ';')
				segment.len = j;
		bool is_up = segment.len == 2 && segment.at[0] == '.' && segment.at[1] == '.';
		bool is_here = segment.len == 1 && segment.at[0] == '.';
		is_open = is_up || is_here || segment.len == 0;
		if (is_up && count-- == 0)
			return false;
		bool is_last_empty = segment.len == 0 && i == in->len;
		if (is_up || is_here || (segment.len == 0 && !(ways & EMPTY_IS_SEGMENT)))
			continue;
		if (is_last_empty)
			is_open = false; // it brings its own slash
		segments[count++] = segment;
	}
	out->len = 0;
	for (int i = 0; i < count; i++) {
		out->at[out->len++] = '/';
		for (size_t j = 0; j < segments[i].len; j++)
			out->at[out->len++] = segments[i].at[j] ? segments[i].at[j] : '/';
	}
	if (is_open)
		out->at[out->len++] = '/';
	return true;
}

static const struct gate_room ours, *const twin_sluice = &ours; // stands for /.sluice/

// The room of a reading by the longest path of all rooms, unsorted.
static const struct gate_room *twin_room(const struct gate_site *site, const struct text *text)
{
	const struct gate_room *best = NULL;
	int (*compare)(const char *, const char *, size_t) =
		site->case_sensitive ? strncmp : strncasecmp;
	if (text->len >= 9 && compare(text->at, "/.sluice/", 9) == 0)
		return twin_sluice;
	for (int i = 0; i < TOWN_ROOMS; i++) {
		const struct gate_room *room = &town_rooms[i];
		if (room->site != site->index || room->path.len > text->len)
			continue;
		if (compare(text->at, room->path.at, room->path.len) == 0 &&
			(!best || room->path.len > best->path.len))
			best = room;
	}
	return best;
}

static const char *twin_verdict(const struct gate_site *site, const struct readings *readings)
{
	const struct gate_room *found = NULL;
	if (readings->is_bad)
		return BAD;
	for (int i = 0; i < readings->count; i++) {
		const struct gate_room *room = twin_room(site, &readings->all[i]);
		if (room && found && room != found)
			return BAD;
		found = room ? room : found;
	}
	return !found ? NONE : found == twin_sluice ? SLUICE : found->name.at;
}

static bool twin_contains(const struct text *text, const char *what)
{
	return memmem(text->at, text->len, what, strlen(what)) != NULL;
}

// Whether a segment, however the path is cut, is `..`.
static bool twin_climbs(const struct text *text)
{
	struct text cut = {.len = 0};
	for (size_t i = 0; i < text->len; i++)
		cut.at[cut.len++] = text->at[i] == '\\' ? '/' : text->at[i];
	cut.at[cut.len++] = '/';
	return twin_contains(&cut, "/../") || twin_contains(&cut, "/..;");
}

static struct text twin_narrow(const struct text *in)
{
	struct text out = {.len = 0};
	for (size_t i = 0; i < in->len; i++) {
		uint8_t b[4] = {0};
		for (size_t j = 0; j < 4 && i + j < in->len; j++)
			b[j] = in->at[i + j];
		uint32_t code = b[0];
		size_t more = 0;
		if ((b[0] & 0xe0) == 0xc0)
			code = b[0] & 0x1f, more = 1;
		else if ((b[0] & 0xf0) == 0xe0)
			code = b[0] & 0x0f, more = 2;
		else if ((b[0] & 0xf8) == 0xf0)
			code = b[0] & 0x07, more = 3;
		bool is_whole = i + more < in->len;
		for (size_t j = 1; j <= more; j++) {
			is_whole = is_whole && (b[j] & 0xc0) == 0x80;
			code = code << 6 | (b[j] & 0x3f);
		}
		bool is_overlong = more > 0 && is_whole && code < 0x80;
		out.at[out.len++] = is_overlong ? (char)code : in->at[i];
		i += is_overlong ? more : 0;
	}
	return out;
}

// The readings beyond the contract's, of one level of decoding.
static void twin_add_others(const struct gate_site *site, const struct text *encoded,
	const struct text *decoded, struct readings *readings)
{
	struct text text, narrowed = twin_narrow(decoded);
	if (narrowed.len != decoded->len) {
		twin_add(readings, &narrowed);
		readings->is_bad |= !twin_resolve(&narrowed, 0, &text);
		twin_add(readings, &text);
	}
	bool climbs = twin_climbs(decoded);
	const char *room = twin_verdict(site, readings);
	bool has_parameters = twin_contains(decoded, ";") && strcmp(room, "annex") != 0;
	for (unsigned ways = 1; ways < 16; ways++) {
		if ((ways & NO_PARAMETERS) && !has_parameters)
			continue;
		if (!climbs && (!(ways & NO_PARAMETERS) || (ways & EMPTY_IS_SEGMENT)))
			continue;
		twin_decode(encoded, ways & ENCODED_IS_LETTER, &text);
		if (!twin_resolve(&text, ways, &text)) {
			readings->is_bad = true;
			return;
		}
		twin_add(readings, &text);
		readings->is_bad |= !twin_resolve(&text, 0, &text);
		twin_add(readings, &text);
	}
}

// All readings of a path: the contract's four, and the others if `is_full`.
static void twin_read(
	const struct gate_site *site, const char *target, bool is_full, struct readings *readings)
{
	struct text sent = {.len = strcspn(target, "?")}, once, twice, text;
	memcpy(sent.at, target, sent.len);
	readings->count = 0;
	readings->is_bad = true;
	if (!twin_decode(&sent, false, &once) || memchr(once.at, 0, once.len))
		return;
	twin_add(readings, &sent);
	twin_add(readings, &once);
	if (!twin_resolve(&once, 0, &text))
		return;
	twin_add(readings, &text);
	readings->is_bad = false;
	if (is_full)
		twin_add_others(site, &sent, &once, readings);
	if (!twin_decode(&once, false, &twice))
		return;
	if (memchr(twice.at, 0, twice.len) || !twin_resolve(&twice, 0, &text)) {
		readings->is_bad = true;
		return;
	}
	twin_add(readings, &text);
	if (is_full)
		twin_add_others(site, &once, &twice, readings);
}

// What random targets are made of.
static const char *const pieces[] = {"/", "/", "/", "/", "//", "\\", ".", "..", "/..", "/../",
	"%2e", "%2E%2e", "%252e", "%2f", "%2F", "%252f", "%5c", "%255C", ";", ";v=1", "%3b",
	"%253b", "derby", "DERBY", "%64erby", "%2564erby", "vip", "/vip", "x", "y", "/x", "/y",
	"Exact", "/.sluice/", ".Sluice", "annex", "?", "%", "%z", "%25", "%2525", "%00", "%2500",
	"%c0%af", "%c0%ae", "%e0%80%af", "%25c0%25ae", "\xc0", "\xaf", "\xe0", "\xf0", "\x80",
	"\x90"};

static unsigned long counts[4]; // of results: bad, none, room, ours

static void check_random_target(unsigned seed)
{
	static struct readings readings;
	const struct gate_site *site = &town_sites[rand_r(&seed) % TOWN_SITES];
	char target[256] = "/";
	int count = 1 + rand_r(&seed) % 8;
	for (int i = 0; i < count; i++)
		append(target, sizeof(target), "%s",
			pieces[rand_r(&seed) % (sizeof(pieces) / sizeof(pieces[0]))]);
	struct match match = match_flush(site, target, strlen(target));
	twin_read(site, target, true, &readings);
	const char *found = result_text(&match), *full = twin_verdict(site, &readings);
	if (strcmp(found, full) != 0)
		fail_msg("%s on %s is %s, not %s", target, site->name.at, found, full);
	twin_read(site, target, false, &readings);
	const char *four = twin_verdict(site, &readings);
	if (strcmp(found, four) != 0 && strcmp(found, BAD) != 0 && strcmp(four, NONE) != 0)
		fail_msg("%s on %s is %s, by the contract %s", target, site->name.at, found, four);
	counts[match.kind]++;
}

static void agrees_with_the_twin(void **state)
{
	(void)state;
	const char *text = getenv("SEED");
	unsigned seed = text ? strtoul(text, NULL, 0) : 20240607, rounds = 100000;
	printf("SEED=%u\n", seed);
	for (unsigned i = 0; i < rounds; i++)
		check_random_target(seed * 2654435761u + i);
	for (int kind = MATCH_BAD; kind <= MATCH_SLUICE; kind++)
		assert_true(counts[kind] > rounds / 100); // the targets say something
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_twin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
