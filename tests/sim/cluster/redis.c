// The server is a child that dies with its parent, so that an aborted test leaves nothing running.

#include "tests/sim/cluster/redis.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_server(const char *folder)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/socket", folder);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execlp("redis-server", "redis-server", "--port", "0", "--unixsocket", path, "--save", "",
		"--appendonly", "no", "--dir", folder, "--logfile", "/dev/null", (char *)NULL);
	_exit(127);
}

void redis_server_start(struct redis_server *server)
{
	char path[64];
	snprintf(server->folder, sizeof(server->folder), "/tmp/sluice-redis-XXXXXX");
	if (!mkdtemp(server->folder)) {
		perror("mkdtemp");
		abort();
	}
	server->pid = fork();
	if (server->pid == 0)
		run_server(server->folder);
	snprintf(path, sizeof(path), "%s/socket", server->folder);
	for (int i = 0; i < 1000; i++) {
		usleep(10000);
		server->link = redisConnectUnix(path);
		if (server->link && !server->link->err)
			return;
		redisFree(server->link);
	}
	fprintf(stderr, "redis-server did not start (config/setup test installs it)\n");
	abort();
}

void redis_server_stop(struct redis_server *server)
{
	char path[64];
	redisFree(server->link);
	kill(server->pid, SIGTERM);
	waitpid(server->pid, NULL, 0);
	snprintf(path, sizeof(path), "%s/socket", server->folder);
	unlink(path);
	rmdir(server->folder);
}

redisReply *redis_server_do(
	struct redis_server *server, int argc, const char **argv, const size_t *lengths)
{
	redisReply *reply = redisCommandArgv(server->link, argc, argv, lengths);
	if (!reply || reply->type == REDIS_REPLY_ERROR) {
		fprintf(stderr, "redis: %s\n", reply ? reply->str : server->link->errstr);
		abort();
	}
	return reply;
}
