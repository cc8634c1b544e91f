// The three scan engines give one answer, that of a naive reading of the RFC; fields are recognised
// in any case.

#include "dataplane/http/field.h"
#include "dataplane/http/head_scan.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define BYTES_MAX 200

static bool is_text(unsigned char c)
{
	return c == '\t' || (c >= 0x20 && c != 0x7f);
}

static bool is_token(unsigned char c)
{
	return c != 0 && (isalnum(c) || strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_target(unsigned char c)
{
	return c > 0x20 && c < 0x7f && c != '#';
}

static size_t naive(struct span in, size_t at, bool (*is_in)(unsigned char))
{
	while (at < in.len && is_in(in.at[at]))
		at++;
	return at;
}

static unsigned engines(const struct head_scan *found[3])
{
	unsigned count = 0;
	found[count++] = &head_scan_scalar;
	if (__builtin_cpu_supports("sse4.2"))
		found[count++] = &head_scan_sse42;
	if (__builtin_cpu_supports("avx2"))
		found[count++] = &head_scan_avx2;
	return count;
}

static void check_marks(const struct head_scan *scan, struct span in, size_t at)
{
	uint64_t words[HEAD_SCAN_WORDS];
	unsigned count = scan->mark(in, at, words);
	assert_int_equal(count, (in.len - at + 63) / 64);
	for (size_t i = 0; i < count * HEAD_SCAN_WORD_OCTETS; i++) {
		bool stops = at + i >= in.len || !is_text((unsigned char)in.at[at + i]);
		assert_int_equal(words[i / 64] >> i % 64 & 1, stops);
	}
}

static void check_tokens(const struct head_scan *scan, struct span in, size_t at)
{
	uint16_t from[3] = {(uint16_t)at, 0, (uint16_t)in.len};
	scan->tokens(in, from, 3);
	assert_int_equal(from[0], naive(in, at, is_token));
	assert_int_equal(from[1], naive(in, 0, is_token));
	assert_int_equal(from[2], in.len);
}

static void check(struct span in, size_t at)
{
	const struct head_scan *found[3];
	for (unsigned i = 0, count = engines(found); i < count; i++) {
		assert_int_equal(found[i]->text(in, at), naive(in, at, is_text));
		assert_int_equal(found[i]->token(in, at), naive(in, at, is_token));
		assert_int_equal(found[i]->target(in, at), naive(in, at, is_target));
		check_marks(found[i], in, at);
		check_tokens(found[i], in, at);
	}
}

static void every_octet_at_every_place(void **state)
{
	(void)state;
	char bytes[BYTES_MAX];
	for (unsigned octet = 0; octet < 256; octet++) {
		for (size_t len = 1; len < 70; len++) {
			memset(bytes, 'a', len);
			bytes[len * 7 % len] = bytes[octet % len] = (char)octet;
			check(guard_copy((struct span){bytes, len}), 0);
		}
	}
}

static void random_octets_from_random_places(void **state)
{
	(void)state;
	dice_begin();
	for (unsigned round = 0; round < 20000; round++) {
		char bytes[BYTES_MAX];
		size_t len = dice(BYTES_MAX + 1);
		for (size_t i = 0; i < len; i++) { // mostly runs, so that they get long
			uint32_t octet = dice(60) ? 'a' + dice(26) : dice(256);
			bytes[i] = (char)octet;
		}
		check(guard_copy((struct span){bytes, len}), dice(len + 1));
	}
}

static void best_engine_is_the_widest(void **state)
{
	(void)state;
	const struct head_scan *found[3];
	unsigned count = engines(found);
	assert_ptr_equal(head_scan_best(), found[count - 1]);
}

static const char *const names[HTTP_FIELD_IDS] = {
#define X(id, name) [HTTP_FIELD_##id] = name,
	HTTP_FIELD_NAMES(X)
#undef X
};

static void every_field_name_in_any_case(void **state)
{
	(void)state;
	for (unsigned id = 1; id < HTTP_FIELD_IDS; id++) {
		char upper[64];
		size_t len = strlen(names[id]);
		for (size_t i = 0; i < len; i++)
			upper[i] = (char)(names[id][i] == '-' ? '-' : names[id][i] - 'a' + 'A');
		assert_int_equal(field_id(guard_string(names[id])), id);
		assert_int_equal(field_id(guard_copy((struct span){upper, len})), id);
	}
}

static void one_octet_off_is_another_name(void **state)
{
	(void)state;
	for (unsigned id = 1; id < HTTP_FIELD_IDS; id++) {
		for (size_t i = 0; names[id][i]; i++) {
			char off[64] = "";
			strncpy(off, names[id], sizeof(off) - 1);
			off[i] = '~';
			assert_int_equal(field_id(guard_string(off)), HTTP_FIELD_OTHER);
		}
	}
}

static void other_field_names(void **state)
{
	(void)state;
	static const char *const others[] = {"a", "hos", "hosts", "cookie2", "content_length",
		"contentlength-", "x-0123456789-0123456789-0123456789-0123456789"};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(field_id(guard_string(others[i])), HTTP_FIELD_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_octet_at_every_place),
		cmocka_unit_test(random_octets_from_random_places),
		cmocka_unit_test(best_engine_is_the_widest),
		cmocka_unit_test(every_field_name_in_any_case),
		cmocka_unit_test(one_octet_off_is_another_name),
		cmocka_unit_test(other_field_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
