// The whole command line, against a server on another thread: what is printed where, and the exit
// status.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controlplane/admin/admin.h"
#include "controlplane/cli/cli.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], config_path[96], socket_path[96];
static struct event_base *base;
static struct admin *admin;
static pthread_t thread;
static unsigned runs;

static int show(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context;
	if (count == 2) {
		fprintf(text, "there is no room %s", arguments[1]);
		return 1;
	}
	*data = json_pack("[{s:s, s:i}]", "room", "derby", "waiting", 12);
	return 0;
}

static int room(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)data;
	for (unsigned i = 0; i < count; i++)
		fprintf(text, "<%s>", arguments[i]);
	return 0;
}

static int drain(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)count, (void)arguments, (void)data, (void)text;
	return 0;
}

static const struct admin_command commands[] = {{.name = "show", .function = show},
	{.name = "room", .function = room}, {.name = "drain", .function = drain}};

static int run(const char *path, struct config *config)
{
	assert_string_equal(path, config_path);
	assert_string_equal(config->sites.at[0].name, "shop");
	runs++;
	config_destroy(config);
	return 7;
}

static const struct config_bill_row rows[] = {{"connections", CONFIG_PER_CONNECTION, 1, 256}};

static void machine(struct config_machine *m)
{
	config_machine_read(m);
	m->bill = (struct config_bill){.row_count = 1, .rows = rows};
}

static void report(const struct config *config, const struct config_machine *m, FILE *out)
{
	(void)m;
	fprintf(out, "more of %lu connections\n", config->connections);
}

static int stop_pipe[2];
static struct event *stop;

static void on_stop(evutil_socket_t fd, short what, void *context)
{
	(void)fd, (void)what;
	event_base_loopbreak(context);
}

static void *serve(void *context)
{
	event_base_dispatch(context);
	return NULL;
}

static void write_config(const char *more)
{
	FILE *file = fopen(config_path, "w");
	fprintf(file,
		"state: here\nconnections: 100\n%slisten: [{address: '127.0.0.1:8080'}]\n"
		"sites: [{name: shop, hosts: [a], origin: {servers: ['b:1']}}]\n",
		more);
	fclose(file);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/test_cli.%d", getpid());
	snprintf(config_path, sizeof(config_path), "%s/sluice.yaml", folder);
	snprintf(socket_path, sizeof(socket_path), "%s/here/%s", folder, ADMIN_SOCKET);
	char below[96];
	snprintf(below, sizeof(below), "%s/here", folder);
	if (mkdir(folder, 0700) < 0 || mkdir(below, 0700) < 0)
		return -1;
	write_config("");
	base = event_base_new();
	if (admin_create(base, socket_path, commands, 3, NULL, &admin) < 0)
		return -1;
	if (pipe(stop_pipe) < 0 || !(stop = event_new(base, stop_pipe[0], EV_READ, on_stop, base)))
		return -1;
	event_add(stop, NULL);
	return pthread_create(&thread, NULL, serve, base);
}

static void stop_server(void)
{
	if (!admin)
		return;
	assert_int_equal(write(stop_pipe[1], "", 1), 1);
	pthread_join(thread, NULL);
	event_free(stop);
	close(stop_pipe[0]);
	close(stop_pipe[1]);
	admin_destroy(admin);
	event_base_free(base);
	admin = NULL;
}

static int tear_down(void **state)
{
	(void)state;
	char below[96];
	stop_server();
	snprintf(below, sizeof(below), "%s/here", folder);
	unlink(config_path);
	rmdir(below);
	return rmdir(folder);
}

// What a command line printed and returned.
static struct {
	int status;
	char out[65536], err[4096];
} said;

static void read_back(int fd, char *text, size_t bytes)
{
	ssize_t len = pread(fd, text, bytes - 1, 0);
	text[len < 0 ? 0 : len] = '\0';
	close(fd);
}

static int preview(const struct config *config, const char *name, const char *state,
	const char *language, FILE *out)
{
	(void)config;
	fprintf(out, "%s %s %s\n", name, state, language ? language : "-");
	return strcmp(name, "none") == 0 ? -EINVAL : 0;
}

static int simulate(const char *path, const char *seed, const char *svg, bool is_json, FILE *out)
{
	fprintf(out, "%s %s %s%s\n", path, seed ? seed : "-", svg ? svg : "-",
		is_json ? " json" : "");
	return strcmp(path, "none") == 0 ? -EINVAL : 0;
}

// `line` is split at '|'; "CONFIG" stands for the path of the configuration.
static void type(const char *line)
{
	static const struct cli_program program = {.run = run,
		.machine = machine,
		.preview = preview,
		.simulate = simulate,
		.report = report};
	char *argv[16] = {"sluice"}, *text = strdup(line), *rest = text;
	int argc = 1, out = memfd_create("out", 0), err = memfd_create("err", 0);
	while (rest && argc < 15) {
		argv[argc] = strsep(&rest, "|");
		if (strcmp(argv[argc], "CONFIG") == 0)
			argv[argc] = config_path;
		argc++;
	}
	fflush(NULL);
	int stdout_before = dup(STDOUT_FILENO), stderr_before = dup(STDERR_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	optind = 0; // getopt begins anew
	said.status = cli_main(argc, argv, &program);
	fflush(NULL);
	dup2(stdout_before, STDOUT_FILENO);
	dup2(stderr_before, STDERR_FILENO);
	close(stdout_before);
	close(stderr_before);
	read_back(out, said.out, sizeof(said.out));
	read_back(err, said.err, sizeof(said.err));
	free(text);
}

static void test_data_is_a_table(void **state)
{
	(void)state;
	type("-c|CONFIG|show|rooms");
	assert_int_equal(said.status, CLI_DONE);
	assert_string_equal(said.out, "room   waiting\nderby       12\n");
	assert_string_equal(said.err, "");
}

static void test_or_json(void **state)
{
	(void)state;
	type("show|rooms|--json|-c|CONFIG");
	assert_int_equal(said.status, CLI_DONE);
	json_t *data = json_loads(said.out, 0, NULL);
	assert_int_equal(
		json_integer_value(json_object_get(json_array_get(data, 0), "waiting")), 12);
	json_decref(data);
}

static void test_failure_is_said_on_stderr(void **state)
{
	(void)state;
	type("-c|CONFIG|show|room|other");
	assert_int_equal(said.status, CLI_FAILED);
	assert_string_equal(said.out, "");
	assert_string_equal(said.err, "there is no room other\n");
}

static void test_arguments_arrive(void **state)
{
	(void)state;
	type("-c|CONFIG|room|derby|message|back|at ten|\"ö\"");
	assert_int_equal(said.status, CLI_DONE);
	assert_string_equal(said.out, "<derby><message><back at ten \"ö\">\n");
	type("-c|CONFIG|room|derby|message|");
	assert_string_equal(said.out, "<derby><message><>\n");
	type("-c|CONFIG|room|derby|release|50");
	assert_string_equal(said.out, "<derby><release><50>\n");
	type("-c|CONFIG|drain");
	assert_int_equal(said.status, CLI_DONE);
	assert_string_equal(said.out, "");
}

static void test_what_the_process_does_not_know(void **state)
{
	(void)state;
	type("-c|CONFIG|secrets|rotate");
	assert_int_equal(said.status, CLI_FAILED);
	assert_string_equal(said.err, "no such command in this version\n");
}

static void test_a_simulation(void **state)
{
	(void)state;
	type("simulate|plan.yaml");
	assert_int_equal(said.status, CLI_DONE);
	assert_string_equal(said.out, "plan.yaml - -\n");
	type("simulate|plan.yaml|--seed|7|--svg|plot.svg|--json");
	assert_string_equal(said.out, "plan.yaml 7 plot.svg json\n");
	type("simulate|none");
	assert_int_equal(said.status, CLI_FAILED);
	type("simulate");
	assert_int_equal(said.status, CLI_USAGE);
	type("keys|plan");
	assert_int_equal(said.status, CLI_DONE);
	assert_non_null(strstr(said.out, "\nrooms[].arrivals[].people "));
}

static void test_not_text(void **state)
{
	(void)state;
	type("-c|CONFIG|ticket|\xff");
	assert_int_equal(said.status, CLI_USAGE);
	assert_string_equal(said.err, "sluice: what was typed is not text in UTF-8\n");
	type("-c|CONFIG|room|derby|message|\xff");
	assert_int_equal(said.status, CLI_USAGE);
}

// Whatever else is wrong in the file, the process is found by it.
static void test_a_broken_configuration_does_not_hide_the_process(void **state)
{
	(void)state;
	write_config("conections: many\n");
	type("-c|CONFIG|show|rooms");
	assert_int_equal(said.status, CLI_DONE);
	FILE *file = fopen(config_path, "w");
	fputs("listen: []\nstate: [a]\n", file);
	fclose(file);
	type("-c|CONFIG|show|rooms");
	assert_int_equal(said.status, CLI_FAILED);
	assert_non_null(strstr(said.err, "sluice.yaml:2:1: state: is a list; allowed: "));
}

static void test_no_process(void **state)
{
	(void)state;
	char expected[256];
	snprintf(expected, sizeof(expected), "sluice is not running: nobody listens at %s\n",
		socket_path);
	stop_server();
	type("-c|CONFIG|show|rooms");
	assert_int_equal(said.status, CLI_FAILED);
	assert_string_equal(said.err, expected);
}

static void test_no_configuration(void **state)
{
	(void)state;
	type("-c|/nonexistent|show|rooms");
	assert_int_equal(said.status, CLI_FAILED);
	assert_string_equal(
		said.err, "/nonexistent:1:1: cannot be read: No such file or directory\n");
	type("-c|/nonexistent|check");
	assert_int_equal(said.status, CLI_FAILED);
	assert_string_equal(
		said.err, "/nonexistent:1:1: cannot be read: No such file or directory\n");
}

static void test_run(void **state)
{
	(void)state;
	runs = 0;
	type("-c|CONFIG|run");
	assert_int_equal(said.status, 7);
	assert_int_equal(runs, 1);
	write_config("drain: 5\n");
	type("-c|CONFIG|run");
	assert_int_equal(said.status, CLI_FAILED);
	assert_int_equal(runs, 1);
}

static void test_check(void **state)
{
	(void)state;
	type("-c|CONFIG|check");
	assert_int_equal(said.status, CLI_DONE);
	assert_string_equal(said.err, "");
	assert_non_null(strstr(said.out,
		"connections                           100          256            25600\n"));
	assert_non_null(strstr(said.out, "\nmore of 100 connections\n"));
	write_config("drain: 5\nlog: loud\n");
	type("-c|CONFIG|check");
	assert_int_equal(said.status, CLI_FAILED);
	assert_string_equal(said.out, "");
	assert_non_null(strstr(
		said.err, "sluice.yaml:3:8: drain: '5' has no unit (s, m, h, d); allowed: "));
	assert_non_null(strstr(said.err, "sluice.yaml:4:6: log: 'loud' is not one of"));
}

static void test_keys(void **state)
{
	(void)state;
	type("keys");
	assert_int_equal(said.status, CLI_DONE);
	assert_non_null(strstr(said.out, "\nsites[].rooms[].capacity "));
	type("keys|--json");
	json_t *keys = json_loads(said.out, 0, NULL);
	assert_true(json_array_size(keys) > 50);
	json_decref(keys);
	type("keys|man");
	assert_non_null(strstr(said.out, ".Dt SLUICE.YAML 5\n"));
	type("keys|example");
	assert_non_null(strstr(said.out, "\nsites:\n"));
}

static void test_usage(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		int status;
		const char *out, *err; // somewhere in there
	} usages[] = {
		{"", CLI_USAGE, "", "usage: sluice "},
		{"shw", CLI_USAGE, "", "sluice show rooms"},
		{"room|derby|jump", CLI_USAGE, "", "sluice room NAME pause"},
		{"show|rooms|--yaml", CLI_USAGE, "", "unrecognized option '--yaml'"},
		{"room|derby|release|-1", CLI_USAGE, "",
			"sluice: -1: want a number without a sign"},
		{"room|derby|release|-1", CLI_USAGE, "", "sluice room NAME release N"},
		{"-c", CLI_USAGE, "", "option requires an argument"},
		{"--help", CLI_DONE, "sluice show rooms", ""},
		{"--version", CLI_DONE, "sluice " SLUICE_VERSION "\n", ""},
	};
	for (size_t i = 0; i < sizeof(usages) / sizeof(usages[0]); i++) {
		type(usages[i].line);
		assert_int_equal(said.status, usages[i].status);
		assert_non_null(strstr(said.out, usages[i].out));
		assert_non_null(strstr(said.err, usages[i].err));
	}
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		STORY(test_data_is_a_table),
		STORY(test_or_json),
		STORY(test_failure_is_said_on_stderr),
		STORY(test_arguments_arrive),
		STORY(test_what_the_process_does_not_know),
		STORY(test_not_text),
		STORY(test_a_broken_configuration_does_not_hide_the_process),
		STORY(test_no_process),
		STORY(test_no_configuration),
		STORY(test_run),
		STORY(test_check),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_a_simulation),
		cmocka_unit_test(test_usage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
