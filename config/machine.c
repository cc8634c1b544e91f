// The machine that this process runs on, as far as rules measure a configuration against it.

#include "config/config.h"

#include <dirent.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define HUGEPAGES "/sys/kernel/mm/hugepages"
#define WORKERS_MAX 64u // as keys.def says of `workers`

static bool has_user(const char *name)
{
	return getpwnam(name) != NULL;
}

// The number in a file of a kind of hugepages; 0 if there is none.
static uint64_t read_pages(const char *kind, const char *name)
{
	char path[256];
	uint64_t number = 0;
	snprintf(path, sizeof(path), HUGEPAGES "/%s/%s", kind, name);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	if (fscanf(file, "%lu", &number) != 1)
		number = 0;
	fclose(file);
	return number;
}

// Folders are named hugepages-2048kB.
static void read_hugepages(struct config_machine *machine)
{
	DIR *kinds = opendir(HUGEPAGES);
	for (struct dirent *kind; kinds && (kind = readdir(kinds));) {
		uint64_t kilobytes = 0;
		if (sscanf(kind->d_name, "hugepages-%lukB", &kilobytes) != 1)
			continue;
		uint64_t bytes = kilobytes << 10;
		uint64_t count = read_pages(kind->d_name, "nr_hugepages");
		if (count * bytes < machine->hugepages * machine->hugepage_bytes)
			continue;
		machine->hugepages = count;
		machine->hugepages_free = read_pages(kind->d_name, "free_hugepages");
		machine->hugepage_bytes = bytes;
	}
	if (kinds)
		closedir(kinds);
}

void config_machine_read(struct config_machine *machine)
{
	struct rlimit limit = {0};
	*machine = (struct config_machine){.has_user = has_user};
	getrlimit(RLIMIT_NOFILE, &limit);
	machine->descriptors = limit.rlim_max;
	machine->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
	read_hugepages(machine);
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
