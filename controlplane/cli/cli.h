// The command line: one table of commands, from which usage, sluice(8) and what may be typed come.
//
// `check`, `keys`, `page` and `simulate` are done here, `run` is the caller's; everything else is
// sent to the running process through admin.socket (admin/admin.h), and its answer shown as a table
// or, with
// --json, as it came.
#pragma once

#include <stdio.h>

#include "config/config.h"

enum cli_exit {
	CLI_DONE = 0,
	CLI_FAILED = 1,
	CLI_USAGE = 2, // wrong usage
};

// What the program brings along.
struct cli_program {
	// Run in the foreground until told to end. Takes the configuration over. Returns the exit
	// status.
	int (*run)(const char *path, struct config *config);
	// What a configuration is measured against, with the program's memory bill.
	void (*machine)(struct config_machine *machine);
	// Write the page of a room in a state (`language` NULL: in the room's first). Returns 0,
	// or -errno with what is wrong said on stderr.
	int (*preview)(const struct config *config, const char *room, const char *state,
		const char *language, FILE *out);
	// Play a plan and write what comes of it; `seed` and `svg` NULL: not said. Returns 0, or
	// -errno with what is wrong said on stderr.
	int (*simulate)(
		const char *path, const char *seed, const char *svg, bool is_json, FILE *out);
	// Write what else `check` says of a good configuration; NULL: nothing.
	void (*report)(
		const struct config *config, const struct config_machine *machine, FILE *out);
};

// Do what the command line says. Returns the exit status.
int cli_main(int argc, char **argv, const struct cli_program *program);

// The page sluice(8), in mdoc.
void cli_print_manual(FILE *out);
