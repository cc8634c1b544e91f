// crowd: an open-loop crowd of visitors that behave like people. See bench/README.md.
//
// Every process runs its share on one thread; the first one adds up what the others hand it through
// files. SIGINT and SIGTERM end the run, and it reports what it has.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/crowd/crowd.h"
#include "bench/crowd/judge.h"
#include "bench/crowd/report.h"

#define START_AFTER_US 200000 // all processes are there by then
#define SPARE_FILES 64u

static atomic_bool stop;
static struct tally tally; // of this process; too large for a stack

static void on_signal(int number)
{
	(void)number;
	atomic_store(&stop, true);
}

static void watch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

// A descriptor for each member. Returns whether there are enough.
static bool raise_files(const struct plan *plan)
{
	struct rlimit limit;
	const uint64_t visitors = plan->visitors / plan->processes + 1;
	const uint64_t wanted = visitors * (plan->tabs > 0 ? 2 : 1) + SPARE_FILES;
	getrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_max < wanted)
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){wanted, wanted}); // root may
	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur >= wanted)
		return true;
	fprintf(stderr, "crowd: %llu descriptors are too few for %llu members; use --processes\n",
		(unsigned long long)limit.rlim_cur, (unsigned long long)wanted);
	return false;
}

static int run_share(const struct plan *plan, uint32_t share, int64_t start_us)
{
	const int ret = crowd_run(plan, share, start_us, &stop, &tally);
	if (ret < 0)
		fprintf(stderr, "crowd: %s\n", strerror(-ret));
	return ret;
}

// A process for one share. It ends when its parent does.
static pid_t begin_share(const struct plan *plan, uint32_t share, int64_t start_us, FILE *file)
{
	const pid_t parent = getpid();
	const pid_t pid = fork();
	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1);
	const bool ok = run_share(plan, share, start_us) == 0 && tally_write(&tally, file);
	_exit(ok ? 0 : 1);
}

// Wait for the other shares and add them up. Returns whether all are in.
static bool gather(const pid_t *pids, FILE *const *files, uint32_t count)
{
	bool all = true;
	for (uint32_t i = 0; i < count; i++) {
		int status = 1;
		if (atomic_load(&stop))
			kill(pids[i], SIGTERM);
		while (waitpid(pids[i], &status, 0) < 0 && errno == EINTR)
			kill(pids[i], SIGTERM);
		all &= status == 0 && tally_add_file(&tally, files[i]);
		fclose(files[i]);
	}
	return all;
}

static bool run(const struct plan *plan)
{
	pid_t pids[PLAN_PROCESSES_MAX];
	FILE *files[PLAN_PROCESSES_MAX];
	uint32_t begun = 0;
	const int64_t start_us = crowd_clock_us() + START_AFTER_US;
	bool ok = true;
	for (uint32_t share = 1; share < plan->processes && ok; share++) {
		files[begun] = tmpfile();
		pids[begun] = files[begun] ? begin_share(plan, share, start_us, files[begun]) : -1;
		ok = pids[begun] > 0;
		if (ok)
			begun++;
		else
			perror("crowd: process");
	}
	ok = ok && run_share(plan, 0, start_us) == 0;
	if (!ok)
		atomic_store(&stop, true);
	return gather(pids, files, begun) && ok;
}

int main(int argc, char **argv)
{
	struct plan plan;
	const enum plan_result read = plan_read(argc, argv, &plan);
	if (read != PLAN_OK)
		return read == PLAN_HELP ? 0 : 2;
	if (!raise_files(&plan))
		return 1;
	watch_signals();
	const int64_t began_us = crowd_clock_us();
	if (!run(&plan))
		return 1;
	const double ran_s = (double)(crowd_clock_us() - began_us) / 1e6;
	struct judge_finding finding;
	const struct judge_limits limits = {plan.rate, plan.burst, plan.capacity};
	struct report_shop shop;
	report_ask_shop(&plan.shop, &shop);
	if (!judge_run(&tally, &limits, &finding)) {
		fprintf(stderr, "crowd: no memory to judge the run\n");
		return 1;
	}
	report_print(&plan, &tally, &finding, &shop, ran_s, stdout);
	tally_fini(&tally);
	return 0;
}
