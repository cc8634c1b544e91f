// The calls of process.h.

#include "controlplane/process.h"

#include <rte_eal.h>
#include <rte_errno.h>

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define EAL_MEGABYTES "64" // rings and RCU; untouched memory costs nothing

int process_init_eal(void)
{
	cpu_set_t before;
	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		return -errno;
	unsigned first = 0;
	process_cpus(&first, 1);
	char core[16];
	snprintf(core, sizeof(core), "%u", first);
	char *arguments[] = {"sluice", "--no-huge", "--no-shconf", "--no-pci", "--no-telemetry",
		"--log-level=error", "-m", EAL_MEGABYTES, "-l", core, NULL};
	int count = sizeof(arguments) / sizeof(arguments[0]) - 1;
	if (rte_eal_init(count, arguments) < 0)
		return -rte_errno;
	return sched_setaffinity(0, sizeof(before), &before) < 0 ? -errno : 0;
}

unsigned process_cpus(unsigned *cpus, unsigned max)
{
	cpu_set_t set;
	unsigned count = 0;
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &set))
			continue;
		if (count < max)
			cpus[count] = cpu;
		count++;
	}
	return count;
}

uint64_t process_raise_files(uint64_t wanted)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 0;
	if (limit.rlim_max < wanted) {
		struct rlimit higher = {wanted, wanted}; // root may raise the hard limit too
		if (setrlimit(RLIMIT_NOFILE, &higher) == 0)
			return wanted;
	}
	limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

int process_user(const char *name, uid_t *uid, gid_t *gid)
{
	struct passwd *entry = getpwnam(name);
	if (!entry)
		return -ENOENT;
	*uid = entry->pw_uid;
	*gid = entry->pw_gid;
	return 0;
}

int process_drop(uid_t uid, gid_t gid)
{
	if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0)
		return -errno;
	if (uid != 0 && (setuid(0) == 0 || getuid() == 0))
		return -EPERM; // it did not stick
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

int process_hide_memory(void)
{
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
