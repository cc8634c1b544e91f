// The operator's message, escaped for HTML and for JSON.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "controlplane/pages/message.h"

static void escaping(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int ret;
		const char *html, *json;
	} rows[] = {
		{"", 0, "", ""},
		{"Doors open at 7", 0, "Doors open at 7", "\"Doors open at 7\""},
		{"<b>&\"'", 0, "&lt;b&gt;&amp;&quot;&#39;", "\"<b>&\\\"'\""},
		{"a\\b", 0, "a\\b", "\"a\\\\b\""},
		{"開場 🎫 é", 0, "開場 🎫 é", "\"開場 🎫 é\""},
		{"two\nlines", -EILSEQ, "", ""},
		{"a\tb", -EILSEQ, "", ""},
		{"\x1b[31m", -EILSEQ, "", ""},
		{"\x7f", -EILSEQ, "", ""},
		{"\xc2\x80", -EILSEQ, "", ""}, // C1
		{"\xc2\xa0", 0, "\xc2\xa0", "\"\xc2\xa0\""},
		{"\x80", -EILSEQ, "", ""}, // nothing to continue
		{"\xc3", -EILSEQ, "", ""}, // cut
		{"\xe3\x81", -EILSEQ, "", ""},
		{"\xf0\x9f\x8e", -EILSEQ, "", ""},
		{"\xc0\xaf", -EILSEQ, "", ""}, // overlong
		{"\xc1\xbf", -EILSEQ, "", ""},
		{"\xe0\x9f\xbf", -EILSEQ, "", ""},
		{"\xf0\x8f\xbf\xbf", -EILSEQ, "", ""},
		{"\xed\xa0\x80", -EILSEQ, "", ""}, // a surrogate
		{"\xed\x9f\xbf", 0, "\xed\x9f\xbf", "\"\xed\x9f\xbf\""},
		{"\xf4\x90\x80\x80", -EILSEQ, "", ""}, // beyond U+10FFFF
		{"\xf4\x8f\xbf\xbf", 0, "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\""},
		{"\xf5\x80\x80\x80", -EILSEQ, "", ""},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct message message;
		size_t len = strlen(rows[i].text);
		char *exact = malloc(len ? len : 1); // so that a sanitizer sees reads beyond it
		memcpy(exact, rows[i].text, len);
		assert_int_equal(message_escape((struct span){exact, len}, &message), rows[i].ret);
		free(exact);
		assert_int_equal(message.html_len, strlen(rows[i].html));
		assert_memory_equal(message.html, rows[i].html, message.html_len);
		assert_int_equal(message.json_len, strlen(rows[i].json));
		assert_memory_equal(message.json, rows[i].json, message.json_len);
		if (message.json_len == 0)
			continue;
		json_t *json = json_loadb(message.json, message.json_len, JSON_DECODE_ANY, NULL);
		assert_non_null(json);
		assert_string_equal(json_string_value(json), rows[i].text);
		json_decref(json);
	}
}

static void as_long_as_it_may_be_and_one_more(void **state)
{
	(void)state;
	static char text[STATUS_MESSAGE_BYTES_MAX + 1];
	struct message message;
	memset(text, 'a', sizeof(text));
	// JSON has its quotes besides; HTML makes five of a `>` and another.
	assert_int_equal(
		message_escape((struct span){text, STATUS_MESSAGE_BYTES_MAX - 2}, &message), 0);
	assert_int_equal(message.json_len, STATUS_MESSAGE_BYTES_MAX);
	assert_int_equal(
		message_escape((struct span){text, STATUS_MESSAGE_BYTES_MAX - 1}, &message),
		-EMSGSIZE);
	assert_int_equal(message.json_len, 0);
	memset(text, '&', sizeof(text));
	size_t most = (STATUS_MESSAGE_BYTES_MAX - 1) / 5;
	assert_int_equal(message_escape((struct span){text, most}, &message), 0);
	assert_int_equal(message_escape((struct span){text, most + 1}, &message), -EMSGSIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(escaping),
		cmocka_unit_test(as_long_as_it_may_be_and_one_more),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
