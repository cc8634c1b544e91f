// Headers as they come: tables of them, each ending where memory ends.

#include "dataplane/net/tcp/segment.h"

#include "tests/unit/http/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

// Header fields in hexadecimal.
#define BEFORE \
	"9c400050" \
	"00000001" \
	"00000002" // 40000 to 80, sequence number 1, ACK of 2
#define AFTER \
	"01ff" \
	"0000" \
	"0000" // window 511, checksum, urgent pointer

static struct span bytes_of(const char *hex)
{
	static char bytes[256];
	size_t len = 0;
	for (; hex[0]; hex += 2) {
		const char digits[] = {hex[0], hex[1], 0};
		bytes[len++] = (char)strtol(digits, NULL, 16);
	}
	return guard_copy((struct span){bytes, len});
}

static void test_short_ones_are_none(void **state)
{
	(void)state;
	static const char *const cases[] = {
		"", "9c40",
		BEFORE "5010"
		       "01ff0000"
		       "00", // 19 bytes
		BEFORE "4010" AFTER, // a header of 16 bytes
		BEFORE "0010" AFTER, // of none
		BEFORE "6010" AFTER, // of 24 bytes, 20 are there
		BEFORE "f010" AFTER "00000000", // of 60
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tcp_segment segment;
		assert_false(tcp_segment_read(bytes_of(cases[i]), &segment));
	}
}

static void test_header_and_payload(void **state)
{
	(void)state;
	struct tcp_segment segment;
	assert_true(tcp_segment_read(bytes_of(BEFORE "5010" AFTER "6162"), &segment));
	assert_int_equal(segment.peer.port, 40000);
	assert_int_equal(segment.local.port, 80);
	assert_int_equal(segment.seq, 1);
	assert_int_equal(segment.ack, 2);
	assert_int_equal(segment.window, 511);
	assert_int_equal(segment.flags, TCP_ACK);
	assert_int_equal(segment.payload.len, 2);
	assert_memory_equal(segment.payload.at, "ab", 2);
	assert_int_equal(tcp_segment_len(&segment), 2);
	assert_true(tcp_segment_read(bytes_of(BEFORE "5003" AFTER), &segment));
	assert_int_equal(tcp_segment_len(&segment), 2); // SYN and FIN
}

// What the options say, as a line.
static const char *read_options(const char *hex)
{
	static char line[200];
	struct tcp_segment s;
	if (!tcp_segment_read(bytes_of(hex), &s))
		return "none";
	size_t len = 0;
	line[0] = 0;
	if (s.has_mss)
		len += snprintf(line + len, sizeof(line) - len, "mss %u, ", s.mss);
	if (s.has_scale)
		len += snprintf(line + len, sizeof(line) - len, "scale %u, ", s.scale);
	if (s.has_sack_permitted)
		len += snprintf(line + len, sizeof(line) - len, "sack, ");
	if (s.has_timestamp)
		len += snprintf(
			line + len, sizeof(line) - len, "time %u %u, ", s.ts_value, s.ts_echo);
	for (unsigned i = 0; i < s.sack_count; i++)
		len += snprintf(
			line + len, sizeof(line) - len, "%u-%u, ", s.sacks[i].from, s.sacks[i].to);
	return line;
}

static const struct {
	const char *what, *hex, *says;
} options[] = {
	{"all of a SYN",
		BEFORE "a002" AFTER "020405b4"
		       "0402080a"
		       "00000007"
		       "00000000"
		       "01030307",
		"mss 1460, scale 7, sack, time 7 0, "},
	{"a scale above 14 counts as 14 (RFC 7323 2.3)", BEFORE "6002" AFTER "0103030f",
		"scale 14, "},
	{"a timestamp alone, as nearly always",
		BEFORE "8010" AFTER "0101080a"
		       "00000001"
		       "00000002",
		"time 1 2, "},
	{"the same, ordered otherwise",
		BEFORE "8010" AFTER "080a0000"
		       "00010000"
		       "00020101",
		"time 1 2, "},
	{"four SACK blocks",
		BEFORE "e010" AFTER "01010522"
		       "0000000100000002"
		       "0000000300000004"
		       "0000000500000006"
		       "0000000700000008",
		"1-2, 3-4, 5-6, 7-8, "},
	{"a timestamp and three blocks",
		BEFORE "f010" AFTER "0101080a"
		       "0000000900000009"
		       "0101051a"
		       "0000000100000002"
		       "0000000300000004"
		       "0000000500000006",
		"time 9 9, 1-2, 3-4, 5-6, "},
	{"SACK of a length that is none",
		BEFORE "7010" AFTER "01010506"
		       "00000001",
		""},
	{"MSS, scale and SACK permitted count on a SYN only",
		BEFORE "8010" AFTER "020405b4"
		       "01030307"
		       "01010402",
		""},
	{"unknown ones are skipped (TFO, MPTCP, AO)",
		BEFORE "8002" AFTER "22040102"
		       "1e040000"
		       "020405b4",
		"mss 1460, "},
	{"what follows the end is nothing",
		BEFORE "7002" AFTER "00000000"
		       "020405b4",
		""},
	{"a length of 0 ends the reading",
		BEFORE "7002" AFTER "02000000"
		       "020405b4",
		""},
	{"a length of 1 too",
		BEFORE "7002" AFTER "08010000"
		       "020405b4",
		""},
	{"one that reaches beyond the header ends it, what came before stands",
		BEFORE "7002" AFTER "020405b4"
		       "0101080a"
		       "6162",
		"mss 1460, "},
	{"a kind without its length, last", BEFORE "6002" AFTER "01010108", ""},
	{"an MSS of a wrong length is skipped",
		BEFORE "7002" AFTER "02060102"
		       "03040101",
		""},
	{"a timestamp of a wrong length is skipped",
		BEFORE "7010" AFTER "08080000"
		       "00000000",
		""},
};

static void test_options(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const char *says = read_options(options[i].hex);
		if (strcmp(says, options[i].says) != 0)
			fail_msg("%s: %s", options[i].what, says);
	}
}

static void test_numbers_wrap(void **state)
{
	(void)state;
	assert_true(tcp_before(0xffffffff, 0));
	assert_true(tcp_after(0, 0xffffffff));
	assert_false(tcp_before(5, 5));
	assert_true(tcp_before(0, 0x7fffffff));
	assert_true(tcp_after(0, 0x80000001));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_short_ones_are_none),
		cmocka_unit_test(test_header_and_payload),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_numbers_wrap),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
