// Moments, salts and windows.

#include "config/when.h"

#include "config/config.h"
#include "config/value.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define DAY_S 86400
#define YEAR_MIN 2000u // neither side of these is meant
#define YEAR_MAX 2199u
#define WINDOW_S_MAX 3600u
#define WINDOW_PEOPLE_MAX 1000000u

struct moment {
	unsigned year, month, day, hour, minute, second, zone_hour, zone_minute;
};

// The digits of a text that has the shape of `shape`, in which 0 stands for any digit.
static bool has_shape(const char *text, const char *shape)
{
	for (; *shape; text++, shape++)
		if (*shape == '0' ? !isdigit((unsigned char)*text) : *text != *shape)
			return false;
	return true;
}

static unsigned days_in(unsigned year, unsigned month)
{
	static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
	return month == 2 && is_leap ? 29 : days[month - 1];
}

static bool is_in_range(const struct moment *m)
{
	return m->year >= YEAR_MIN && m->year <= YEAR_MAX && m->month >= 1 && m->month <= 12 &&
	       m->day >= 1 && m->day <= days_in(m->year, m->month) && m->hour < 24 &&
	       m->minute < 60 && m->second <= 60 && m->zone_hour < 24 && m->zone_minute < 60;
}

static uint64_t unix_seconds(const struct moment *m, int sign)
{
	int64_t days = 0;
	for (unsigned year = 1970; year < m->year; year++)
		days += 365 + (days_in(year, 2) == 29);
	for (unsigned month = 1; month < m->month; month++)
		days += days_in(m->year, month);
	days += m->day - 1;
	int64_t zone = sign * (int64_t)(m->zone_hour * 3600 + m->zone_minute * 60);
	return (uint64_t)(days * DAY_S + m->hour * 3600 + m->minute * 60 + m->second - zone);
}

const char *when_read_time(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key, (void)arena;
	static const char shape[] = "0000-00-00T00:00:00";
	const size_t len = sizeof(shape) - 1;
	struct moment m = {0};
	char sign = '+';
	if (!has_shape(text, shape))
		return "is not a date and a time";
	const char *zone = text + len;
	if (!*zone)
		return "has no zone";
	sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u", &m.year, &m.month, &m.day, &m.hour, &m.minute,
		&m.second);
	bool is_utc = strcmp(zone, "Z") == 0;
	if (!is_utc && (!(has_shape(zone, "+00:00") || has_shape(zone, "-00:00")) || zone[6]))
		return "has no such zone";
	if (!is_utc)
		sscanf(zone, "%c%2u:%2u", &sign, &m.zone_hour, &m.zone_minute);
	if (!is_in_range(&m))
		return "is no moment";
	uint64_t seconds = unix_seconds(&m, sign == '-' ? -1 : 1);
	memcpy(to, &seconds, sizeof(seconds));
	return NULL;
}

const char *when_read_hex(const struct key *key, const char *text, struct arena *arena, void *to)
{
	size_t len = strlen(text);
	if (text[strspn(text, "0123456789abcdefABCDEF")] || len % 2)
		return "is not bytes in hex";
	if (len > 2 * key->max)
		return "is too long";
	const char *copy = arena_copy(arena, text, len);
	memcpy(to, &copy, sizeof(copy));
	return NULL;
}

// The two readings share the words of the types that they are.
static const char *read_as(enum key_type type, const char *text, uint64_t max, uint64_t *number)
{
	const struct key key = {.of = type == KEY_DURATION ? "s" : "people",
		.min = 1,
		.max = max,
		.type = type,
		.fallback = ""};
	return value_read(&key, text, NULL, number);
}

const char *when_read_window(const struct key *key, const char *text, struct arena *arena, void *to)
{
	(void)key, (void)arena;
	struct config_window window = {0};
	bool is_number = !text[strspn(text, "0123456789")];
	const char *wrong = is_number ? read_as(KEY_COUNT, text, WINDOW_PEOPLE_MAX, &window.people)
				      : read_as(KEY_DURATION, text, WINDOW_S_MAX, &window.s);
	if (!wrong)
		memcpy(to, &window, sizeof(window));
	return wrong;
}
