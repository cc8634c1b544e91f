// The server is a child that dies with its parent, and its folder is removed once we are connected,
// so that a test that aborts leaves nothing behind.

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
		if (server->link && !server->link->err) {
			unlink(path);
			rmdir(server->folder);
			return;
		}
		redisFree(server->link);
	}
	fprintf(stderr, "redis-server did not start (config/setup test installs it)\n");
	abort();
}

void redis_server_stop(struct redis_server *server)
{
	redisFree(server->link);
	kill(server->pid, SIGTERM);
	waitpid(server->pid, NULL, 0);
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

redisReply *redis_server_run(struct redis_server *server, const char *sha, const char **argv,
	size_t *lengths, uint32_t count)
{
	const char *const words[REDIS_SCRIPT_ARGS] = {"EVALSHA", sha, "1"};
	for (int i = 0; i < REDIS_SCRIPT_ARGS; i++) {
		argv[i] = words[i];
		lengths[i] = strlen(words[i]);
	}
	return redis_server_do(server, REDIS_SCRIPT_ARGS + (int)count, argv, lengths);
}
