// The page sluice(8), in mdoc, from the table of commands.

#include "controlplane/cli/cli.h"
#include "controlplane/cli/command.h"

static const char introduction[] =
	".Dd January 1, 2026\n"
	".Dt SLUICE 8\n"
	".Os sluice " SLUICE_VERSION "\n"
	".Sh NAME\n"
	".Nm sluice\n"
	".Nd virtual waiting room\n"
	".Sh SYNOPSIS\n"
	".Nm\n"
	".Op Fl c Ar file\n"
	".Op Fl -json\n"
	".Ar command\n"
	".Sh DESCRIPTION\n"
	".Nm\n"
	"stands in front of web servers and lets in only as many people as they can hold;\n"
	"the others wait in a fair line.\n"
	".Pp\n"
	".Bl -tag -width Ds\n"
	".It Fl c Ar file\n"
	"the configuration, by default\n"
	".Pa /etc/sluice/sluice.yaml ;\n"
	"see\n"
	".Xr sluice.yaml 5\n"
	".It Fl -json\n"
	"show lists as JSON\n"
	".It Fl -lang Ar language\n"
	"of a page that is previewed\n"
	".It Fl -seed Ar number\n"
	"of a simulation, in place of its plan's\n"
	".It Fl -svg Ar file\n"
	"where a simulation's plot is written\n"
	".It Fl -help\n"
	"list the commands\n"
	".It Fl -version\n"
	"tell the version\n"
	".El\n"
	".Sh COMMANDS\n"
	"All but run, check, keys, page and simulate are carried out by the running process, "
	"which is\n"
	"found by the socket in its state folder.\n"
	".Bl -tag -width Ds\n";

static const char conclusion[] =
	".El\n"
	".Sh SIGNALS\n"
	"SIGTERM and SIGINT drain and end the process, SIGHUP reloads its configuration.\n"
	".Sh FILES\n"
	".Bl -tag -width Ds\n"
	".It Pa /etc/sluice/sluice.yaml\n"
	"the configuration\n"
	".It Pa /var/lib/sluice\n"
	"all that lasts, and admin.socket\n"
	".El\n"
	".Sh EXIT STATUS\n"
	"0 when done, 1 when it failed, 2 for wrong usage.\n"
	".Sh SEE ALSO\n"
	".Xr sluice.yaml 5\n";

void cli_print_manual(FILE *out)
{
	fputs(introduction, out);
	for (unsigned i = 0; i < command_count; i++)
		fprintf(out, ".It Ic %s\n%s\n", command_table[i].pattern, command_table[i].help);
	fputs(conclusion, out);
}
