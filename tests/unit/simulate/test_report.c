// Report and plot: what stands in them, and that they are what they say they are.

#include "tests/unit/simulate/playing.h"

#include <jansson.h>

#include "controlplane/simulate/plot.h"
#include "controlplane/simulate/report.h"
#include "controlplane/simulate/sizes.h"

static const char small[] = "title: \"a < b & c\"\n"
			    "appliance: {count: 2, polls: 10, spare: 1}\n"
			    "rooms:\n"
			    "  - name: derby\n"
			    "    rate: 5/s\n"
			    "    opens: 30s\n"
			    "    prequeue: 30s\n"
			    "    arrivals: [{people: 500, over: 1m}]\n";

static char *text_of(int (*write)(const struct result *, const struct play *, FILE *))
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	assert_int_equal(write(&result, &play, out), 0);
	fclose(out);
	return text;
}

static void a_table(void **state)
{
	(void)state;
	playing_start(small, 1);
	char *text = text_of(report_table);
	static const char *const says[] = {"a < b & c\n", "derby\n",
		"people came                 500", "admitted                    500",
		"Appliances needed: ", "The plan has 2: too few", "wait p50"};
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		if (!strstr(text, says[i]))
			fail_msg("no '%s' in\n%s", says[i], text);
	free(text);
	playing_end();
}

static void json(void **state)
{
	(void)state;
	playing_start(small, 1);
	char *text = text_of(report_json);
	json_t *all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *title;
	double p99, peak;
	int needed, step, came = 0, people;
	json_t *rows, *row;
	assert_non_null(all);
	assert_int_equal(
		json_unpack(all, "{s:s, s:i, s:o, s:[{s:i, s:{s:F}}], s:{s:i, s:{s:{s:F}}}}",
			"title", &title, "step_s", &step, "rows", &rows, "rooms", "people", &people,
			"wait_s", "p99", &p99, "appliances", "needed", &needed, "loads",
			"polls_per_s", "peak", &peak),
		0);
	assert_string_equal(title, "a < b & c");
	assert_int_equal(people, 500);
	assert_float_equal(p99, 75, 8); // 70, and some are late after the opening
	assert_int_equal(needed, (int)(peak / 10) + 1);
	size_t i;
	json_array_foreach(rows, i, row)
	{
		assert_int_equal(json_integer_value(json_object_get(row, "from_s")), (int)i * step);
		came += (int)json_integer_value(json_object_get(row, "came"));
	}
	assert_int_equal(came, 500);
	json_decref(all);
	free(text);
	playing_end();
}

static void rows_are_bounded(void **state)
{
	(void)state;
	playing_start(small, 1);
	for (uint32_t most = 1; most <= RESULT_ROWS_MAX; most++) {
		struct result_rows rows;
		assert_int_equal(result_rows(&result, &play, -1, most, &rows), 0);
		assert_in_range(rows.count, 1, most);
		uint32_t came = 0, admitted = 0;
		for (uint32_t i = 0; i < rows.count; i++)
			came += rows.at[i].came, admitted += rows.at[i].admitted;
		assert_int_equal(came, 500);
		assert_int_equal(admitted, 500);
		free(rows.at);
	}
	playing_end();
}

static void a_plot(void **state)
{
	(void)state;
	playing_start(small, 1);
	char *text = text_of(plot_write);
	static const char *const says[] = {"<svg xmlns=", "prefers-color-scheme:dark",
		"a &lt; b &amp; c", "doors open", "Wait of those who come at this time", "</svg>"};
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++)
		assert_non_null(strstr(text, says[i]));
	assert_null(strstr(text, "nan"));
	free(text);
	playing_end();
}

static void times(void **state)
{
	(void)state;
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {{0, "0.0 s"}, {9.94, "9.9 s"}, {45.4, "45 s"}, {119, "119 s"}, {120, "2 min"},
		{7100, "118 min"}, {7200, "2 h 00"}, {26000, "7 h 13"}};
	char text[RESULT_TEXT_BYTES];
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(result_time(cases[i].seconds, text), cases[i].text);
	assert_string_equal(result_number(999, text), "999");
	assert_string_equal(result_number(1000, text), "1,000");
	assert_string_equal(result_number(1234567, text), "1,234,567");
}

static void sizes(void **state)
{
	(void)state;
	playing_start(small, 1);
	struct sizes measured;
	assert_int_equal(sizes_measure(plan, &measured), 0);
	assert_in_range(measured.poll, 250, 500);
	assert_in_range(measured.page, 3000, 9000); // brotli
	const uint32_t brotli = measured.page;
	plan->traffic->encoding = PLAN_ENCODING_IDENTITY;
	assert_int_equal(sizes_measure(plan, &measured), 0);
	assert_true(measured.page > 1.5 * brotli);
	assert_true(measured.poll_wire > measured.poll + 66);
	const double secured = measured.connection_wire;
	plan->traffic->tls = false;
	assert_int_equal(sizes_measure(plan, &measured), 0);
	assert_true(measured.connection_wire < secured - 4000);
	playing_end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_table),
		cmocka_unit_test(json),
		cmocka_unit_test(rows_are_bounded),
		cmocka_unit_test(a_plot),
		cmocka_unit_test(times),
		cmocka_unit_test(sizes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
