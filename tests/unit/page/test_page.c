// The queue page as visitors get it: every encoding decodes to the same bytes, of the same length
// for everyone, and says what is to be said.

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <brotli/decode.h>
#include <cmocka.h>
#include <zlib.h>

#include "controlplane/pages/folder.h"
#include "controlplane/pages/message.h"
#include "dataplane/gate/page.h"
#include "dataplane/gate/rooms.h"

static struct folder *folder;
static const struct page_set *set;
static const struct page *page; // rendered last
static struct gate_room room;
static struct status status;
static char out[PAGE_BODY_BYTES_MAX + 1];
static char decoded[PAGE_ENCODINGS][PAGE_BODY_BYTES_MAX + 1];

static int start(void **state)
{
	(void)state;
	const struct template_ear ear = {NULL, NULL}; // nothing is wrong with them
	int ret = folder_read(NULL, "en", NULL, &ear, NULL, &folder);
	set = ret == 0 ? folder_set(folder) : NULL;
	return ret;
}

static int stop(void **state)
{
	(void)state;
	folder_give(folder);
	return 0;
}

static int scene(void **state)
{
	(void)state;
	room = (struct gate_room){.name = {"derby", 5}};
	status = (struct status){.state = STATUS_waiting,
		.poll_after = 5,
		.position = 47382,
		.ahead = 46110,
		.eta_low = 1200,
		.eta_high = 1500,
		.progress = 380,
		.now = 1800000000 + 3723};
	return 0;
}

static size_t gunzip(size_t len, char *to)
{
	z_stream stream = {.next_in = (Bytef *)out,
		.avail_in = (uInt)len,
		.next_out = (Bytef *)to,
		.avail_out = PAGE_BODY_BYTES_MAX};
	assert_int_equal(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END); // CRC and length hold
	assert_int_equal(stream.avail_in, 0);
	inflateEnd(&stream);
	return stream.total_out;
}

static size_t unbrotli(size_t len, char *to)
{
	size_t to_len = PAGE_BODY_BYTES_MAX;
	assert_int_equal(BrotliDecoderDecompress(len, (const uint8_t *)out, &to_len, (uint8_t *)to),
		BROTLI_DECODER_RESULT_SUCCESS);
	return to_len;
}

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

// Render in every encoding, check that all say the same, and return it.
enum { EN, JA, DE, ES, FR }; // in the order of controlplane/pages/meson.build
static const char *render(unsigned language)
{
	const struct page_view view = {.status = &status, .room = &room, .kind = status.state};
	page = set->pages[language][status.state];
	for (int encoding = 0; encoding < PAGE_ENCODINGS; encoding++) {
		memset(out, '~', sizeof(out));
		size_t len = page_render(page, encoding, &view, out);
		assert_int_equal(len, page_body_bytes(page, encoding, &view));
		assert_int_equal(out[len], '~');
		char *to = decoded[encoding];
		if (encoding == ACCEPT_GZIP)
			len = gunzip(len, to);
		else if (encoding == ACCEPT_BR)
			len = unbrotli(len, to);
		else
			memcpy(to, out, len);
		to[len] = 0;
		assert_same_but_for_spaces(to, decoded[ACCEPT_IDENTITY]);
	}
	return decoded[ACCEPT_IDENTITY];
}

static void assert_says(const char *html, const char *text)
{
	if (!strstr(html, text))
		fail_msg("the page does not say: %s", text);
}

static void the_values_stand_where_they_should(void **state)
{
	(void)state;
	const char *html = render(EN);
	assert_says(html, "<html lang=\"en\">");
	assert_says(html, "<title>47,382 · You are in line ");
	assert_says(html, "<noscript><meta http-equiv=\"refresh\" content=\"5  ;url=&#1;\">");
	assert_says(html, "data-state=\"waiting   \"");
	assert_says(html, "data-room=\"derby ");
	assert_says(html, "data-poll=\"5  \"");
	assert_says(html, "<b id=\"place\">47,382<!-- ");
	assert_says(html, "<dd id=\"ahead\">46,110<!-- ");
	assert_says(html, ">20 to 25 minutes<!-- ");
	assert_says(html, "max=\"1000\" value=\"380 \"");
	assert_says(html, "<p class=\"note\" hidden>");
	assert_says(html, "<time id=\"time\">09:02:03 UTC</time>");
	html = render(JA);
	assert_says(html, "<html lang=\"ja\">");
	assert_says(html, "<title>47,382 · 順番をお待ちください ");
	assert_says(html, ">20〜25分<!-- ");
}

static void nothing_is_fetched_from_elsewhere(void **state)
{
	(void)state;
	const char *html = render(EN);
	static const char *const forbidden[] = {"src=", "url(", "@import", "http://", "https://",
		"style=\"", " onclick=\"", " onload=\"", "integrity"};
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(forbidden[0]); i++) {
		const char *found = strstr(html, forbidden[i]);
		if (found && strncmp(found, "http://www.w3.org/2000/svg", 26) != 0)
			fail_msg("the page has %.60s", found);
	}
}

static void it_is_short(void **state)
{
	(void)state;
	for (int language = 0; language < (int)PAGES_BUILTIN; language++) {
		const struct page_view view = {.status = &status, .room = &room};
		page = set->pages[language][STATUS_waiting];
		uint32_t identity = page_body_bytes(page, ACCEPT_IDENTITY, &view);
		uint32_t gzip = page_body_bytes(page, ACCEPT_GZIP, &view);
		uint32_t brotli = page_body_bytes(page, ACCEPT_BR, &view);
		assert_in_range(identity, 1, 12000 - 1);
		assert_in_range(gzip, 1, 5400);
		assert_in_range(brotli, 1, gzip - 1);
	}
}

static void every_state_has_its_own_words(void **state)
{
	(void)state;
	status.position = status.ahead = STATUS_UNKNOWN;
	status.eta_low = status.eta_high = STATUS_UNKNOWN;
	for (int language = 0; language < (int)PAGES_BUILTIN; language++) {
		for (int is = 0; is < STATUS_STATE_COUNT; is++) {
			status.state = (uint8_t)is;
			const char *html = render(language);
			char expected[128];
			struct span title = pages_builtin[language].phrases.titles[is];
			snprintf(expected, sizeof(expected), "<title>%s%.*s ",
				is == STATUS_waiting ? "– · " : "", (int)title.len, title.at);
			assert_says(html, expected);
			snprintf(expected, sizeof(expected), "<h1>%.*s</h1>", (int)title.len,
				title.at);
			assert_says(html, expected);
			assert_says(html, "<b id=\"place\">–<!-- ");
		}
	}
	assert_says(render(EN), ">being estimated<!-- ");
}

static void the_wait_in_words(void **state)
{
	(void)state;
	static const struct {
		uint64_t low, high;
		const char *words;
	} rows[] = {
		{0, 0, "less than a minute"},
		{30, 59, "less than a minute"},
		{0, 60, "1 to 2 minutes"},
		{59, 61, "1 to 2 minutes"},
		{120, 121, "2 to 3 minutes"},
		{120, 120, "2 to 3 minutes"},
		{299, 5400, "4 to 90 minutes"},
		{5399, 5401, "1 to 2 hours"},
		{60, 5401, "0.5 to 2 hours"},
		{5400, 9000, "1.5 to 2.5 hours"},
		{129599, 129600, "35.5 to 36 hours"},
		{129600, 129601, "1 to 2 days"},
		{1, 86400 * 9, "1 to 9 days"},
		{UINT64_MAX - 2, UINT64_MAX - 1, "213503982334601 to 213503982334602 days"},
		{STATUS_UNKNOWN, STATUS_UNKNOWN, "being estimated"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char expected[64];
		status.eta_low = rows[i].low;
		status.eta_high = rows[i].high;
		snprintf(expected, sizeof(expected), "\"wait\">%s", rows[i].words);
		assert_says(render(EN), expected);
	}
}

// As far as numbers go, a language has its own marks.
static void numbers_are_those_of_the_language(void **state)
{
	(void)state;
	status.eta_low = 5400;
	status.eta_high = 9000;
	static const struct {
		unsigned language;
		const char *place, *wait;
	} rows[] = {
		{EN, ">47,382<", ">1.5 to 2.5 hours<"},
		{JA, ">47,382<", ">1.5〜2.5時間<"},
		{DE, ">47.382<", ">1,5 bis 2,5 Stunden<"},
		{ES, ">47.382<", ">1,5 a 2,5 horas<"},
		{FR, ">47\u00a0382<", ">1,5 à 2,5 heures<"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *html = render(rows[i].language);
		assert_says(html, rows[i].place);
		assert_says(html, rows[i].wait);
	}
}

static void a_draw_without_a_public_salt_says_so(void **state)
{
	(void)state;
	static const char note[] = "The draw uses no public number";
	status.state = STATUS_prequeue;
	status.position = status.ahead = STATUS_UNKNOWN;
	status.opens = (uint32_t)status.now + 60;
	assert_says(render(EN), note);
	room.has_salt = true;
	assert_null(strstr(render(EN), note));
	room.has_salt = false;
	status.opens = 0; // the doors are open: there is no draw to come
	status.state = STATUS_waiting;
	assert_null(strstr(render(EN), note));
}

static void the_operators_message_is_text(void **state)
{
	(void)state;
	struct message message;
	const char *text = "</p><script>alert('1')</script> & \"more\"";
	assert_int_equal(message_escape((struct span){text, strlen(text)}, &message), 0);
	room.message_html = (struct span){message.html, message.html_len};
	const char *html = render(EN);
	assert_says(html, "<p class=\"note\" >"); // shown
	assert_says(html, ">&lt;/p&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt; &amp; "
			  "&quot;more&quot;<!-- ");
	assert_null(strstr(html, "alert('"));
}

static void values_as_long_as_they_get(void **state)
{
	(void)state;
	static char name[GATE_NAME_MAX], text[STATUS_MESSAGE_BYTES_MAX];
	memset(name, 'n', sizeof(name));
	memset(text, 'm', sizeof(text));
	room.name = (struct span){name, sizeof(name)};
	room.message_html = (struct span){text, sizeof(text)};
	status = (struct status){.state = STATUS_waiting,
		.poll_after = 999,
		.position = UINT64_MAX - 1,
		.ahead = UINT64_MAX - 1,
		.eta_low = UINT64_MAX - 2,
		.eta_high = UINT64_MAX - 1,
		.progress = 1000,
		.now = UINT64_MAX};
	for (int language = 0; language < (int)PAGES_BUILTIN; language++)
		assert_says(
			render(language), "551"); // and no slot is too narrow, which is asserted
	assert_says(render(EN), "18,446,744,073,709,551,614");
}

static void anything_decodes(void **state)
{
	(void)state;
	uint64_t seed = 42;
	static char text[STATUS_MESSAGE_BYTES_MAX];
	for (int i = 0; i < 500; i++) {
		uint64_t values[8];
		for (int k = 0; k < 8; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			values[k] = seed >> 24;
		}
		for (size_t k = 0; k < sizeof(text); k++)
			text[k] = (char)(' ' + (values[k % 8] >> k % 40) % 90);
		room.message_html = (struct span){text, values[7] % (sizeof(text) + 1)};
		status.state = (uint8_t)(values[0] % STATUS_STATE_COUNT);
		status.position = values[1] >> values[2] % 40;
		status.ahead = values[3] >> values[2] % 39;
		status.eta_low = values[4] >> values[5] % 40;
		status.eta_high = status.eta_low + values[6] % 9999;
		status.poll_after = 1 + values[5] % 60;
		status.progress = values[6] % 1001;
		status.now = values[7];
		render(values[0] % PAGES_BUILTIN);
	}
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup(name, scene)
	const struct CMUnitTest tests[] = {
		STORY(the_values_stand_where_they_should),
		STORY(nothing_is_fetched_from_elsewhere),
		STORY(it_is_short),
		STORY(every_state_has_its_own_words),
		STORY(the_wait_in_words),
		STORY(numbers_are_those_of_the_language),
		STORY(a_draw_without_a_public_salt_says_so),
		STORY(the_operators_message_is_text),
		STORY(values_as_long_as_they_get),
		STORY(anything_decodes),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
