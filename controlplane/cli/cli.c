// The command line: options, then the table's row, then who does it.

#include "controlplane/cli/cli.h"

#include "config/plan.h"
#include "controlplane/admin/admin.h"
#include "controlplane/cli/client.h"
#include "controlplane/cli/command.h"
#include "controlplane/cli/table.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define CONFIG_DEFAULT "/etc/sluice/sluice.yaml"

struct cli {
	const struct cli_program *program;
	const char *config_path;
	bool is_json;
	const char *language, *seed, *svg; // NULL: not said
	struct command_words words;
};

static const char options_text[] = "  -c FILE    the configuration (default " CONFIG_DEFAULT ")\n"
				   "  --json     answer in JSON\n"
				   "  --lang L   the language of a page\n"
				   "  --seed N   of a simulation, in place of its plan's\n"
				   "  --svg FILE where a simulation's plot is written\n"
				   "  --help     this text\n"
				   "  --version  the version\n";

static void print_usage(struct command_words words, FILE *out)
{
	fputs("usage: sluice [-c FILE] [--json] COMMAND\n\n", out);
	command_print_usage(words, out);
	fprintf(out, "\n%s", options_text);
}

static void print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
	putchar('\n');
}

// The configuration, or NULL with all that is wrong said.
static struct config *load(const struct cli *cli, const struct config_machine *machine)
{
	struct config_report report = {0};
	struct config *config = NULL;
	int ret = config_load(cli->config_path, machine, &config, &report);
	config_report_print(&report, stderr);
	if (ret < 0 && report.count == 0)
		fprintf(stderr, "sluice: %s\n", strerror(-ret));
	config_report_fini(&report);
	return config;
}

static int run(const struct cli *cli)
{
	struct config_machine machine;
	cli->program->machine(&machine);
	struct config *config = load(cli, &machine);
	return config ? cli->program->run(cli->config_path, config) : CLI_FAILED;
}

// What the program says of a good configuration, as one text.
static json_t *notes(
	const struct cli *cli, const struct config *config, const struct config_machine *machine)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (out && cli->program->report)
		cli->program->report(config, machine, out);
	if (out)
		fclose(out);
	json_t *json = text ? json_string(text) : json_null();
	free(text);
	return json;
}

static int check_json(const struct cli *cli, const struct config_machine *machine)
{
	struct config_report report = {0};
	struct config *config = NULL;
	int ret = config_load(cli->config_path, machine, &config, &report);
	json_t *all = json_pack("{s:b, s:i, s:o}", "good", ret == 0, "errors", (int)report.count,
		"said", config_report_json(&report));
	if (ret == 0) {
		const uint32_t workers = config_worker_count(config, machine);
		json_object_set_new(all, "bill", config_bill_json(config, &machine->bill, workers));
		json_object_set_new(all, "total_bytes",
			json_integer(
				(json_int_t)config_bill_total(config, &machine->bill, workers)));
		json_object_set_new(all, "notes", notes(cli, config, machine));
	}
	print_json(all);
	json_decref(all);
	config_report_fini(&report);
	config_destroy(config);
	return ret < 0 ? CLI_FAILED : CLI_DONE;
}

static int check(const struct cli *cli)
{
	struct config_machine machine;
	cli->program->machine(&machine);
	if (cli->is_json)
		return check_json(cli, &machine);
	struct config *config = load(cli, &machine);
	if (!config)
		return CLI_FAILED;
	config_bill_print(config, &machine.bill, config_worker_count(config, &machine), stdout);
	if (cli->program->report)
		cli->program->report(config, &machine, stdout);
	config_destroy(config);
	return CLI_DONE;
}

static int preview(const struct cli *cli)
{
	struct config_machine machine;
	cli->program->machine(&machine);
	struct config *config = load(cli, &machine);
	if (!config)
		return CLI_FAILED;
	int ret = cli->program->preview(
		config, cli->words.at[2], cli->words.at[3], cli->language, stdout);
	config_destroy(config);
	return ret < 0 ? CLI_FAILED : CLI_DONE;
}

static int simulate(const struct cli *cli)
{
	int ret =
		cli->program->simulate(cli->words.at[1], cli->seed, cli->svg, cli->is_json, stdout);
	return ret < 0 ? CLI_FAILED : CLI_DONE;
}

static int keys(const struct cli *cli)
{
	const char *form = cli->words.count > 1 ? cli->words.at[1] : "";
	if (strcmp(form, "man") == 0)
		config_print_manual(stdout);
	else if (strcmp(form, "example") == 0)
		config_print_example(stdout);
	else if (strcmp(form, "plan") == 0 && cli->is_json)
		plan_print_json(stdout);
	else if (strcmp(form, "plan") == 0)
		plan_print_keys(stdout);
	else if (cli->is_json)
		config_print_json(stdout);
	else
		config_print_keys(stdout);
	return CLI_DONE;
}

// The words from `first` on as one text.
static json_t *join(struct command_words words, int first)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	for (int i = first; out && i < words.count; i++)
		fprintf(out, "%s%s", i > first ? " " : "", words.at[i]);
	if (out)
		fclose(out);
	json_t *json = text ? json_string(text) : NULL;
	free(text);
	return json;
}

// NULL if a word is no UTF-8.
static json_t *make_request(const struct cli *cli, const struct command *command)
{
	int text = command_words_before_text(command);
	int count = text < 0 ? cli->words.count : text;
	json_t *arguments = json_array();
	bool is_good = true;
	for (int i = 1; i < count; i++)
		is_good &= json_array_append_new(arguments, json_string(cli->words.at[i])) == 0;
	if (text >= 0)
		is_good &= json_array_append_new(arguments, join(cli->words, text)) == 0;
	if (is_good)
		return json_pack("{s:s, s:o}", "command", cli->words.at[0], "arguments", arguments);
	json_decref(arguments);
	return NULL;
}

// The width of the terminal; 0 if the output goes elsewhere.
static unsigned terminal_width(void)
{
	struct winsize size = {0};
	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return 0;
	return size.ws_col;
}

// What a command has for programs; of one that has only words, whether it did it, and those.
static void show_json(const json_t *data, const char *text, bool is_done)
{
	json_t *said = json_pack("{s:b, s:s?}", "done", is_done, "text", text);
	print_json(data ? data : said);
	json_decref(said);
}

// Words are for people; where there are none, they get what is for programs as a table.
static int show(const struct cli *cli, const json_t *answer)
{
	const char *text = json_string_value(json_object_get(answer, "text"));
	const json_t *data = json_object_get(answer, "data");
	bool is_done = json_integer_value(json_object_get(answer, "status")) == 0;

	if (text && (!cli->is_json || !is_done))
		fprintf(is_done ? stdout : stderr, "%s%s", text,
			*text && text[strlen(text) - 1] == '\n' ? "" : "\n");
	if (cli->is_json)
		show_json(data, text, is_done);
	else if (data && !(text && *text))
		table_print(data, terminal_width(), stdout);
	return is_done ? CLI_DONE : CLI_FAILED;
}

// The socket of the running process, or an empty text with what is wrong said.
static void find_socket(const struct cli *cli, char *path, size_t bytes)
{
	struct config_report report = {0};
	char state[CONFIG_STATE_BYTES];
	path[0] = '\0';
	if (config_load_state(cli->config_path, state, &report) == 0)
		snprintf(path, bytes, "%s/%s", state, ADMIN_SOCKET);
	config_report_print(&report, stderr);
	config_report_fini(&report);
}

static int ask(const struct cli *cli, const struct command *command)
{
	char path[CONFIG_STATE_BYTES + 32], error[CLIENT_ERROR_BYTES];
	find_socket(cli, path, sizeof(path));
	if (!path[0])
		return CLI_FAILED;
	json_t *request = make_request(cli, command);
	if (!request) {
		fprintf(stderr, "sluice: what was typed is not text in UTF-8\n");
		return CLI_USAGE;
	}
	json_t *answer = client_ask(path, request, error);
	json_decref(request);
	if (!answer) {
		fprintf(stderr, "%s\n", error);
		return CLI_FAILED;
	}
	int status = show(cli, answer);
	json_decref(answer);
	return status;
}

static int carry_out(const struct cli *cli)
{
	const struct command *command = command_find(cli->words);
	if (!command) {
		print_usage(cli->words, stderr);
		return CLI_USAGE;
	}
	switch (command->kind) {
	case COMMAND_RUN:
		return run(cli);
	case COMMAND_CHECK:
		return check(cli);
	case COMMAND_KEYS:
		return keys(cli);
	case COMMAND_PREVIEW:
		return preview(cli);
	case COMMAND_SIMULATE:
		return simulate(cli);
	case COMMAND_REMOTE:
		return ask(cli, command);
	}
	return CLI_USAGE;
}

// The first argument that looks like a negative number, which getopt would take for an option;
// NULL: none. No number of ours has a sign.
static const char *find_negative(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (argv[i][0] == '-' && argv[i][1] >= '0' && argv[i][1] <= '9')
			return argv[i];
	return NULL;
}

int cli_main(int argc, char **argv, const struct cli_program *program)
{
	static const struct option options[] = {{"json", no_argument, NULL, 'j'},
		{"lang", required_argument, NULL, 'l'}, {"seed", required_argument, NULL, 's'},
		{"svg", required_argument, NULL, 'g'}, {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};
	struct cli cli = {.program = program, .config_path = CONFIG_DEFAULT};
	int option;

	const char *negative = find_negative(argc, argv);
	if (negative) {
		fprintf(stderr, "sluice: %s: want a number without a sign\n\n", negative);
		print_usage((struct command_words){argc - 1, argv + 1}, stderr);
		return CLI_USAGE;
	}
	while ((option = getopt_long(argc, argv, "c:", options, NULL)) >= 0) {
		switch (option) {
		case 'c':
			cli.config_path = optarg;
			break;
		case 'j':
			cli.is_json = true;
			break;
		case 'l':
			cli.language = optarg;
			break;
		case 's':
			cli.seed = optarg;
			break;
		case 'g':
			cli.svg = optarg;
			break;
		case 'h':
			print_usage((struct command_words){0}, stdout);
			return CLI_DONE;
		case 'v':
			puts("sluice " SLUICE_VERSION);
			return CLI_DONE;
		default:
			print_usage((struct command_words){0}, stderr);
			return CLI_USAGE;
		}
	}
	cli.words = (struct command_words){argc - optind, argv + optind};
	return carry_out(&cli);
}
