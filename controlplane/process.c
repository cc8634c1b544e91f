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

#define EAL_BYTES (UINT64_C(64) << 20) // rings and RCU
#define ARGUMENTS_MAX (16 + 2 * PROCESS_PCI_MAX)

uint64_t process_eal_bytes(const struct process_eal *eal)
{
	return EAL_BYTES + eal->bytes + eal->bytes / 8; // pools do not fill every page
}

static int start_eal(const struct process_eal *eal, unsigned cpu)
{
	char core[16], megabytes[32];
	const char *arguments[ARGUMENTS_MAX] = {
		"sluice", "--no-telemetry", "--log-level=error", "-m", megabytes, "-l", core};
	int count = 7;
	snprintf(core, sizeof(core), "%u", cpu);
	snprintf(megabytes, sizeof(megabytes), "%lu", process_eal_bytes(eal) >> 20);
	if (eal->has_hugepages) {
		arguments[count++] = "--in-memory";
	} else {
		arguments[count++] = "--no-huge";
		arguments[count++] = "--no-shconf";
	}
	if (eal->pci_count == 0)
		arguments[count++] = "--no-pci";
	for (unsigned i = 0; i < eal->pci_count; i++) {
		arguments[count++] = "-a";
		arguments[count++] = eal->pci[i];
	}
	return rte_eal_init(count, (char **)(uintptr_t)arguments) < 0 ? -rte_errno : 0;
}

int process_init_eal(const struct process_eal *eal)
{
	cpu_set_t before;
	if (sched_getaffinity(0, sizeof(before), &before) < 0)
		return -errno;
	unsigned first = 0;
	process_cpus(&first, 1);
	int ret = start_eal(eal, first);
	if (ret < 0)
		return ret;
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
