// The chunked coding: bodies as tables, cut at every place; and back through the encoder.

#include "dataplane/http/chunk.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/http/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

// Decode `in` in pieces of `step` bytes.
//   out   the data, at least in.len bytes
//   used  how many bytes of `in` were consumed
static enum chunk_result decode(
	struct span in, size_t step, char *out, size_t *out_bytes, size_t *used)
{
	struct chunk_decoder decoder = {0};
	enum chunk_result result = CHUNK_MORE;
	*out_bytes = *used = 0;
	while (*used < in.len && (result == CHUNK_MORE || result == CHUNK_DATA)) {
		size_t len = in.len - *used < step ? in.len - *used : step, consumed;
		struct span piece = guard_copy((struct span){in.at + *used, len}), data;
		result = chunk_decode(&decoder, piece, &consumed, &data);
		assert_true(consumed <= len);
		assert_true((result == CHUNK_DATA) == (data.len > 0));
		assert_true(result != CHUNK_MORE || consumed == len);
		memcpy(out + *out_bytes, data.at ? data.at : "", data.len);
		*out_bytes += data.len;
		*used += consumed;
	}
	if (result >= CHUNK_DONE) { // and so it stays
		struct span data;
		size_t consumed;
		assert_int_equal(chunk_decode(&decoder, SPAN("0\r\n"), &consumed, &data), result);
		assert_int_equal(consumed, 0);
	}
	return result == CHUNK_DATA ? CHUNK_MORE : result;
}

static const struct {
	const char *name;
	const char *input;
	enum chunk_result result;
	const char *data;
} cases[] = {
	{"empty", "0\r\n\r\n", CHUNK_DONE, ""},
	{"one chunk", "3\r\nabc\r\n0\r\n\r\n", CHUNK_DONE, "abc"},
	{"two chunks", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", CHUNK_DONE, "abcde"},
	{"capital and small digits", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", CHUNK_DONE,
		"01234567890123456789"},
	{"leading zeros", "003\r\nabc\r\n000\r\n\r\n", CHUNK_DONE, "abc"},
	{"16 digits", "0000000000000001\r\na\r\n0\r\n\r\n", CHUNK_DONE, "a"},
	{"17 digits", "00000000000000001\r\na\r\n0\r\n\r\n", CHUNK_BAD, ""},
	{"the largest size", "ffffffffffffffff\r\nabc", CHUNK_MORE, "abc"},
	{"overflow", "10000000000000000\r\nabc", CHUNK_BAD, ""},
	{"data that looks like framing", "5\r\n0\r\n\r\n\r\n0\r\n\r\n", CHUNK_DONE, "0\r\n\r\n"},
	{"no size", "\r\nabc", CHUNK_BAD, ""},
	{"no last chunk", "3\r\nabc\r\n", CHUNK_MORE, "abc"},
	{"0x", "0x3\r\nabc\r\n0\r\n\r\n", CHUNK_BAD, ""},
	{"underscore", "1_0\r\nabc", CHUNK_BAD, ""},
	{"plus", "+3\r\nabc\r\n", CHUNK_BAD, ""},
	{"minus", "-3\r\nabc\r\n", CHUNK_BAD, ""},
	{"no hex digit", "g\r\n", CHUNK_BAD, ""},
	{"space before the size", " 3\r\nabc\r\n", CHUNK_BAD, ""},
	{"space after the size", "3 \r\nabc\r\n", CHUNK_BAD, ""},
	{"tab after the size", "3\t\r\nabc\r\n", CHUNK_BAD, ""},
	{"lone LF after the size", "3\nabc\r\n0\r\n\r\n", CHUNK_BAD, ""},
	{"lone CR after the size", "3\rabc\r\n0\r\n\r\n", CHUNK_BAD, ""},
	{"CR CR LF after the size", "3\r\r\nabc\r\n", CHUNK_BAD, ""},
	{"lone LF after the data", "3\r\nabc\n0\r\n\r\n", CHUNK_BAD, "abc"},
	{"lone CR after the data", "3\r\nabc\r0\r\n\r\n", CHUNK_BAD, "abc"},
	{"data longer than its size", "3\r\nabcd\r\n0\r\n\r\n", CHUNK_BAD, "abc"},
	{"data shorter than its size", "4\r\nabc\r\n0\r\n\r\n", CHUNK_BAD, "abc\r"},
	{"extension", "3;a\r\nabc\r\n0;b\r\n\r\n", CHUNK_DONE, "abc"},
	{"extension with a value", "3;a=b\r\nabc\r\n0\r\n\r\n", CHUNK_DONE, "abc"},
	{"quoted value", "3;a=\"b;=\\\"\xe6 \t\\\\:\"\r\nabc\r\n0\r\n\r\n", CHUNK_DONE, "abc"},
	{"extensions with white space", "3 ; a\t= b ;c ;d=\"\" ;e\r\nabc\r\n0\r\n\r\n", CHUNK_DONE,
		"abc"},
	{"white space after the extensions", "3;a \r\nabc", CHUNK_BAD, ""},
	{"white space after a value", "3;a=b \r\nabc", CHUNK_BAD, ""},
	{"white space after quotes", "3;a=\"b\" \r\nabc", CHUNK_BAD, ""},
	{"extension without a name", "3;\r\nabc", CHUNK_BAD, ""},
	{"extension with only a value", "3;=b\r\nabc", CHUNK_BAD, ""},
	{"extension with an empty value", "3;a=\r\nabc", CHUNK_BAD, ""},
	{"two names", "3;a b\r\nabc", CHUNK_BAD, ""},
	{"something after quotes", "3;a=\"b\"c\r\nabc", CHUNK_BAD, ""},
	{"quotes across lines", "3;a=\"b\r\nabc", CHUNK_BAD, ""},
	{"escaped CR", "3;a=\"\\\r\nabc", CHUNK_BAD, ""},
	{"lone LF in an extension", "3;a\nabc\r\n0\r\n\r\n", CHUNK_BAD, ""},
	{"control in quotes", "3;a=\"\x01\"\r\nabc", CHUNK_BAD, ""},
	{"trailer fields", "0\r\nA: b\r\nC-d:\r\nE:\xe6\t \r\n\r\n", CHUNK_DONE, ""},
	{"trailer without a colon", "0\r\nA\r\n\r\n", CHUNK_BAD, ""},
	{"trailer with space before the colon", "0\r\nA : b\r\n\r\n", CHUNK_BAD, ""},
	{"trailer without a name", "0\r\n: b\r\n\r\n", CHUNK_BAD, ""},
	{"folded trailer", "0\r\nA: b\r\n c\r\n\r\n", CHUNK_BAD, ""},
	{"lone LF in the trailer", "0\r\nA: b\n\r\n", CHUNK_BAD, ""},
	{"lone LF at the end", "0\r\n\n", CHUNK_BAD, ""},
	{"lone CR at the end", "0\r\n\rX", CHUNK_BAD, ""},
	{"a request instead of the last line", "0\r\nGET / HTTP/1.1\r\n\r\n", CHUNK_BAD, ""},
	{"control in the trailer", "0\r\nA: \x01\r\n\r\n", CHUNK_BAD, ""},
	{"last line missing", "0\r\n", CHUNK_MORE, ""},
};

static void bodies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct span in = {cases[i].input, strlen(cases[i].input)};
		for (size_t step = 1; step <= in.len; step++) {
			char out[200];
			size_t out_bytes, used;
			enum chunk_result result = decode(in, step, out, &out_bytes, &used);
			if (result != cases[i].result || out_bytes != strlen(cases[i].data) ||
				memcmp(out, cases[i].data, out_bytes) != 0)
				fail_msg("%s, by %zu: %d, %.*s", cases[i].name, step, result,
					(int)out_bytes, out);
			if (result == CHUNK_DONE)
				assert_int_equal(used, in.len);
		}
	}
}

static void nul_is_refused_in_every_framing_state(void **state)
{
	(void)state;
	static const char *const before[] = {"", "3", "3 ", "3;", "3;a", "3;a ", "3;a=", "3;a=b",
		"3;a=\"", "3;a=\"\\", "3;a=\"\"", "3\r", "1\r\na", "1\r\na\r", "0\r\n", "0\r\nA",
		"0\r\nA:", "0\r\nA:\r", "0\r\n\r"};
	for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); i++) {
		char in[32], out[32];
		size_t len = strlen(before[i]), out_bytes, used;
		memcpy(in, before[i], len + 1);
		struct span span = {in, len + 1};
		assert_int_equal(decode(span, len + 1, out, &out_bytes, &used), CHUNK_BAD);
	}
}

static void what_follows_is_left(void **state)
{
	(void)state;
	struct span in = SPAN("1\r\na\r\n0\r\n\r\nGET /");
	for (size_t step = 1; step <= in.len; step++) {
		char out[32];
		size_t out_bytes, used;
		assert_int_equal(decode(in, step, out, &out_bytes, &used), CHUNK_DONE);
		assert_int_equal(used, in.len - strlen("GET /"));
	}
}

static enum chunk_result decode_text(const struct text *in, size_t *out_bytes)
{
	static char out[TEXT_BYTES_MAX];
	size_t used;
	return decode(text_span(in), in->len, out, out_bytes, &used);
}

static void size_lines_and_trailers_are_bounded(void **state)
{
	(void)state;
	static struct text in;
	size_t out_bytes;
	const int line_zeros = CHUNK_LINE_BYTES_MAX - strlen("1;");
	const int trailer_zeros = CHUNK_TRAILER_BYTES_MAX - strlen("A:b\r\nC:\r\n");
	for (int beyond = 0; beyond < 2; beyond++) {
		enum chunk_result expected = beyond ? CHUNK_TOO_LARGE : CHUNK_MORE;
		text_clear(&in);
		text_add(&in, "1;%0*d\r\n", line_zeros + beyond, 0);
		assert_int_equal(decode_text(&in, &out_bytes), expected);

		text_clear(&in);
		text_add(&in, "0\r\nA:b\r\nC:%0*d\r\n", trailer_zeros + beyond, 0);
		assert_int_equal(decode_text(&in, &out_bytes), expected);
		text_add(&in, "\r\n");
		assert_int_equal(
			decode_text(&in, &out_bytes), beyond ? CHUNK_TOO_LARGE : CHUNK_DONE);
	}
}

static void each_size_line_has_the_whole_bound(void **state)
{
	(void)state;
	static struct text in;
	size_t out_bytes;
	text_clear(&in);
	for (unsigned chunk = 0; chunk < 3; chunk++)
		text_add(&in, "1;%0*d\r\nx\r\n", (int)(CHUNK_LINE_BYTES_MAX - strlen("1;")), 0);
	text_add(&in, "0\r\n\r\n");
	assert_int_equal(decode_text(&in, &out_bytes), CHUNK_DONE);
	assert_int_equal(out_bytes, 3);
}

static void sizes_are_written_as_printf_writes_them(void **state)
{
	(void)state;
	for (unsigned bit = 0; bit < 64; bit++) {
		for (int off = -1; off <= 1; off++) {
			uint64_t size = (1ull << bit) + off;
			char out[CHUNK_HEAD_BYTES_MAX];
			static struct text expected;
			if (size == 0)
				continue;
			text_clear(&expected);
			text_add(&expected, "%llx\r\n", (unsigned long long)size);
			assert_int_equal(chunk_head_write(out, size), expected.len);
			assert_memory_equal(out, expected.at, expected.len);
		}
	}
}

static void random_bodies_come_back(void **state)
{
	(void)state;
	dice_begin();
	static char body[4000], coded[6 * sizeof(body) + 5],
		out[sizeof(coded)]; // at worst "1\r\nx\r\n"
	for (unsigned round = 0; round < 300; round++) {
		size_t body_bytes = dice(sizeof(body)), at = 0, len = 0, out_bytes, used;
		for (size_t i = 0; i < body_bytes; i++)
			body[i] = (char)dice(256);
		while (at < body_bytes) {
			size_t size = 1 + dice(dice(8) ? 1000 : 4);
			if (size > body_bytes - at)
				size = body_bytes - at;
			len += chunk_head_write(coded + len, size);
			memcpy(coded + len, body + at, size);
			at += size;
			len += size;
			memcpy(coded + len, CHUNK_TAIL.at, CHUNK_TAIL.len);
			len += CHUNK_TAIL.len;
		}
		memcpy(coded + len, CHUNK_LAST.at, CHUNK_LAST.len);
		struct span in = {coded, len + CHUNK_LAST.len};
		assert_int_equal(decode(in, 1 + dice(700), out, &out_bytes, &used), CHUNK_DONE);
		assert_int_equal(used, in.len);
		assert_int_equal(out_bytes, body_bytes);
		assert_memory_equal(out, body, body_bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies),
		cmocka_unit_test(nul_is_refused_in_every_framing_state),
		cmocka_unit_test(what_follows_is_left),
		cmocka_unit_test(size_lines_and_trailers_are_bounded),
		cmocka_unit_test(each_size_line_has_the_whole_bound),
		cmocka_unit_test(sizes_are_written_as_printf_writes_them),
		cmocka_unit_test(random_bodies_come_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
