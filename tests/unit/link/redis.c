// A child asks the kernel to be killed when its parent dies, so that nothing outlives a test.

#include "tests/unit/link/redis.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define ARGS_MAX 40
#define START_MS 5000

static char folder[32];

const char *redis_folder(void)
{
	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/sluice-link-XXXXXX");
		assert_non_null(mkdtemp(folder));
	}
	return folder;
}

void redis_folder_remove(void)
{
	char command[64];
	snprintf(command, sizeof(command), "rm -r '%s'", redis_folder());
	assert_int_equal(system(command), 0);
	folder[0] = '\0';
}

const char *redis_path(const char *name, char *path)
{
	snprintf(path, REDIS_PATH_BYTES, "%s/%s", redis_folder(), name);
	return path;
}

void redis_write(const char *name, const char *text, mode_t mode)
{
	char path[REDIS_PATH_BYTES];
	FILE *file = fopen(redis_path(name, path), "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

uint16_t redis_port(void)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &bytes), 0);
	close(fd);
	return ntohs(address.sin_port);
}

pid_t redis_run(const char *log, const char *const *argv)
{
	char path[REDIS_PATH_BYTES];
	pid_t parent = getpid(), pid = fork();
	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int fd = open(redis_path(log, path), O_WRONLY | O_CREAT | O_APPEND, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	if (getppid() == parent && chdir(redis_folder()) == 0)
		execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

void redis_signal(pid_t pid, int signal)
{
	assert_int_equal(kill(pid, signal), 0);
}

void redis_stop(pid_t pid)
{
	redis_signal(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static redisContext *connect_to(const char *name)
{
	char socket_name[64], path[REDIS_PATH_BYTES];
	snprintf(socket_name, sizeof(socket_name), "%s.sock", name);
	return redisConnectUnixWithTimeout(redis_path(socket_name, path), (struct timeval){2, 0});
}

static bool answers(const char *name)
{
	redisContext *redis = connect_to(name);
	redisReply *reply = redis->err ? NULL : redisCommand(redis, "PING");
	bool is_up =
		reply && !(reply->type == REDIS_REPLY_ERROR && !strncmp(reply->str, "LOADING", 7));
	if (reply)
		freeReplyObject(reply);
	redisFree(redis);
	return is_up;
}

pid_t redis_start(const char *name, uint32_t port, ...)
{
	char port_text[8], socket_name[64], dbfile[64], log[64];
	snprintf(port_text, sizeof(port_text), "%u", port);
	snprintf(socket_name, sizeof(socket_name), "%s.sock", name);
	snprintf(dbfile, sizeof(dbfile), "%s.rdb", name);
	snprintf(log, sizeof(log), "%s.log", name);
	const char *argv[ARGS_MAX] = {"redis-server", "--port", port_text, "--bind", "127.0.0.1",
		"--unixsocket", socket_name, "--dbfilename", dbfile, "--save", "", "--appendonly",
		"no", "--repl-diskless-sync-delay", "0"};
	int argc = 15;
	va_list more;
	va_start(more, port);
	for (const char *word; (word = va_arg(more, const char *)) && argc < ARGS_MAX - 1;)
		argv[argc++] = word;
	va_end(more);
	char path[REDIS_PATH_BYTES];
	unlink(redis_path(socket_name, path));
	pid_t pid = redis_run(log, argv);
	for (int ms = 0; !answers(name); ms += 5) {
		assert_true(ms < START_MS);
		usleep(5000);
	}
	return pid;
}

static int listen_at(const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char socket_name[64], path[REDIS_PATH_BYTES];
	snprintf(socket_name, sizeof(socket_name), "%s.sock", name);
	redis_path(socket_name, path);
	unlink(path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	return fd;
}

// In the child: one visitor after the other, until it is killed.
static void pretend(int fd, const char *const texts[2], size_t bytes)
{
	static char xs[65536];
	memset(xs, 'x', sizeof(xs));
	for (int i = 0, peer; (peer = accept(fd, NULL, NULL)) >= 0; i++) {
		const char *text = texts[i % 2];
		ssize_t sent = send(peer, text, strlen(text), MSG_NOSIGNAL);
		for (size_t left = bytes; left > 0 && sent > 0; left -= (size_t)sent)
			sent = send(peer, xs, left < sizeof(xs) ? left : sizeof(xs), MSG_NOSIGNAL);
	}
}

static pid_t start_to_pretend(const char *name, const char *const texts[2], size_t bytes)
{
	int fd = listen_at(name);
	pid_t parent = getpid(), pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() == parent)
			pretend(fd, texts, bytes);
		_exit(1);
	}
	close(fd);
	return pid;
}

pid_t redis_pretend(const char *name, const char *text, size_t bytes)
{
	return start_to_pretend(name, (const char *const[]){text, text}, bytes);
}

pid_t redis_pretend_news(const char *name, const char *greeting, const char *news)
{
	return start_to_pretend(name, (const char *const[]){greeting, news}, 0);
}

void redis_wait_port(uint16_t port)
{
	for (int ms = 0; ms < START_MS; ms += 5) {
		redisContext *redis = redisConnect("127.0.0.1", port);
		bool is_open = !redis->err;
		redisFree(redis);
		if (is_open)
			return;
		usleep(5000);
	}
	fail_msg("nobody listens on port %u", port);
}

static redisReply *ask(const char *name, const char *format, va_list values)
{
	redisContext *redis = connect_to(name);
	assert_int_equal(redis->err, 0);
	redisReply *reply = redisvCommand(redis, format, values);
	assert_non_null(reply);
	if (reply->type == REDIS_REPLY_ERROR)
		fail_msg("%s: %s", format, reply->str);
	redisFree(redis);
	return reply;
}

void redis_tell(const char *name, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	freeReplyObject(ask(name, format, values));
	va_end(values);
}

char *redis_ask(const char *name, const char *format, ...)
{
	static char text[256];
	va_list values;
	va_start(values, format);
	redisReply *reply = ask(name, format, values);
	va_end(values);
	snprintf(text, sizeof(text), "%s", reply->str ? reply->str : "");
	freeReplyObject(reply);
	return text;
}
