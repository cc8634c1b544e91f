// loader: a load that costs little itself, so that the server is what saturates.
//
// N connections, each with one request under way, closed loop, on one thread and one epoll. Each
// connection alternates between two requests of its own, so that a server which remembers what a
// connection last sent cannot profit from it. Of an answer only the length is looked at.
//
// The CPU time of the server's processes is read by the loader itself, at both ends of the time in
// which it counts: all connections are open by then and everything is warm.

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 4096u
#define REQUESTS_MAX (2 * CONNECTIONS_MAX)
#define PIDS_MAX 16u
#define ANSWER_BYTES_MAX 65536u
#define EVENTS 512
#define STALL_MS 5000 // nothing for so long: the server hangs

struct text {
	const char *at;
	size_t len;
};

struct connection {
	int fd;
	uint32_t turn; // requests sent
	size_t left; // of the answer under way; 0: none of it has come
};

static struct connection connections[CONNECTIONS_MAX];
static struct text requests[REQUESTS_MAX];
static uint32_t connection_count = 64, request_count, pid_count;
static int pids[PIDS_MAX];
static double warm_s = 0.5, counted_s = 2;
static uint64_t answers_wanted; // in place of a time; 0: by time
static struct sockaddr_in target;

static void die(const char *what)
{
	fprintf(stderr, "loader: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// Seconds that all threads of a process ran, of /proc/PID/task/*/schedstat.
static double cpu_of_s(int pid)
{
	char path[320];
	double sum_s = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *folder = opendir(path);
	if (!folder)
		die(path);
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", pid, entry->d_name);
		FILE *file = fopen(path, "r");
		uint64_t ran_ns = 0;
		if (!file || fscanf(file, "%" SCNu64, &ran_ns) != 1)
			die(path);
		fclose(file);
		sum_s += (double)ran_ns / 1e9;
	}
	closedir(folder);
	return sum_s;
}

static double cpu_s(void)
{
	double sum_s = 0;
	for (uint32_t i = 0; i < pid_count; i++)
		sum_s += cpu_of_s(pids[i]);
	return sum_s;
}

// Cut a file of request heads into requests.
static void read_requests(const char *path)
{
	struct stat info;
	FILE *file = fopen(path, "r");
	if (!file || fstat(fileno(file), &info) < 0 || info.st_size == 0)
		die(path);
	char *text = malloc((size_t)info.st_size);
	if (!text || fread(text, (size_t)info.st_size, 1, file) != 1)
		die(path);
	fclose(file);
	const char *end = text + info.st_size;
	for (const char *at = text, *stop; at < end && request_count < REQUESTS_MAX; at = stop) {
		stop = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
		if (!stop)
			break;
		stop += 4;
		requests[request_count++] = (struct text){at, (size_t)(stop - at)};
	}
	if (request_count == 0)
		die("no request in the file");
}

static void ask(uint32_t i)
{
	struct connection *c = &connections[i];
	const struct text *request = &requests[(2 * i + (c->turn++ & 1)) % request_count];
	if (send(c->fd, request->at, request->len, MSG_NOSIGNAL) != (ssize_t)request->len)
		die("send");
}

// The whole length of the answer that begins here; its head must be in one piece.
static size_t answer_bytes(const char *bytes, size_t len)
{
	static const char name[] = "\r\nContent-Length: ";
	const char *end = memmem(bytes, len, "\r\n\r\n", 4);
	const char *field = end ? memmem(bytes, (size_t)(end - bytes), name, 18) : NULL;
	if (!field || memcmp(bytes, "HTTP/1.1 200", 12) != 0) {
		fprintf(stderr, "loader: not an answer to count: %.*s\n",
			(int)(len < 200 ? len : 200), bytes);
		exit(1);
	}
	return (size_t)(end + 4 - bytes) + strtoull(field + 18, NULL, 10);
}

// Returns whether an answer is complete.
static bool take(uint32_t i)
{
	static char bytes[ANSWER_BYTES_MAX];
	struct connection *c = &connections[i];
	const ssize_t got = recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (got <= 0)
		die("connection closed");
	if (c->left == 0)
		c->left = answer_bytes(bytes, (size_t)got);
	if ((size_t)got > c->left)
		die("more than an answer");
	c->left -= (size_t)got;
	return c->left == 0;
}

static int open_all(void)
{
	const int epoll = epoll_create1(EPOLL_CLOEXEC);
	for (uint32_t i = 0; i < connection_count; i++) {
		const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0 || connect(fd, (struct sockaddr *)&target, sizeof(target)) < 0)
			die("connect");
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
		struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
		if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
			die("epoll");
		connections[i].fd = fd;
	}
	return epoll;
}

// Ask and take until `until_s`, or `most` answers if that is not 0. Returns how many came.
static uint64_t run(int epoll, double until_s, uint64_t most)
{
	struct epoll_event events[EVENTS];
	uint64_t answers = 0;
	while (most ? answers < most : now_s() < until_s) {
		const int count = epoll_wait(epoll, events, EVENTS, STALL_MS);
		if (count <= 0)
			die("no answer");
		for (int i = 0; i < count; i++) {
			if (!take(events[i].data.u32))
				continue;
			answers++;
			ask(events[i].data.u32);
		}
	}
	return answers;
}

static void pin(const char *core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((unsigned)strtoul(core, NULL, 10), &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		die("core");
}

static int usage(void)
{
	fprintf(stderr,
		"usage: loader --port PORT --requests FILE [--connections N] [--pid PID]...\n"
		"              [--warm SECONDS] [--seconds SECONDS | --answers N] [--core CORE]\n"
		"FILE holds request heads; connection i alternates between number 2i and 2i + 1.\n"
		"The server is on 127.0.0.1; --pid: a process of it whose CPU time counts.\n");
	return 2;
}

static bool read_options(int argc, char **argv)
{
	static const struct option options[] = {{"port", required_argument, NULL, 'p'},
		{"requests", required_argument, NULL, 'r'},
		{"connections", required_argument, NULL, 'n'},
		{"pid", required_argument, NULL, 'i'}, {"warm", required_argument, NULL, 'w'},
		{"seconds", required_argument, NULL, 's'},
		{"answers", required_argument, NULL, 'a'}, {"core", required_argument, NULL, 'c'},
		{0}};
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'p')
			target = (struct sockaddr_in){AF_INET,
				htons((uint16_t)strtoul(optarg, NULL, 10)),
				{htonl(INADDR_LOOPBACK)}, {0}};
		else if (option == 'r')
			read_requests(optarg);
		else if (option == 'n')
			connection_count = (uint32_t)strtoul(optarg, NULL, 10);
		else if (option == 'i' && pid_count < PIDS_MAX)
			pids[pid_count++] = (int)strtol(optarg, NULL, 10);
		else if (option == 'w')
			warm_s = strtod(optarg, NULL);
		else if (option == 's')
			counted_s = strtod(optarg, NULL);
		else if (option == 'a')
			answers_wanted = strtoull(optarg, NULL, 10);
		else if (option == 'c')
			pin(optarg);
		else
			return false;
	}
	return optind == argc && target.sin_port && request_count && connection_count &&
	       connection_count <= CONNECTIONS_MAX;
}

int main(int argc, char **argv)
{
	if (!read_options(argc, argv))
		return usage();
	const int epoll = open_all();
	for (uint32_t i = 0; i < connection_count; i++)
		ask(i);
	run(epoll, now_s() + warm_s, 0);
	const double cpu_before_s = cpu_s(), before_s = now_s();
	const uint64_t answers = run(epoll, before_s + counted_s, answers_wanted);
	const double cpu_after_s = cpu_s(), after_s = now_s();
	printf("{\"answers\":%" PRIu64 ",\"seconds\":%.6f,\"cpu_s\":%.6f}\n", answers,
		after_s - before_s, cpu_after_s - cpu_before_s);
	return 0;
}
