// The table of commands. A new one is a line here, and a handler in the running process.

#include "controlplane/cli/command.h"

#include <string.h>

const struct command command_table[] = {
	{"run", "Run in the foreground; the log goes to stderr.", COMMAND_RUN},
	{"check", "Say all that is wrong with the configuration, or what it needs of memory.",
		COMMAND_CHECK},
	{"reload", "Take the changed configuration into use, or say all that is wrong with it.",
		COMMAND_REMOTE},
	{"keys [man|example|plan]",
		"List the configuration keys; as a manual page; as an example; those of a plan.",
		COMMAND_KEYS},
	{"page preview ROOM STATE", "Write a page as visitors would see it, in HTML (--lang).",
		COMMAND_PREVIEW},
	{"simulate PLAN",
		"Play an event before it happens: waits, load, appliances (--svg, --seed).",
		COMMAND_SIMULATE},
	{"show rooms", "Every room: who waits, who is inside, how many come in.", COMMAND_REMOTE},
	{"show room NAME", "All about one room.", COMMAND_REMOTE},
	{"show pools", "What rooms share, and who is inside.", COMMAND_REMOTE},
	{"show workers", "What each worker does.", COMMAND_REMOTE},
	{"show counters", "Everything that is counted, drops and refusals by name.",
		COMMAND_REMOTE},
	{"show origin", "The servers behind, and how they do.", COMMAND_REMOTE},
	{"show cluster", "The appliances, and whether the store keeps up.", COMMAND_REMOTE},
	{"room NAME open", "Open the room's doors.", COMMAND_REMOTE},
	{"room NAME pause", "Call and admit nobody; places are kept.", COMMAND_REMOTE},
	{"room NAME resume", "Go on after a pause.", COMMAND_REMOTE},
	{"room NAME close", "End the event: nobody comes in any more.", COMMAND_REMOTE},
	{"room NAME release N", "Call N more people now.", COMMAND_REMOTE},
	{"room NAME message TEXT...", "Show a message to all who wait; \"\" takes it away.",
		COMMAND_REMOTE},
	{"room NAME mode auto|always|off|reject|peak", "Change who waits, until the next command.",
		COMMAND_REMOTE},
	{"lane link LANE [TIME]", "A link into ROOM/LANE, good until that time if one is given.",
		COMMAND_REMOTE},
	{"lane code LANE CODE [again]", "How often a code was used; again: give one use back.",
		COMMAND_REMOTE},
	{"room NAME salt HEX", "Name the public salt of the room's next draw.", COMMAND_REMOTE},
	{"draw verify TICKET...", "Recompute the places of tickets that were drawn.",
		COMMAND_REMOTE},
	{"secrets list", "The secrets that sign tickets and passes, by number.", COMMAND_REMOTE},
	{"secrets rotate", "Sign with a new secret; the old one still holds for ticket_ttl.",
		COMMAND_REMOTE},
	{"secrets revoke ID", "End a secret, and every ticket and pass it signed, at once.",
		COMMAND_REMOTE},
	{"ticket TOKEN", "Take a ticket or pass apart: is it good, and where does it stand?",
		COMMAND_REMOTE},
	{"drain", "Take no newcomers, give all back, and leave.", COMMAND_REMOTE},
};
const unsigned command_count = sizeof(command_table) / sizeof(command_table[0]);

// Whether `word` is one of the `len` bytes of alternatives "a|b|c".
static bool is_one_of(const char *alternatives, size_t len, const char *word)
{
	size_t word_len = strlen(word);
	for (size_t at = 0, end; at < len; at = end + 1) {
		for (end = at; end < len && alternatives[end] != '|';)
			end++;
		if (end - at == word_len && memcmp(alternatives + at, word, word_len) == 0)
			return true;
	}
	return false;
}

// Whether one word fits the `len` bytes of a pattern's word.
static bool word_fits(const char *pattern, size_t len, const char *word)
{
	bool is_number = (len == 1 && pattern[0] == 'N') || (len == 2 && !memcmp(pattern, "ID", 2));
	if (is_number)
		return *word && word[strspn(word, "0123456789")] == '\0';
	if (*pattern >= 'A' && *pattern <= 'Z')
		return *word || memcmp(pattern, "TEXT", 4) == 0;
	return is_one_of(pattern, len, word);
}

static bool command_fits(const struct command *command, struct command_words words)
{
	const char *at = command->pattern;
	int index = 0;
	for (size_t len; *at; at += len, at += *at == ' ', index++) {
		len = strcspn(at, " ");
		if (*at == '[' && index == words.count)
			return true;
		if (index == words.count)
			return false;
		if (*at == '[' ? !word_fits(at + 1, len - 2, words.at[index])
			       : !word_fits(at, len, words.at[index]))
			return false;
		if (len > 3 && memcmp(at + len - 3, "...", 3) == 0)
			return true;
	}
	return index == words.count;
}

const struct command *command_find(struct command_words words)
{
	for (const struct command *command = command_table; command < command_table + command_count;
		command++)
		if (command_fits(command, words))
			return command;
	return NULL;
}

int command_words_before_text(const struct command *command)
{
	const char *text = strstr(command->pattern, "TEXT...");
	int count = 0;
	for (const char *c = command->pattern; text && c < text; c++)
		count += *c == ' ';
	return text ? count : -1;
}

static bool begins_with(const struct command *command, const char *word)
{
	size_t len = strcspn(command->pattern, " ");
	return strlen(word) == len && memcmp(command->pattern, word, len) == 0;
}

void command_print_usage(struct command_words words, FILE *out)
{
	bool is_known = false;
	for (unsigned i = 0; words.count > 0 && i < command_count; i++)
		is_known |= begins_with(&command_table[i], words.at[0]);
	for (unsigned i = 0; i < command_count; i++)
		if (!is_known || begins_with(&command_table[i], words.at[0]))
			fprintf(out, "  sluice %-38s %s\n", command_table[i].pattern,
				command_table[i].help);
}
