// Lists of codes: what a line may be, what is said of it, and a list of random codes against a
// naive twin. Every text ends at an unmapped page.

#include "controlplane/codes/codes_list.h"
#include "tests/unit/gate/guard.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char *guard;
static char heard[8192];

static void hear(void *context, uint32_t line, bool is_warning, const char *text)
{
	(void)context;
	const size_t len = strlen(heard);
	snprintf(heard + len, sizeof(heard) - len, "%u%s:%s\n", line, is_warning ? " warning" : "",
		text);
}

static const struct codes_list_ear ear = {hear, NULL};

static struct codes_list *parse(const char *text)
{
	const size_t len = strlen(text);
	struct codes_list *list = NULL;
	heard[0] = '\0';
	const int ret = codes_list_parse(
		(struct span){guard_put(guard, text, len), len}, &ear, NULL, &list);
	assert_int_equal(ret, list ? 0 : -EINVAL);
	return list;
}

static uint32_t uses(const struct codes_list *list, const char *typed)
{
	struct code_digest digest;
	assert_true(code_digest((struct span){typed, strlen(typed)}, &digest, NULL));
	return codes_list_uses(list, &digest);
}

static void test_a_list(void **state)
{
	(void)state;
	struct codes_list *list =
		parse("\xef\xbb\xbf# letters\n\n7GQX-4TRM-AA\r\n"
		      "  k2m9 xw7p bb , 25 \n#\n"
		      "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61"
		      "f20015ad,3\nlast1-last2");
	assert_string_equal(heard, "");
	assert_int_equal(codes_list_count(list), 4);
	assert_int_equal(codes_list_uses_total(list), 30);
	assert_int_equal(uses(list, "7gqx4trmaa"), 1);
	assert_int_equal(uses(list, "K2M9-XW7P-BB"), 25);
	assert_int_equal(uses(list, "abc"), 3);
	assert_int_equal(uses(list, "LAST1LAST2"), 1);
	assert_int_equal(uses(list, "other"), 0);
	codes_list_give(list);
	list = parse("");
	assert_int_equal(codes_list_count(list), 0);
	assert_int_equal(uses(list, "other"), 0);
	codes_list_give(codes_list_hold(list));
	codes_list_give(list);
	codes_list_give(NULL);
}

static void test_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *text, *said;
	} cases[] = {
		{"AAAAAAA1\naaaa-aaa1\n", "2:the code of line 1 again; allowed: once"},
		{"AAAA_AAA1", "1:no code; allowed: 1 to 48 letters (A to Z) and digits"},
		{"# a\n<script>\n", "2:no code"},
		{"AAAAAAA1,", "1:no number of uses behind the comma; allowed: 1 to 1000000"},
		{"AAAAAAA1, 0", "1:no number"},
		{"AAAAAAA1, 1000001", "1:no number"},
		{"AAAAAAA1, 99999999999999999999", "1:no number"},
		{"AAAAAAA1, 3, 4", "1:no number"},
		{"AAAAAAA1, -3", "1:no number"},
		{", 3", "1:no code"},
		{"sha256:", "1:no hash; allowed: sha256: and 64 hex digits"},
		{"SHA256:ba78", "1:no code"},
		{"AAA1", "1 warning:with 1 codes as short as here, one guess in 2^20 is right"},
		{"AA1", "1:a code that is guessed soon (15 bits); allowed: 20 bits"},
		{"123456", "1:a code that is guessed soon (19 bits)"},
		{"1111111\n222222\n", "2:a code that is guessed soon (19 bits)"},
		{"1234567", "1 warning:with 1 codes as short as here, one guess in 2^23 is right"},
		{"AAAAA1A", ""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct codes_list *list = parse(cases[i].text);
		print_message("%s: %s", cases[i].text, heard);
		const bool is_good = !cases[i].said[0] || strstr(cases[i].said, "warning");
		assert_int_equal(list != NULL, is_good);
		assert_memory_equal(heard, cases[i].said, strlen(cases[i].said));
		assert_null(strstr(heard, "AAAA")); // no code is ever said
		codes_list_give(list);
	}
}

// Only so many mistakes are told one by one.
static void test_many_mistakes(void **state)
{
	(void)state;
	char text[2 * CODES_LIST_ERRORS_MAX + 3] = "";
	for (unsigned i = 0; i < CODES_LIST_ERRORS_MAX; i++)
		memcpy(text + 2 * i, "_\n", 3);
	assert_null(parse(text));
	assert_null(strstr(heard, "more"));
	memcpy(text + 2 * CODES_LIST_ERRORS_MAX, "_\n", 3);
	assert_null(parse(text));
	assert_non_null(strstr(heard, "0:and 1 errors more\n"));
}

static void test_a_long_line(void **state)
{
	(void)state;
	char text[CODES_LIST_LINE_MAX + 2];
	memset(text, ' ', sizeof(text));
	memcpy(text, "AAAAAAA1,", 9);
	text[CODES_LIST_LINE_MAX - 1] = '3';
	text[CODES_LIST_LINE_MAX] = '\0';
	struct codes_list *list = parse(text);
	assert_int_equal(uses(list, "aaaaaaa1"), 3);
	codes_list_give(list);
	text[CODES_LIST_LINE_MAX] = '3';
	text[CODES_LIST_LINE_MAX + 1] = '\0';
	assert_null(parse(text));
	assert_string_equal(heard, "1:a line of 129 bytes; allowed: 128\n");
}

static char *large(uint32_t codes, size_t *len)
{
	char *text = malloc(codes * 12ull + 1);
	size_t at = 0;
	for (uint32_t i = 0; i < codes; i++)
		at += (size_t)snprintf(text + at, 12, "abcd%06x\n", i);
	*len = at;
	return text;
}

static void test_as_many_as_may_be_and_one_more(void **state)
{
	(void)state;
	size_t len;
	char *text = large(CODES_LIST_MAX + 1, &len);
	struct codes_list *list;
	heard[0] = '\0';
	assert_int_equal(codes_list_parse((struct span){text, len}, &ear, NULL, &list), -EINVAL);
	assert_string_equal(heard, "1048577:too many codes; allowed: 1048576\n");
	heard[0] = '\0';
	assert_int_equal(codes_list_parse((struct span){text, len - 11}, &ear, NULL, &list), 0);
	assert_int_equal(codes_list_count(list), CODES_LIST_MAX);
	assert_int_equal(uses(list, "abcd0fffff"), 1);
	assert_int_equal(uses(list, "abcd100000"), 0);
	codes_list_give(list);
	free(text);
}

// A list of random codes, of which the twin is an array.
static void test_twin(void **state)
{
	(void)state;
	enum { CODES = 700 };
	static char codes[CODES][16];
	unsigned seed = 20261130;
	print_message("seed %u\n", seed);
	srand(seed);
	char text[CODES * 24] = "";
	size_t at = 0;
	for (int i = 0; i < CODES; i++) {
		snprintf(codes[i], sizeof(codes[i]), "%08x%04x", (unsigned)rand(), (unsigned)i);
		if (i % 2 == 0)
			at += (size_t)snprintf(text + at, 24, "%s, %d\n", codes[i], 1 + i % 9);
	}
	struct codes_list *list = parse(text);
	assert_string_equal(heard, "");
	for (int i = 0; i < CODES; i++)
		assert_int_equal(uses(list, codes[i]), i % 2 == 0 ? 1 + i % 9 : 0);
	codes_list_give(list);
}

static void test_files(void **state)
{
	(void)state;
	char path[] = "/tmp/test-codes-XXXXXX";
	const int fd = mkstemp(path);
	struct codes_list *first, *second, *third;
	assert_int_equal(write(fd, "abcdefgh1\n", 10), 10);
	heard[0] = '\0';
	assert_int_equal(codes_list_read(path, NULL, &ear, NULL, &first), 0);
	assert_int_equal(codes_list_read(path, first, &ear, NULL, &second), 0);
	assert_ptr_equal(first, second); // nothing has changed
	assert_int_equal(write(fd, "abcdefgh2\n", 10), 10);
	assert_int_equal(codes_list_read(path, first, &ear, NULL, &third), 0);
	assert_int_equal(codes_list_count(third), 2);
	assert_string_equal(heard, "");
	codes_list_give(first);
	codes_list_give(second);
	codes_list_give(third);
	assert_int_equal(ftruncate(fd, (off_t)CODES_LIST_FILE_MAX + 1), 0);
	assert_int_equal(codes_list_read(path, NULL, &ear, NULL, &first), -EFBIG);
	assert_string_equal(heard, "0:File too large\n");
	heard[0] = '\0';
	assert_int_equal(codes_list_read("/tmp", NULL, &ear, NULL, &first), -EISDIR);
	assert_int_equal(codes_list_read("/tmp/nowhere/x", NULL, &ear, NULL, &first), -ENOENT);
	assert_string_equal(heard, "0:not a file\n0:No such file or directory\n");
	close(fd);
	unlink(path);
}

// The longest stretch without a pause, in CPU time: others may have the core meanwhile.
static uint64_t since_us, longest_us, pauses;

static uint64_t cpu_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void note(void *context)
{
	(void)context;
	const uint64_t now_us = cpu_us();
	longest_us = now_us - since_us > longest_us ? now_us - since_us : longest_us;
	since_us = cpu_us();
	pauses++;
}

#define SLICE_US_MAX 20000u // ten times what it takes; as a whole it would be 300 ms

static void test_a_long_list_comes_in_slices(void **state)
{
	(void)state;
	static const struct codes_list_pause pause = {note, NULL};
	char path[] = "/tmp/sluice-codes-XXXXXX";
	struct codes_list *list, *again;
	const int fd = mkstemp(path);
	assert_true(fd >= 0);
	FILE *out = fdopen(fd, "w");
	for (uint32_t i = 0; i < CODES_LIST_MAX; i++)
		fprintf(out, "%08X-%04X\n", i * 2654435761u, i & 0xffff);
	fclose(out);
	since_us = cpu_us();
	assert_int_equal(codes_list_read(path, NULL, &ear, &pause, &list), 0);
	assert_int_equal(codes_list_read(path, list, &ear, &pause, &again), 0);
	assert_ptr_equal(list, again);
	codes_list_give_slowly(again, &pause);
	assert_int_equal(codes_list_count(list), CODES_LIST_MAX);
	codes_list_give_slowly(list, &pause);
	note(NULL);
	print_message("%lu pauses, %lu us apart at most\n", pauses, longest_us);
	assert_true(pauses > 1000);
	assert_true(longest_us < SLICE_US_MAX);
	unlink(path);
}

int main(void)
{
	guard = guard_make();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_list),
		cmocka_unit_test(test_what_is_wrong),
		cmocka_unit_test(test_many_mistakes),
		cmocka_unit_test(test_a_long_line),
		cmocka_unit_test(test_as_many_as_may_be_and_one_more),
		cmocka_unit_test(test_twin),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_a_long_list_comes_in_slices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
