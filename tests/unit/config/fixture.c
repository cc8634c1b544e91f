// What the tests of the configuration share.

#include "tests/unit/config/fixture.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_BYTES 4096u

static bool has_user(const char *name)
{
	return strcmp(name, "sluice") == 0;
}

struct config_machine fixture_machine(void)
{
	struct config_machine machine = {
		.descriptors = 20000, .memory_bytes = 1u << 30, .has_user = has_user};
	for (int core = 0; core < 4; core++)
		CPU_SET(core, &machine.cores);
	return machine;
}

int fixture_read(const char *text, const struct config_machine *machine, struct config **config,
	struct config_report *report)
{
	size_t len = strlen(text), bytes = (len + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
	char *map = mmap(NULL, bytes + PAGE_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert(map != MAP_FAILED);
	assert(mprotect(map + bytes, PAGE_BYTES, PROT_NONE) == 0);
	memcpy(map + bytes - len, text, len);
	int ret = config_read("t.yaml", map + bytes - len, len, machine, config, report);
	munmap(map, bytes + PAGE_BYTES);
	return ret;
}

char *fixture_errors(const char *text, const struct config_machine *machine)
{
	struct config_report report = {0};
	struct config *config = NULL;
	char *errors;
	size_t len;
	FILE *out = open_memstream(&errors, &len);

	int ret = fixture_read(text, machine, &config, &report);
	assert((ret == 0) == (report.count == 0) && (ret == 0) == (config != NULL));
	config_report_print(&report, out);
	fclose(out);
	config_report_fini(&report);
	config_destroy(config);
	return errors;
}

struct config *fixture_config(const char *text)
{
	struct config_machine machine = fixture_machine();
	struct config_report report = {0};
	struct config *config = NULL;
	if (fixture_read(text, &machine, &config, &report) < 0)
		config_report_print(&report, stderr);
	assert(report.count == 0);
	return config;
}
