// The Date of answers, from seconds to a calendar, without libc: strftime() knows locales, and
// gmtime_r() may read a file.

#include "dataplane/gate/decide.h"

#include <string.h>

static void put_two_digits(char *at, uint32_t n)
{
	at[0] = (char)('0' + n / 10 % 10);
	at[1] = (char)('0' + n % 10);
}

void decide_date(uint32_t now_s, char date[32])
{
	static const char days[] = "ThuFriSatSunMonTueWed"; // 1970-01-01 was a Thursday
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	uint32_t day = now_s / 86400, second = now_s % 86400;
	// Days since 0000-03-01, so that a leap day ends its year; then year and day of year by the
	// mean lengths of eras, centuries and years.
	uint32_t z = day + 719468, era = z / 146097, doe = z % 146097;
	uint32_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
	uint32_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	uint32_t mp = (5 * doy + 2) / 153, month = mp < 10 ? mp + 2 : mp - 10; // from 0
	uint32_t year = yoe + era * 400 + (month < 2);
	memcpy(date, "Thu, 01 Jan 1970 00:00:00 GMT", 30);
	memcpy(date, days + day % 7 * 3, 3);
	put_two_digits(date + 5, doy - (153 * mp + 2) / 5 + 1);
	memcpy(date + 8, months + (size_t)month * 3, 3);
	put_two_digits(date + 12, year / 100);
	put_two_digits(date + 14, year % 100);
	put_two_digits(date + 17, second / 3600);
	put_two_digits(date + 20, second / 60 % 60);
	put_two_digits(date + 23, second % 60);
}
