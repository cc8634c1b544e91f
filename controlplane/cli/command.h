// The table of commands, and how typed words find their row.
#pragma once

#include <stdbool.h>
#include <stdio.h>

// Words as typed, after options were taken out.
struct command_words {
	int count;
	char **at;
};

enum command_kind {
	COMMAND_RUN,
	COMMAND_CHECK,
	COMMAND_KEYS,
	COMMAND_PREVIEW,
	COMMAND_SIMULATE,
	COMMAND_REMOTE, // sent to the running process: the first word, then the others
};

// A form of a command. In `pattern`, small words stand for themselves, `a|b` for one of them,
// capitals for any word, N and ID for digits, and a last word in [] may be missing. `TEXT...` is
// one or more words.
struct command {
	const char *pattern;
	const char *help;
	enum command_kind kind;
};

extern const struct command command_table[];
extern const unsigned command_count;

// The row that the words fit, or NULL.
const struct command *command_find(struct command_words words);

// How many words stand before the text that ends the row's pattern, and which is one however many
// words it was typed in; -1 if the row has none.
int command_words_before_text(const struct command *command);

// The rows that begin with the first of the words, or all if there are none: pattern and help.
void command_print_usage(struct command_words words, FILE *out);
