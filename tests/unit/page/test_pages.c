// The page compiler: what it refuses, at each limit and one beyond, and what it makes of the rest.

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <brotli/decode.h>
#include <cmocka.h>
#include <zlib.h>

#include "controlplane/pages/html.h"
#include "controlplane/pages/pages.h"
#include "dataplane/gate/rooms.h"

// Of random templates. Sanitizers make each of the encoder's allocations cost a hundredfold.
#ifdef __SANITIZE_ADDRESS__
#define ROUNDS 30
#else
#define ROUNDS 150
#endif

static char heard[8192]; // all errors, a line each: LINE:COLUMN: TEXT
static struct page *page;

static void hear(void *context, const struct template_place *place, const char *text)
{
	(void)context;
	size_t len = strlen(heard);
	snprintf(heard + len, sizeof(heard) - len, "%s:%u:%u: %s\n", place->file, place->line,
		place->column, text);
}

static const struct template_ear ear = {hear, NULL};
static const struct template_text partials[] = {
	{"foot", "_foot", {"<p>foot</p>", 11}},
	{"value", "_value", {"\n<b>{{plce}}</b>", 16}},
	{"self", "_self", {".{{>self}}", 10}},
	{"twice", "_twice", {"{{>twice}}{{>twice}}", 20}},
	{"open", "_open", {"{{#next}}", 9}},
	{"none", "_none", {"", 0}},
};
static const struct template_text assets[] = {{"logo.svg", "logo.svg", {HTML_ASSETS "l.svg", 21}}};

static int compile(const char *html)
{
	const struct pages_template template = {
		.source = {.main = {"main", "f", {html, strlen(html)}},
			.partials = {6, partials},
			.assets = {1, assets},
			.language = {"de", 2}},
		.phrases = &pages_builtin[0].phrases};
	heard[0] = '\0';
	int ret = pages_compile(&template, &ear, &page);
	assert_int_equal(ret < 0, heard[0] != '\0');
	assert_int_equal(ret < 0, page == NULL);
	assert_int_equal(pages_check(&template, &ear) > 0, ret < 0);
	return ret;
}

static const struct {
	const char *html, *error; // NULL: it is not refused
} refusals[] = {
	{"<p>{{state}}</p>", NULL},
	{"no slot at all", NULL},
	{"<p>{ {state} }</p>", NULL},
	{"<p>{{ state }}</p>", NULL},
	{"<p>{{state}}{{room}}", NULL},
	{"<p>\n\t\r</p>", NULL},
	{"<p>{{! anything }}</p>", NULL},
	{"<p>{{stat}}</p>", "f:1:4: {{stat}}: unknown variable; the nearest known is state"},
	{"é\n<p>é{{postion}}",
		"f:2:5: {{postion}}: unknown variable; the nearest known is position"},
	{"<p>{{}}</p>", "f:1:4: {{}}: unknown variable"},
	{"<p>{{state</p>", "f:1:4: {{ without }} behind it"},
	{"", "f:1:1: a page begins with text"},
	{"{{state}}</p>", "f:1:1: a page begins with text"},
	{"{{#next}}.{{/next}}", "f:1:1: a page begins with text"},
	{"<p>\x01</p>", "f:1:4: the control character 1"},
	{"<p>\x7f</p>", "f:1:4: the control character 127"},
	{".{{{state}}}", "f:1:2: {{{: no such form"},
	{".{{&state}}", "f:1:2: {{&: no such form"},
	{".{{=x=}}", "f:1:2: {{=: no such form"},
	{".{{#nxt}}{{/nxt}}", "f:1:2: {{#nxt}}: unknown section; the nearest known is next"},
	{".{{#next}}", "f:1:2: {{#next}}: the section never ends"},
	{".{{/next}}", "f:1:2: {{/next}}: no section is open in this file"},
	{".{{#next}}\n{{/full}}",
		"f:2:1: {{/full}}: the section to end is {{/next}}, begun on line 1"},
	{".{{#next}}{{#full}}{{/next}}{{/full}}", "f:1:20: {{/next}}: the section to end is"},
	{".{{>foo}}", "f:1:2: {{>foo}}: unknown partial; the nearest known is foot"},
	{".{{>value}}", "_value:2:4: {{plce}}: unknown variable"},
	{".{{>self}}", "_self:1:2: {{>self}}: too many partials within each other; allowed: 8"},
	{".{{>open}}{{/next}}", "_open:1:1: {{#next}}: the section never ends"},
	{".{{>none}}", NULL},
	{"<img src=\"{{asset logo.svg}}\">", NULL},
	{"<img src=\"{{asset log.svg}}\">",
		"f:1:11: {{asset log.svg}}: unknown asset; the nearest known is logo.svg"},
	{"<style>p{}</style><script>{{state}}</script>.",
		"f:1:27: a value or section in script or style"},
	{"<style>.{{state}}</style>.", "f:1:9: a value or section in script or style"},
	{"<style>{{#next}}p{}{{/next}}</style>.", "f:1:8: a value or section in script or style"},
	{"<script>never ends", "f:1:1: <script> never ends"},
	{"<p {{state}}>", "f:1:4: a value outside of quotes"},
	{"<p class={{state}}>", "f:1:10: a value outside of quotes"},
	{"<p class='{{state}}'>", NULL},
	{"<p {{#next}}hidden{{/next}}>", NULL},
	{"<p class=\"a{{#next}} b{{/next}}\">", NULL},
	{"<p{{#next}}>{{/next}}.", "f:1:3: a section that begins in one kind of place"},
	{"<p {{#next}}class=\"{{/next}}\">", "f:1:4: a section that begins in one kind of place"},
	{"<title>{{title}}</title>", NULL},
	{"<title>{{#next}}{{title}}{{/next}}</title>", NULL},
	{"<!-- {{! said }} --><p>", NULL},
	{"<!-- {{state}} --><p>", "f:1:6: a value or section in a comment"},
	{"<!-- {{#next}}--{{/next}}> --><p>", "f:1:6: a value or section in a comment"},
	{"<!doctype {{state}}><p>", "f:1:11: a value or section in a comment"},
	{"<?{{state}}><p>", "f:1:3: a value or section in a comment"},
	{"</ {{state}}><p>", "f:1:4: a value or section in a comment"},
	{"<{{message}}>", "f:1:2: a value or section right behind <"},
	{"</{{message}}>", "f:1:3: a value or section"},
	{"<!{{message}}>", "f:1:3: a value or section"},
	{"<p><{{#next}}script>{{/next}}.", "f:1:5: a value or section right behind <"},
	{"<p><{{#next}}b {{/next}}script>.", "f:1:5: a value or section right behind <"},
	{"<title><{{message}}</title>", "f:1:9: a value or section right behind <"},
	{"<title></{{message}}</title>", "f:1:10: a value or section"},
	{"<textarea>{{message}}</textarea>", NULL},
	{"<p>1 < {{position}} &{{message}};", NULL}, // no markup, for browsers neither
	{"<scr{{! }}ipt>", "f:1:11: a name within < > that is put together from pieces"},
	{"<{{! }}script></script>.", "f:1:8: a name within < >"},
	{"<{{!}}!-- {{state}} -->", "f:1:7: a name within < >"},
	{"<!{{!}}-- {{state}} -->", "f:1:8: a name within < >"},
	{"<!-{{!}}- x -->", "f:1:9: a name within < >"},
	{"</scr{{!}}ipt>.", "f:1:11: a name within < >"},
	{"<p cla{{!}}ss=x>", "f:1:12: a name within < >"},
	{"<p class=x{{!}}y>", "f:1:16: a name within < >"},
	{"<p class=\"x{{!}}y\">x{{!}}y<b {{!}}id=a>", NULL},
	{"<scr{{#next}}ipt{{/next}}>", "f:1:5: a section with a part of a name"},
	{"<p{{state}}>", "f:1:3: a value outside of quotes"},
	{"<p {{state}}=\"x\">", "f:1:4: a value outside of quotes"},
	{"<p class=\"x\"{{state}}>", "f:1:13: a value outside of quotes"},
	{"<p class=x{{state}}>", "f:1:11: a value outside of quotes"},
	{"</p {{state}}>", "f:1:5: a value outside of quotes"},
	{"<a href='x' title='{{room}}'>", NULL},
	{"<p{{#next}} hidden{{/next}}>", NULL},
	{"<p{{#next}} class=\"a\"{{/next}} id=b>", NULL},
	{"<p{{#next}} a {{/next}}b>", "f:1:3: a section with a part of a name"},
	{"<p {{#next}}a{{/next}}b>", "f:1:4: a section with a part of a name"},
	{"<p {{#next}}a{{/next}}=\"x\">", "f:1:4: a section with a part of a name"},
	{"<p title= {{#next}}\"x\"{{/next}} id=b>", "f:1:11: a section with a part of a name"},
	{"<p {{#next}}><script {{/next}}>x</script>",
		"f:1:4: a section that begins in one kind of place"},
	{"<img src=\"{{#next}}data:x\" alt=\"{{/next}}//x\">",
		"f:1:11: a section that begins in one kind of place"},
	{"<title>{{#next}}x</title><title>{{/next}}y</title>",
		"f:1:8: a section that begins in one kind of place"},
	{"<p>{{#next}}<script>x</script><p class=a>{{/next}}", NULL},
	{"<script>{{#next}}</script>{{/next}}.", "f:1:9: a value or section in script or style"},
	{"<p>{{#next}}<script>{{/next}}</script>.",
		"f:1:21: a value or section in script or style"},
	{"<p never ends", "f:1:1: the tag never ends"},
	{"<img src=http://x/y>", "f:1:10: src= fetches from elsewhere"},
	{"<img src='//x/y'>", "f:1:11: src= fetches from elsewhere"},
	{"<IMG\nSRC = 'y'>", "f:2:8: src= fetches from elsewhere"},
	{"<img src='data:image/png;base64,x'>", NULL},
	{"<link rel=stylesheet href=/x.css>", "f:1:27: href= fetches from elsewhere"},
	{"<a href=https://club.example/>", NULL},
	{"<a href='/{{room}}'>", "f:1:10: href= with a value in it"},
	{"<script src=/x.js></script>", "f:1:13: src= fetches from elsewhere"},
	{"<svg><use href='#a'/></svg>", NULL},
	{"<svg><use xlink:href='/a'/></svg>", "f:1:23: xlink:href= fetches from elsewhere"},
	{"<p style='color:red'>", "f:1:4: style= is not let in"},
	{"<p onclick='x()'>", "f:1:4: onclick= is not let in"},
	{"<iframe>", "f:1:1: <iframe> is of no use"},
	{"<base href=/>", "f:1:1: <base> is of no use"},
	{"<style>p{background:url(http://x)}</style>", "f:1:21: url() fetches from elsewhere"},
	{"<style>p{background:url('{{asset logo.svg}}')}</style>", NULL},
	{"<style>@import 'x';</style>", "f:1:8: @import fetches from elsewhere"},
};

static void what_is_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		int ret = compile(refusals[i].html);
		pages_destroy(page);
		if ((ret < 0) != (refusals[i].error != NULL) ||
			(refusals[i].error && !strstr(heard, refusals[i].error)))
			fail_msg("%s: %s", refusals[i].html, heard);
	}
}

static void all_errors_are_told(void **state)
{
	(void)state;
	assert_int_equal(compile("{{a}}{{b}}\n{{#c}}{{/c}}"), -EINVAL);
	assert_non_null(strstr(heard, "f:1:1: {{a}}"));
	assert_non_null(strstr(heard, "f:1:6: {{b}}"));
	assert_non_null(strstr(heard, "f:2:1: {{#c}}"));
}

static char *repeat(const char *text, size_t count, const char *end)
{
	static char out[PAGE_BODY_BYTES_MAX + 100000];
	size_t len = 0;
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%s", text);
	snprintf(out + len, sizeof(out) - len, "%s", end);
	return out;
}

static void at_each_limit_and_one_beyond(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		size_t limit;
		const char *end, *error;
	} rows[] = {
		{".{{progress}}", TEMPLATE_PARTS_MAX, ".",
			"too many values and sections; allowed: 200"},
		{".{{!}}", TEMPLATE_TAGS_MAX, ".", "too many braces"},
		{".{{#next}}", TEMPLATE_NEST_MAX, NULL,
			"too many sections within each other; allowed: 8"},
		{"<script></script>", HTML_BLOCKS_MAX, ".",
			"too many of <script> and <style>; allowed: 12"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t more = 0; more < 2; more++) {
			char end[400] = ".";
			for (size_t k = 0; !rows[i].end && k < rows[i].limit + more; k++)
				memcpy(end + 9 * k, "{{/next}}", 10);
			int ret = compile(repeat(rows[i].text, rows[i].limit + more, end));
			pages_destroy(page);
			if (ret != (more ? -EINVAL : 0) || (more && !strstr(heard, rows[i].error)))
				fail_msg("row %zu, %zu more: %s", i, more, heard);
		}
	}
	assert_int_equal(compile(repeat(".{{>twice}}", 1, "")), -EINVAL); // 2^8 at most
	char tag[TEMPLATE_TAG_BYTES_MAX + 8] = ".{{", *at = tag + 3;
	memset(at, 'x', TEMPLATE_TAG_BYTES_MAX + 1);
	memcpy(at + TEMPLATE_TAG_BYTES_MAX + 1, "}}", 3);
	assert_int_equal(compile(tag), -EINVAL);
	assert_non_null(strstr(heard, "too long between braces; allowed: 200"));
}

static void as_long_as_it_may_be_and_one_more(void **state)
{
	(void)state;
	static char html[PAGE_BODY_BYTES_MAX + 2];
	for (size_t i = 0; i + 1 < sizeof(html); i++)
		html[i] = (char)('A' + i * i % 31 % 26 + (i / 97) % 2);
	html[PAGE_BODY_BYTES_MAX] = '\0';
	assert_int_equal(compile(html), 0);
	pages_destroy(page);
	html[PAGE_BODY_BYTES_MAX] = 'x';
	assert_int_equal(compile(html), -EINVAL);
	assert_non_null(strstr(heard, "allowed: 24000 bytes"));
}

static void hashes_are_those_of_browsers(void **state)
{
	(void)state;
	// printf 'alert(1)' | openssl sha256 -binary | base64, and of `p{}`
	assert_int_equal(compile("<style>p{}</style><script data-x='>'>alert(1)</script>"), 0);
	static const char expected[] =
		"default-src 'none'; "
		"script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='; "
		"style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y='; "
		"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; "
		"frame-ancestors 'self'";
	assert_int_equal(page->csp.len, sizeof(expected) - 1);
	assert_memory_equal(page->csp.at, expected, page->csp.len);
	pages_destroy(page);
}

static char out[PAGE_BODY_BYTES_MAX + 1];

// A section that is not shown is spaces where texts are compressed.
static void assert_same_but_for_spaces(const char *a, const char *b)
{
	for (;; a++, b++) {
		a += strspn(a, " ");
		b += strspn(b, " ");
		assert_int_equal(*a, *b);
		if (!*a)
			return;
	}
}

// The page for that state in every encoding, which must all say the same.
static const char *render(struct status *status, unsigned kind)
{
	static char texts[PAGE_ENCODINGS][PAGE_BODY_BYTES_MAX + 1];
	const struct gate_room room = {.name = {"derby", 5}};
	const struct page_view view = {.status = status, .room = &room, .kind = (uint8_t)kind};
	for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++) {
		size_t len = page_render(page, encoding, &view, out), to = PAGE_BODY_BYTES_MAX;
		char *text = texts[encoding];
		memset(text, 0, sizeof(texts[0]));
		assert_int_equal(len, page_body_bytes(page, encoding, &view));
		if (encoding == ACCEPT_BR) {
			assert_int_equal(
				BrotliDecoderDecompress(len, (uint8_t *)out, &to, (uint8_t *)text),
				BROTLI_DECODER_RESULT_SUCCESS);
		} else if (encoding == ACCEPT_GZIP) {
			z_stream stream = {.next_in = (Bytef *)out,
				.avail_in = (uInt)len,
				.next_out = (Bytef *)text,
				.avail_out = PAGE_BODY_BYTES_MAX};
			assert_int_equal(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
			assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
			inflateEnd(&stream);
		} else {
			memcpy(text, out, len);
		}
		assert_same_but_for_spaces(text, texts[0]);
	}
	return texts[0];
}

// The same without padding.
static const char *squeezed(struct status *status, unsigned kind)
{
	static char text[PAGE_BODY_BYTES_MAX + 1];
	const char *from = render(status, kind);
	char *to = text;
	for (; *from; from++) {
		if (strncmp(from, "<!-- ", 5) == 0)
			from = strstr(from, "-->") + 2;
		else if (*from != ' ')
			*to++ = *from;
	}
	*to = '\0';
	return text;
}

static void sections_are_shown_when_they_should_be(void **state)
{
	(void)state;
	static const struct {
		unsigned kind;
		uint64_t position;
		const char *text;
	} rows[] = {
		{STATUS_waiting, 7, "<p>A7derby;</p>end"},
		{STATUS_waiting, STATUS_UNKNOWN, "<p>A?;</p>end"},
		{STATUS_next, 7, "<p>B;</p>notwaitingend"},
		{STATUS_full, 7, "<p>;</p>notwaitingend"},
		{PAGE_error, 7, "<p>;</p>notwaitingend"},
	};
	assert_int_equal(compile("<p>{{#waiting}}A{{#position}}{{position}}{{room}}{{/position}}"
				 "{{^position}}?{{/position}}{{/waiting}}{{#next}}B{{/next}};</p>"
				 "{{^waiting}}not waiting{{/waiting}}end"),
		0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct status status = {.position = rows[i].position};
		assert_string_equal(squeezed(&status, rows[i].kind), rows[i].text);
	}
	pages_destroy(page);
}

// Any mixture of texts, values and sections, long texts that repeat each other among them, decodes
// to the same in every encoding (render() compares) and every state.
static void anything_decodes(void **state)
{
	(void)state;
	static const char *const bits[] = {"<p>abcdefghijklmnopqrstuvwxyz</p>", "{{position}}",
		"{{#waiting}}", "{{#next}}", "{{^message}}", "{{#wait}}", "{{/}}", "{{/}}", "{{/}}",
		"the time of the people in the line ", "{{room}}", "{{state}}", "<b class='x'>",
		"{{>foot}}", "<i title=\"{{ahead}}\">"};
	static const char *const names[] = {"waiting", "next", "message", "wait"};
	uint64_t seed = 4711;
	for (int round = 0; round < ROUNDS; round++) {
		char html[8192] = "<!doctype html>";
		unsigned open[TEMPLATE_NEST_MAX], depth = 0;
		for (int i = 0; i < 60 || depth > 0; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			unsigned pick = (unsigned)(seed >> 40) % 15;
			if (i >= 60)
				pick = 6;
			if (pick >= 2 && pick <= 5 && depth == TEMPLATE_NEST_MAX)
				continue;
			size_t len = strlen(html);
			if (pick >= 6 && pick <= 8) {
				if (depth > 0)
					snprintf(html + len, sizeof(html) - len, "{{/%s}}",
						names[open[--depth]]);
				continue;
			}
			if (pick >= 2 && pick <= 5)
				open[depth++] = pick - 2;
			snprintf(html + len, sizeof(html) - len, "%s", bits[pick]);
		}
		if (compile(html) < 0)
			fail_msg("%s: %s", html, heard);
		for (unsigned kind = 0; kind < PAGE_KIND_COUNT; kind++) {
			struct status status = {.position = seed >> 30,
				.ahead = STATUS_UNKNOWN,
				.eta_high = kind % 2 ? STATUS_UNKNOWN : 300};
			render(&status, kind);
		}
		pages_destroy(page);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(all_errors_are_told),
		cmocka_unit_test(at_each_limit_and_one_beyond),
		cmocka_unit_test(as_long_as_it_may_be_and_one_more),
		cmocka_unit_test(hashes_are_those_of_browsers),
		cmocka_unit_test(sections_are_shown_when_they_should_be),
		cmocka_unit_test(anything_decodes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
