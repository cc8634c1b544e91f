// The machine that this process runs on, as far as rules measure a configuration against it.

#include "config/config.h"

#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#define WORKERS_MAX 64u // as keys.def says of `workers`

static bool has_user(const char *name)
{
	return getpwnam(name) != NULL;
}

void config_machine_read(struct config_machine *machine)
{
	struct rlimit limit = {0};
	*machine = (struct config_machine){.has_user = has_user};
	getrlimit(RLIMIT_NOFILE, &limit);
	machine->descriptors = limit.rlim_max;
	machine->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	CPU_ZERO(&machine->cores);
	sched_getaffinity(0, sizeof(machine->cores), &machine->cores);
}

uint32_t config_worker_count(const struct config *config, const struct config_machine *machine)
{
	uint32_t cores = CPU_COUNT(&machine->cores);
	if (config->workers.count > 0)
		return config->workers.count;
	if (cores <= 2)
		return 1;
	return cores - 1 < WORKERS_MAX ? cores - 1 : WORKERS_MAX;
}
