// Writes a manual page at build time: sluice.8 or sluice.yaml.5 to stdout.

#include "controlplane/cli/cli.h"

#include <string.h>

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "sluice.8") == 0)
		cli_print_manual(stdout);
	else if (argc == 2 && strcmp(argv[1], "sluice.yaml.5") == 0)
		config_print_manual(stdout);
	else
		return CLI_USAGE;
	return CLI_DONE;
}
