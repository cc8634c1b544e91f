// Typed words, and the row they find.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controlplane/cli/cli.h"
#include "controlplane/cli/command.h"

#include <stdlib.h>
#include <string.h>

// `words` are separated by '|'; `pattern` NULL: wrong usage.
static const struct word_case {
	const char *words, *pattern;
} cases[] = {
	{"run", "run"},
	{"run|now", NULL},
	{"Run", NULL},
	{"ru", NULL},
	{"check", "check"},
	{"reload", "reload"},
	{"keys", "keys [man|example|plan]"},
	{"keys|man", "keys [man|example|plan]"},
	{"keys|example", "keys [man|example|plan]"},
	{"keys|plan", "keys [man|example|plan]"},
	{"keys|ma", NULL},
	{"keys|man|example", NULL},
	{"show", NULL},
	{"show|rooms", "show rooms"},
	{"show|rooms|derby", NULL},
	{"show|room", NULL},
	{"show|room|derby", "show room NAME"},
	{"show|room|", NULL},
	{"show|pools", "show pools"},
	{"show|workers", "show workers"},
	{"show|counters", "show counters"},
	{"show|origin", "show origin"},
	{"show|cluster", "show cluster"},
	{"show|everything", NULL},
	{"lane|link", NULL},
	{"lane|link|derby/members", "lane link LANE [TIME]"},
	{"lane|link|derby/members|2026-12-01T10:00:00+09:00", "lane link LANE [TIME]"},
	{"lane|list", NULL},
	{"lane|code|derby/members", NULL},
	{"lane|code|derby/members|7GQX-4TRM", "lane code LANE CODE [again]"},
	{"lane|code|derby/members|7GQX-4TRM|again", "lane code LANE CODE [again]"},
	{"lane|code|derby/members|7GQX-4TRM|never", NULL},
	{"room|derby", NULL},
	{"room|derby|open", "room NAME open"},
	{"room|open|open", "room NAME open"},
	{"room|derby|pause", "room NAME pause"},
	{"room|derby|resume", "room NAME resume"},
	{"room|derby|close", "room NAME close"},
	{"room|derby|close|now", NULL},
	{"room|derby|release|50", "room NAME release N"},
	{"room|derby|release", NULL},
	{"room|derby|release|many", NULL},
	{"room|derby|release|-1", NULL},
	{"room|derby|release|", NULL},
	{"room|derby|message", NULL},
	{"room|derby|message|", "room NAME message TEXT..."},
	{"room|derby|message|back at ten", "room NAME message TEXT..."},
	{"room|derby|message|back|at|ten", "room NAME message TEXT..."},
	{"room|derby|mode|off", "room NAME mode auto|always|off|reject|peak"},
	{"room|derby|mode|auto", "room NAME mode auto|always|off|reject|peak"},
	{"room|derby|mode|peak", "room NAME mode auto|always|off|reject|peak"},
	{"room|derby|mode|valley", NULL},
	{"room|derby|mode|", NULL},
	{"room|derby|salt|c0ffee", "room NAME salt HEX"},
	{"room|derby|salt", NULL},
	{"draw|verify|AQEB", "draw verify TICKET..."},
	{"draw|verify|AQEB|AQEC", "draw verify TICKET..."},
	{"draw|verify", NULL},
	{"page|preview|derby|waiting", "page preview ROOM STATE"},
	{"page|preview|derby", NULL},
	{"simulate|plan.yaml", "simulate PLAN"},
	{"simulate", NULL},
	{"secrets|list", "secrets list"},
	{"secrets|rotate", "secrets rotate"},
	{"secrets|revoke|3", "secrets revoke ID"},
	{"secrets|revoke|three", NULL},
	{"secrets", NULL},
	{"ticket|AQEB", "ticket TOKEN"},
	{"ticket", NULL},
	{"drain", "drain"},
	{"drain|now", NULL},
};

static struct command_words split(char *text, char **at)
{
	struct command_words words = {.at = at};
	while (text)
		at[words.count++] = strsep(&text, "|");
	return words;
}

static void test_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = strdup(cases[i].words), *at[16];
		const struct command *command = command_find(split(text, at));
		print_message("%s\n", cases[i].words);
		if (cases[i].pattern)
			assert_string_equal(command ? command->pattern : "", cases[i].pattern);
		else
			assert_null(command);
		free(text);
	}
	assert_null(command_find((struct command_words){0}));
}

// Every row is found by some case above.
static void test_every_row_has_a_case(void **state)
{
	(void)state;
	for (unsigned i = 0; i < command_count; i++) {
		bool found = false;
		for (size_t j = 0; j < sizeof(cases) / sizeof(cases[0]); j++)
			found |= cases[j].pattern &&
				 !strcmp(cases[j].pattern, command_table[i].pattern);
		assert_true(found);
	}
}

static void test_text_is_one_argument(void **state)
{
	(void)state;
	for (unsigned i = 0; i < command_count; i++)
		assert_int_equal(command_words_before_text(&command_table[i]),
			strstr(command_table[i].pattern, "message") ? 3 : -1);
}

static char *usage(const char *word)
{
	char *text, *at[1] = {(char *)word};
	size_t len;
	FILE *out = open_memstream(&text, &len);
	command_print_usage((struct command_words){word ? 1 : 0, at}, out);
	fclose(out);
	return text;
}

static void test_usage(void **state)
{
	(void)state;
	char *all = usage(NULL), *secrets = usage("secrets"), *unknown = usage("shw");
	for (unsigned i = 0; i < command_count; i++)
		assert_non_null(strstr(all, command_table[i].pattern));
	assert_string_equal(unknown, all);
	assert_null(strstr(secrets, "show"));
	assert_non_null(strstr(secrets, "  sluice secrets revoke ID "));
	free(all);
	free(secrets);
	free(unknown);
}

static void test_manual_has_every_row(void **state)
{
	(void)state;
	char *text, line[128];
	size_t len;
	FILE *out = open_memstream(&text, &len);
	cli_print_manual(out);
	fclose(out);
	for (unsigned i = 0; i < command_count; i++) {
		snprintf(line, sizeof(line), ".It Ic %s\n", command_table[i].pattern);
		assert_non_null(strstr(text, line));
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_every_row_has_a_case),
		cmocka_unit_test(test_text_is_one_argument),
		cmocka_unit_test(test_usage),
		cmocka_unit_test(test_manual_has_every_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
