// sluice: a virtual waiting room as an edge appliance. The command line does the rest.

#include "controlplane/bill.h"
#include "controlplane/cli/cli.h"
#include "controlplane/ports.h"
#include "controlplane/preview.h"
#include "controlplane/run.h"
#include "controlplane/simulate/simulate.h"

int main(int argc, char **argv)
{
	static const struct cli_program program = {.run = run,
		.machine = bill_machine,
		.preview = preview,
		.simulate = simulate,
		.report = ports_print};
	return cli_main(argc, argv, &program);
}
