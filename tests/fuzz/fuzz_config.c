// Any bytes as a configuration: read or refused, never a crash, and every refusal says where.

#include "config/config.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool has_user(const char *name)
{
	return strcmp(name, "sluice") == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct config_bill_row rows[] = {{"all", CONFIG_PER_BUFFER_BYTE, 1, 1},
		{"heads", CONFIG_PER_HEAD_BYTE, 1, 1}, {"rooms", CONFIG_PER_SESSION, 1, 64}};
	struct config_machine machine = {.descriptors = 1u << 20,
		.memory_bytes = 1u << 30,
		.has_user = has_user,
		.bill = {.row_count = 3, .rows = rows}};
	struct config_report report = {0};
	struct config *config = NULL;
	CPU_SET(0, &machine.cores);

	int ret = config_read("f", (const char *)data, len, &machine, &config, &report);
	assert((ret == 0) == (config != NULL) && (ret == 0) == (report.count == 0));
	for (uint32_t i = 0; i < report.listed; i++) {
		const struct config_error *error = &report.errors[i];
		assert(strncmp(error->text, "f:", 2) == 0 && error->line > 0 && error->column > 0);
		assert(!strchr(error->text, '\n'));
	}
	config_report_fini(&report);
	config_destroy(config);
	return 0;
}
