// The page compiler: what it refuses, at each limit and one beyond, and what it makes of the rest.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "controlplane/pages/pages.h"
#include "dataplane/gate/rooms.h"

static char error[PAGES_ERROR_BYTES];
static struct page *page;

static int compile(struct span html, const struct page_phrases *phrases)
{
	struct pages_template templates[PAGE_LANGUAGES];
	for (int i = 0; i < PAGE_LANGUAGES; i++)
		templates[i] = (struct pages_template){
			html, phrases ? *phrases : pages_builtin[i].phrases};
	page = NULL;
	memset(error, 0, sizeof(error));
	int ret = pages_compile(templates, &page, error);
	if (ret < 0)
		assert_null(page);
	pages_destroy(page);
	return ret;
}

static void what_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *html, *error; // NULL: it is not refused
	} rows[] = {
		{"<p>{{state}}</p>", NULL},
		{"no slot at all", NULL},
		{"<p>{ {state} }</p>", NULL},
		{"<p>{{stat}}</p>", "no slot is called `stat`"},
		{"<p>{{}}</p>", "no slot is called ``"},
		{"<p>{{state</p>", "no slot is called `state</p>`"},
		{"<p>{{ state }}</p>", "no slot is called ` state `"},
		{"", "a slot at the start, the end, or next to another"},
		{"{{state}}</p>", "a slot at the start, the end, or next to another"},
		{"<p>{{state}}", "a slot at the start, the end, or next to another"},
		{"<p>{{state}}{{room}}</p>", "a slot at the start, the end, or next to another"},
		{"<p>\x01</p>", "byte 3 is the control character 1"},
		{"<p>\x7f</p>", "byte 3 is the control character 127"},
		{"<p>\n\t</p>", NULL},
		{"<style>p{}</style><script>{{state}}</script>.", "a slot in <script>"},
		{"<style>.{{state}}</style>.", "a slot in <style>"},
		{"<script>never ends", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int ret = compile((struct span){rows[i].html, strlen(rows[i].html)}, NULL);
		assert_int_equal(ret, rows[i].error ? -EINVAL : 0);
		if (rows[i].error)
			assert_string_equal(error, rows[i].error);
	}
}

static void as_long_as_it_may_be_and_one_more(void **state)
{
	(void)state;
	static char html[PAGE_BODY_BYTES_MAX + 1];
	const uint32_t limit = PAGE_BODY_BYTES_MAX - 8; // room for the trailer of gzip
	for (size_t i = 0; i < sizeof(html); i++)
		html[i] = (char)(' ' + i * i % 31 + i % 7);
	assert_int_equal(compile((struct span){html, limit}, NULL), 0);
	assert_int_equal(compile((struct span){html, limit + 1}, NULL), -EINVAL);
	assert_string_equal(error, "longer than 12000 bytes");
	const struct span slot = SPAN("{{message}}");
	memcpy(html + 5, slot.at, slot.len);
	uint32_t longest = limit + (uint32_t)slot.len - page_slot_width(PAGE_SLOT_message);
	assert_int_equal(compile((struct span){html, longest}, NULL), 0);
	assert_int_equal(compile((struct span){html, longest + 1}, NULL), -EINVAL);
}

static void as_many_slots_as_there_may_be_and_one_more(void **state)
{
	(void)state;
	char html[PAGE_PIECES_MAX * 16] = "";
	size_t len = 0;
	for (uint32_t i = 0; i + 1 < PAGE_PIECES_MAX; i++)
		len += (size_t)snprintf(html + len, sizeof(html) - len, ".{{poll}}");
	html[len] = '.';
	assert_int_equal(compile((struct span){html, len + 1}, NULL), 0);
	len += (size_t)snprintf(html + len, sizeof(html) - len, ".{{poll}}.");
	assert_int_equal(compile((struct span){html, len}, NULL), -EINVAL);
	assert_string_equal(error, "more than 23 slots");
}

static void phrases_that_do_not_fit(void **state)
{
	(void)state;
	static char longest[128];
	memset(longest, 'x', sizeof(longest));
	const struct page_phrases good = pages_builtin[ACCEPT_EN].phrases;
	const uint32_t title = page_slot_width(PAGE_SLOT_title) - 26 - 4; // place, " · "
	struct page_phrases phrases = good;
	phrases.titles[STATUS_full] = (struct span){longest, title};
	assert_int_equal(compile(SPAN("."), &phrases), 0);
	phrases.titles[STATUS_full].len++;
	assert_int_equal(compile(SPAN("."), &phrases), -EINVAL);
	phrases = good;
	phrases.wait_soon = (struct span){longest, 40};
	assert_int_equal(compile(SPAN("."), &phrases), 0);
	phrases.wait_soon.len++;
	assert_int_equal(compile(SPAN("."), &phrases), -EINVAL);
	static const char *const patterns[] = {"#", "# # #", "none", ""};
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		phrases = good;
		phrases.wait_hours = (struct span){patterns[i], strlen(patterns[i])};
		assert_int_equal(compile(SPAN("."), &phrases), -EINVAL);
	}
	phrases = good;
	phrases.wait_days = SPAN("# 89012345 #"); // 2 x 15 digits and 10 characters
	assert_int_equal(compile(SPAN("."), &phrases), 0);
	phrases.wait_days = SPAN("# 890123456 #");
	assert_int_equal(compile(SPAN("."), &phrases), -EINVAL);
}

static void hashes_are_those_of_browsers(void **state)
{
	(void)state;
	// printf 'alert(1)' | openssl sha256 -binary | base64, and of `p{}`
	const struct pages_template template = {
		SPAN("<style>p{}</style><script>alert(1)</script>"), pages_builtin[0].phrases};
	const struct pages_template templates[PAGE_LANGUAGES] = {template, template};
	assert_int_equal(pages_compile(templates, &page, error), 0);
	static const char expected[] =
		"default-src 'none'; "
		"script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='; "
		"style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='; "
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
		"frame-ancestors 'self'";
	struct span csp = page->texts[ACCEPT_JA].csp;
	assert_int_equal(csp.len, sizeof(expected) - 1);
	assert_memory_equal(csp.at, expected, csp.len);
	pages_destroy(page);
}

static void as_many_scripts_as_fit_the_policy(void **state)
{
	(void)state;
	char html[1024] = "";
	size_t len = 0;
	int ret = 0, count = 0;
	while (ret == 0 && count < 20) {
		len += (size_t)snprintf(html + len, sizeof(html) - len, "<script>a</script>");
		ret = compile((struct span){html, len}, NULL);
		count++;
	}
	assert_int_equal(ret, -EINVAL);
	assert_string_equal(error, "too many of <script>");
	assert_in_range(count, 4, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(as_long_as_it_may_be_and_one_more),
		cmocka_unit_test(as_many_slots_as_there_may_be_and_one_more),
		cmocka_unit_test(phrases_that_do_not_fit),
		cmocka_unit_test(hashes_are_those_of_browsers),
		cmocka_unit_test(as_many_scripts_as_fit_the_policy),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
