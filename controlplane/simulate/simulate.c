// Plan in, report and plot out.

#include "controlplane/simulate/simulate.h"

#include "controlplane/simulate/plot.h"
#include "controlplane/simulate/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEED_MAX UINT32_MAX // as in plan.def

static int load(const char *path, struct plan **plan)
{
	struct config_report report = {0};
	const int ret = plan_load(path, plan, &report);
	config_report_print(&report, stderr);
	if (ret < 0 && report.count == 0)
		fprintf(stderr, "sluice: %s\n", strerror(-ret));
	config_report_fini(&report);
	return ret;
}

static int read_seed(const char *text, uint64_t *seed)
{
	char *end;
	if (!text)
		return 0;
	errno = 0;
	const unsigned long long number = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || number < 1 || number > SEED_MAX) {
		fprintf(stderr, "sluice: --seed: '%s' is not a number from 1 to %u\n", text,
			SEED_MAX);
		return -EINVAL;
	}
	*seed = number;
	return 0;
}

static int write_plot(const struct result *r, const struct play *p, const char *path)
{
	if (!path)
		return 0;
	FILE *out = fopen(path, "w");
	int ret = out ? plot_write(r, p, out) : -errno;
	if (out && fclose(out) != 0 && ret == 0)
		ret = -errno;
	if (ret < 0)
		fprintf(stderr, "sluice: %s: %s\n", path, strerror(-ret));
	return ret;
}

static int play(const struct plan *plan, uint64_t seed, const char *svg, bool is_json, FILE *out)
{
	struct play *p = calloc(1, sizeof(*p));
	struct result *r = malloc(sizeof(*r));
	struct sizes sizes;
	int ret = -ENOMEM;
	if (p && r)
		ret = play_run(p, plan, seed);
	if (ret == 0)
		ret = sizes_measure(plan, &sizes);
	if (ret == 0)
		ret = result_sum(r, p, &sizes, seed);
	if (ret == 0)
		ret = is_json ? report_json(r, p, out) : report_table(r, p, out);
	if (ret < 0)
		fprintf(stderr, "sluice: %s\n", strerror(-ret));
	else
		ret = write_plot(r, p, svg);
	if (p)
		play_fini(p);
	free(p);
	free(r);
	return ret;
}

int simulate(const char *path, const char *seed, const char *svg, bool is_json, FILE *out)
{
	struct plan *plan;
	int ret = load(path, &plan);
	if (ret < 0)
		return ret;
	uint64_t number = plan->seed;
	ret = read_seed(seed, &number);
	if (ret == 0)
		ret = play(plan, number, svg, is_json, out);
	plan_destroy(plan);
	return ret;
}
