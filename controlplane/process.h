// What the process asks of the system at start: EAL, cores, privileges.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROCESS_PCI_MAX 16u

// What is asked of DPDK's EAL beyond rings and RCU.
struct process_eal {
	uint64_t bytes; // of its memory
	bool has_hugepages; // it lies in hugepages
	unsigned pci_count;
	const char *pci[PROCESS_PCI_MAX]; // the only devices it may touch
};

// Initialise EAL without shared configuration or telemetry socket, so that instances do not disturb
// each other. Leaves the thread's affinity as it was. Returns 0 or -errno. Once, by the main
// thread.
int process_init_eal(const struct process_eal *eal);

// The memory that it takes then: untouched it costs nothing, but in hugepages.
uint64_t process_eal_bytes(const struct process_eal *eal);

// The cores this process may run on, ascending. Returns how many (at most `max` are written).
unsigned process_cpus(unsigned *cpus, unsigned max);

// Raise the limit of open files to `wanted`, or to the hard limit. Returns the limit in force.
uint64_t process_raise_files(uint64_t wanted);

// Look a user up. Returns 0, or -ENOENT.
int process_user(const char *name, uid_t *uid, gid_t *gid);

// Become `uid` and `gid` for good, with no supplementary groups, no capabilities and no way back
// (no_new_privs). Returns 0 or -errno; after a failure the process must end.
int process_drop(uid_t uid, gid_t gid);

// Let no core dump and no other process of the same user have this one's memory: secrets are in it,
// in more places than could be left out one by one (the lanes of the MAC engine keep key states).
// Returns 0 or -errno.
int process_hide_memory(void);
