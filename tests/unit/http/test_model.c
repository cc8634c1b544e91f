// Heads by models: what is of a model, what is not, and that it is read as the parser reads it.

#include "dataplane/http/model.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define TEXT_BYTES_MAX 2048

static const struct http_limits limits = {.line_bytes = 200, .head_bytes = 1200, .fields = 20};

#define CHROME(cookies) \
	"GET /.sluice/derby/status HTTP/1.1\r\nHost: shop.example\r\nConnection: keep-alive\r\n" \
	"User-Agent: C/1\r\nReferer: http://shop.example/derby/\r\nCookie: " cookies "\r\n\r\n"
#define FIREFOX(cookies) \
	"GET /.sluice/derby/status HTTP/1.1\r\nUser-Agent: F/1\r\nCookie: " cookies \
	"\r\nHost: shop.example\r\nConnection: a, close\r\nSec-Fetch-Mode: cors\r\n\r\n"
#define PLAIN(fields) "GET /a HTTP/1.1\r\nHost: a\r\n" fields "\r\n"

static bool parse(struct span in, struct http_head *head)
{
	uint32_t scanned = 0;
	memset(head, 0xee, sizeof(*head)); // nothing may be left as it was
	return http_request_read(in, &limits, &scanned, head) == HTTP_OK &&
	       head->head_bytes == in.len;
}

static bool make(const char *text, struct model *model)
{
	static struct http_head head;
	struct span in = guard_string(text);
	if (!parse(in, &head))
		fail_msg("no head: %s", text);
	return model_make(&head, model_cookie(in, 0), model);
}

// Returns whether `text` is of the model; then it has been read as the parser reads it.
static bool is_of(const struct model *model, struct span text)
{
	static struct http_head read, parsed;
	struct span in = guard_copy(text);
	memset(&read, 0xee, sizeof(read));
	if (!model_read(model, in, model_cookie(in, 0), &limits, &read))
		return false;
	assert_true(parse(in, &parsed));
	assert_memory_equal(&read, &parsed,
		offsetof(struct http_head, fields) + parsed.field_count * sizeof(parsed.fields[0]));
	return true;
}

static const struct {
	const char *name, *model, *text;
	bool is_of;
} pairs[] = {
	{"the same", CHROME("a=b"), CHROME("a=b"), true},
	{"another value", CHROME("a=b"), CHROME("c=d"), true},
	{"a longer one", CHROME("a=b"), CHROME("a=b; c=d; e=ffffffffffffffffffffffffff"), true},
	{"a shorter one", CHROME("a=b"), CHROME("a"), true},
	{"white space within", CHROME("a=b"), CHROME("a =\tb"), true},
	{"octets from 0x80 on", CHROME("a=b"), CHROME("a=\x80\xff"), true},
	{"what looks like a line", CHROME("a=b"), CHROME("a=Cookie: b"), true},
	{"fields behind it", FIREFOX("a=b"), FIREFOX("c=d; e=f"), true},
	{"no cookies", PLAIN(""), PLAIN(""), true},
	{"lower case", PLAIN("cookie: a=b\r\n"), PLAIN("cookie: c=d\r\n"), true},
	{"a query", "GET /a?b HTTP/1.0\r\n\r\n", "GET /a?b HTTP/1.0\r\n\r\n", true},

	{"no value", CHROME("a=b"), CHROME(""), false},
	{"white space first", CHROME("a=b"), CHROME(" a=b"), false},
	{"white space last", CHROME("a=b"), CHROME("a=b\t"), false},
	{"a LF", CHROME("a=b"), CHROME("a=\nb"), false},
	{"a CR", CHROME("a=b"), CHROME("a=\rb"), false},
	{"NUL's neighbour", CHROME("a=b"), CHROME("a=\1b"), false},
	{"DEL", CHROME("a=b"), CHROME("a=\177b"), false},
	{"one more field", CHROME("a=b"), CHROME("a=b\r\nConnection: close"), false},
	{"one more Cookie", CHROME("a=b"), CHROME("a=b\r\nCookie: c=d"), false},
	{"a head in it", CHROME("a=b"), CHROME("a=b\r\n\r\nGET / HTTP/1.1\r\nCookie: c"), false},
	{"another order", CHROME("a=b"), FIREFOX("a=b"), false},
	{"cookies where there were none", PLAIN(""), PLAIN("Cookie: a=b\r\n"), false},
	{"none where there were some", PLAIN("Cookie: a=b\r\n"), PLAIN(""), false},
	{"another case", PLAIN("Cookie: a=b\r\n"), PLAIN("cookie: a=b\r\n"), false},
	{"more behind it", CHROME("a=b"), CHROME("a=b") "x", false},
	{"not all of it", PLAIN("Cookie: a=b\r\n"), "GET /a HTTP/1.1\r\nHost: a\r\nCookie: a=b\r\n",
		false},
	{"nothing", CHROME("a=b"), "", false},
};

static void test_what_is_of_a_model(void **state)
{
	(void)state;
	static struct model model;
	for (size_t i = 0; i < LENGTH(pairs); i++) {
		assert_true(make(pairs[i].model, &model));
		if (is_of(&model, (struct span){pairs[i].text, strlen(pairs[i].text)}) !=
			pairs[i].is_of)
			fail_msg("%s", pairs[i].name);
	}
}

static const struct {
	const char *name, *text;
} others[] = {
	{"two Cookie fields", PLAIN("Cookie: a=b\r\nCookie: c=d\r\n")},
	{"one that is empty", PLAIN("Cookie: \r\n")},
	{"two spaces", PLAIN("Cookie:  a=b\r\n")},
	{"no space", PLAIN("Cookie:a=b\r\n")},
	{"capitals", PLAIN("COOKIE: a=b\r\n")},
	{"absolute", "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"absolute, without a path", "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"},
	{"OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"},
};

static void test_what_makes_no_model(void **state)
{
	(void)state;
	static struct model model;
	for (size_t i = 0; i < LENGTH(others); i++)
		if (make(others[i].text, &model))
			fail_msg("%s", others[i].name);
}

// A head with so many bytes beside its cookies.
static const char *of_bytes(size_t bytes, const char *cookies)
{
	static char text[TEXT_BYTES_MAX];
	const char *frame = "GET / HTTP/1.1\r\nHost: a\r\nA: \r\nCookie: \r\n\r\n";
	snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nHost: a\r\nA: %0*d\r\nCookie: %s\r\n\r\n",
		(int)(bytes - strlen(frame)), 0, cookies);
	return text;
}

static void test_limits(void **state)
{
	(void)state;
	static struct model model;
	static char cookies[TEXT_BYTES_MAX];
	assert_false(make(of_bytes(MODEL_BYTES_MAX + 1, "a=b"), &model));
	assert_true(make(of_bytes(MODEL_BYTES_MAX, "a=b"), &model));
	size_t most = limits.head_bytes - MODEL_BYTES_MAX;
	memset(cookies, 'a', most + 1);
	const char *beyond = of_bytes(MODEL_BYTES_MAX, cookies);
	assert_false(is_of(&model, (struct span){beyond, strlen(beyond)}));
	cookies[most] = '\0';
	const char *at = of_bytes(MODEL_BYTES_MAX, cookies);
	assert_int_equal(strlen(at), limits.head_bytes);
	assert_true(is_of(&model, (struct span){at, strlen(at)}));
}

// Any octet of a head made another one: it is of the model only in the value of Cookie, and there
// only if it is text.
static void test_every_octet_counts(void **state)
{
	(void)state;
	static struct model model;
	const char *texts[] = {CHROME("sluice-t-derby=AQEB; b=c"), FIREFOX("sluice-t-derby=AQEB")};
	for (size_t t = 0; t < LENGTH(texts); t++) {
		char text[TEXT_BYTES_MAX];
		size_t len = strlen(texts[t]), changed = 0;
		assert_true(make(texts[t], &model));
		for (size_t i = 0; i < len; i++)
			for (unsigned octet = 0; octet < 256; octet++) {
				memcpy(text, texts[t], len);
				text[i] = (char)octet;
				bool is_value = i >= model.before && i < len - model.after;
				bool is_of_it = is_of(&model, (struct span){text, len});
				assert_true(is_value || is_of_it == (text[i] == texts[t][i]));
				changed += is_of_it && text[i] != texts[t][i];
			}
		assert_in_range(changed, 1, 256 * (len - model.before - model.after));
	}
}

// The place of the last line that is called Cookie, against a search one by one.
static void test_cookies_are_found(void **state)
{
	(void)state;
	static const char *const pieces[] = {"\n",
		"\nCookie: ", "\ncookie: ", "\nCookies: ", "\r\nCookie:", "Cookie: ", "C", " ",
		"aaaaaaaaaaaaaaaaaaaaaaa"};
	dice_begin();
	for (unsigned round = 0; round < 20000; round++) {
		char text[TEXT_BYTES_MAX];
		size_t len = 0, expected = SIZE_MAX;
		for (unsigned i = dice(12); i > 0; i--)
			len = (size_t)(stpcpy(text + len, pieces[dice(LENGTH(pieces))]) - text);
		for (size_t i = 0; i + 9 < len; i++)
			if (memcmp(text + i, "\nCookie: ", 9) == 0 ||
				memcmp(text + i, "\ncookie: ", 9) == 0)
				expected = i + 9;
		struct span in = guard_copy((struct span){text, len});
		assert_int_equal(model_cookie(in, 0), expected == SIZE_MAX ? len : expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_of_a_model),
		cmocka_unit_test(test_what_makes_no_model),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_every_octet_counts),
		cmocka_unit_test(test_cookies_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
