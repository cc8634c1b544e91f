// Workers only count up, so all that is remembered is how much has been said. A count that has
// fallen is that of a server known anew.

#include "controlplane/faults.h"

#include <stddef.h>

static struct faults_server *find(struct faults *faults, uint64_t id)
{
	struct faults_server *free = NULL;
	for (uint32_t i = 0; i < FAULTS_SERVERS_MAX; i++) {
		struct faults_server *server = &faults->servers[i];
		if (server->id == id)
			return server;
		if (server->id == 0 && !free)
			free = server;
	}
	if (free)
		*free = (struct faults_server){.id = id};
	return free;
}

void faults_note(struct faults *faults, uint64_t id, uint32_t failures, uint32_t fault)
{
	struct faults_server *server = failures > 0 ? find(faults, id) : NULL;
	if (!server)
		return;
	server->failures += failures;
	if (fault)
		server->fault = fault;
}

uint32_t faults_take(struct faults *faults, uint64_t now_us, struct faults_due *due)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < FAULTS_SERVERS_MAX; i++) {
		struct faults_server *server = &faults->servers[i];
		if (server->failures == 0)
			server->id = 0;
		if (server->failures < server->said)
			server->said = 0;
		if (server->failures > server->said && now_us >= server->quiet_until_us) {
			due[count++] = (struct faults_due){.id = server->id,
				.fresh = server->failures - server->said,
				.fault = server->fault};
			server->said = server->failures;
			server->quiet_until_us = now_us + FAULTS_QUIET_US;
		}
		server->failures = 0;
	}
	return count;
}
