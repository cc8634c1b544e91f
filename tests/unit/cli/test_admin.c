// The admin socket: a server and plain sockets in one thread, the event loop turned by hand.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controlplane/admin/admin.h"

// Short, so that the test of it is.
#undef ADMIN_IDLE_S
#define ADMIN_IDLE_S 1
#include "controlplane/admin/admin.c"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>

static char path[64];
static struct event_base *base;
static struct admin *admin;
static unsigned handled;

static int count_up(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)count, (void)arguments, (void)text;
	*data = json_integer(++handled);
	return 0;
}

// More than a socket's buffers hold.
static int big(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)count, (void)arguments, (void)data;
	for (int i = 0; i < 200000; i++)
		fputs("0123456789", text);
	return 0;
}

// One whose end comes later.
static int begins(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)context, (void)count, (void)arguments, (void)data;
	fputs("begun", text);
	return ADMIN_LATER;
}

static int ends = ADMIN_LATER;

static int look(void *context, uint64_t began_us, json_t **data, FILE *text)
{
	(void)context, (void)data;
	assert_true(began_us > 0);
	if (ends != ADMIN_LATER)
		fputs(ends ? "failed after all" : "not said", text);
	return ends;
}

static const struct admin_command commands[] = {
	{.name = "count", .function = count_up},
	{.name = "big", .function = big},
	{.name = "begin", .function = begins, .settled = look},
};
#define COUNT "{\"command\":\"count\"}\n"
#define BEGIN "{\"command\":\"begin\"}\n"
#define BIG "{\"command\":\"big\"}\n"

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof(path), "/tmp/test_admin.%d", getpid());
	base = event_base_new();
	handled = 0;
	return admin_create(base, path, commands, 3, NULL, &admin);
}

static int tear_down(void **state)
{
	(void)state;
	admin_destroy(admin);
	event_base_free(base);
	return access(path, F_OK) == 0; // the socket is gone
}

static void turn(void)
{
	for (int i = 0; i < 20; i++)
		event_base_loop(base, EVLOOP_NONBLOCK);
}

static int connect_client(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

// What has come, or "" if nothing has, or "gone" when the server hung up.
static const char *heard(int fd)
{
	static char text[4096];
	turn();
	ssize_t got = recv(fd, text, sizeof(text) - 1, 0);
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return "gone";
	text[got < 0 ? 0 : got] = '\0';
	return text;
}

static void test_only_the_owner_may_open_it(void **state)
{
	(void)state;
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
}

static void test_commands_are_answered_in_order(void **state)
{
	(void)state;
	int fd = connect_client();
	say(fd, COUNT);
	assert_string_equal(heard(fd), "{\"status\":0,\"data\":1}\n");
	say(fd, COUNT COUNT "{\"comm");
	assert_string_equal(heard(fd), "{\"status\":0,\"data\":2}\n{\"status\":0,\"data\":3}\n");
	say(fd, "and\":\"count\"}\n");
	assert_string_equal(heard(fd), "{\"status\":0,\"data\":4}\n");
	close(fd);
}

static void test_an_answer_outlives_the_end_of_sending(void **state)
{
	(void)state;
	int fd = connect_client();
	say(fd, COUNT);
	shutdown(fd, SHUT_WR);
	assert_string_equal(heard(fd), "{\"status\":0,\"data\":1}\n");
	assert_string_equal(heard(fd), "gone");
	close(fd);
}

// Nothing is said before the end is known, and nothing else read of this client.
static void test_a_command_that_ends_later(void **state)
{
	(void)state;
	int fd = connect_client(), other = connect_client(), leaver = connect_client();
	for (int ret = 0; ret <= 1; ret++) {
		ends = ADMIN_LATER;
		say(fd, BEGIN COUNT);
		say(leaver, BEGIN);
		usleep(3000 * ADMIN_SETTLE_MS);
		turn();
		char byte;
		assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
		say(other, COUNT);
		assert_non_null(strstr(heard(other), "{\"status\":0,\"data\":"));
		close(leaver);
		ends = ret;
		usleep(3000 * ADMIN_SETTLE_MS);
		assert_non_null(strstr(heard(fd),
			ret ? "{\"status\":1,\"text\":\"failed after "
			      "all\"}\n{\"status\":0,\"data\":"
			    : "{\"status\":0,\"text\":\"begun\"}\n{\"status\":0,\"data\":"));
		leaver = connect_client();
	}
	close(fd);
	close(other);
	close(leaver);
}

static void test_who_leaves_in_between_harms_nobody(void **state)
{
	(void)state;
	int leaver = connect_client(), other = connect_client();
	say(leaver, BIG);
	turn();
	close(leaver);
	turn();
	say(other, COUNT);
	assert_string_equal(heard(other), "{\"status\":0,\"data\":1}\n");
	close(other);
}

// A client that does not take its answer is not read: one answer is all that waits for it.
static void test_one_answer_at_a_time(void **state)
{
	(void)state;
	int fd = connect_client();
	say(fd, BIG COUNT);
	turn();
	assert_int_equal(handled, 0);
	size_t len = 0;
	for (int i = 0; i < 10000 && handled == 0; i++) {
		static char piece[65536];
		ssize_t got = recv(fd, piece, sizeof(piece), 0);
		len += got > 0 ? got : 0;
		turn();
	}
	assert_int_equal(handled, 1);
	assert_true(len > 1900000);
	close(fd);
}

static void test_line_length(void **state)
{
	(void)state;
	static char line[ADMIN_LINE_BYTES_MAX + 1];
	memset(line, ' ', sizeof(line));
	memcpy(line, COUNT, strlen(COUNT) - 1);
	for (int beyond = 0; beyond <= 1; beyond++) {
		int fd = connect_client();
		size_t len = ADMIN_LINE_BYTES_MAX - 1 + beyond;
		for (size_t sent = 0; sent < len;) {
			ssize_t n = send(fd, line + sent, len - sent, MSG_NOSIGNAL);
			sent += n > 0 ? n : 0;
			turn();
		}
		if (!beyond) {
			say(fd, "\n");
			assert_string_equal(heard(fd), "{\"status\":0,\"data\":1}\n");
		} else {
			assert_string_equal(heard(fd),
				"{\"status\":1,\"text\":\"a command that is too long\"}\n");
			assert_string_equal(heard(fd), "gone");
		}
		close(fd);
	}
}

static void test_client_count(void **state)
{
	(void)state;
	int fds[ADMIN_CLIENTS_MAX + 1];
	for (int i = 0; i <= ADMIN_CLIENTS_MAX; i++) {
		fds[i] = connect_client();
		say(fds[i], COUNT);
		assert_int_equal(strcmp(heard(fds[i]), "") != 0, i < ADMIN_CLIENTS_MAX);
	}
	close(fds[3]); // a place for the last
	assert_string_equal(heard(fds[ADMIN_CLIENTS_MAX]), "{\"status\":0,\"data\":17}\n");
	for (int i = 0; i <= ADMIN_CLIENTS_MAX; i++)
		if (i != 3)
			close(fds[i]);
	turn();
}

static void test_the_silent_are_hung_up_on(void **state)
{
	(void)state;
	int fd = connect_client();
	say(fd, "{\"command\"");
	assert_string_equal(heard(fd), "");
	usleep(1100000);
	assert_string_equal(heard(fd), "gone");
	close(fd);
}

static void test_accepting_goes_on_after_an_error(void **state)
{
	(void)state;
	on_accept_error(admin->listener, admin);
	int fd = connect_client();
	say(fd, COUNT);
	assert_string_equal(heard(fd), "");
	usleep(1100000);
	assert_string_equal(heard(fd), "{\"status\":0,\"data\":1}\n");
	close(fd);
}

static void test_a_left_behind_socket_is_replaced(void **state)
{
	(void)state;
	struct admin *second;
	assert_int_equal(admin_create(base, path, commands, 3, NULL, &second), 0);
	int fd = connect_client();
	say(fd, COUNT);
	assert_string_equal(heard(fd), "{\"status\":0,\"data\":1}\n");
	close(fd);
	admin_destroy(second);
}

static void test_where_it_cannot_be(void **state)
{
	(void)state;
	struct admin *none;
	char long_path[109];
	memset(long_path, 'a', 108);
	long_path[108] = '\0';
	assert_int_equal(admin_create(base, long_path, commands, 3, NULL, &none), -ENAMETOOLONG);
	assert_int_equal(
		admin_create(base, "/nonexistent/socket", commands, 3, NULL, &none), -ENOENT);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		STORY(test_only_the_owner_may_open_it),
		STORY(test_commands_are_answered_in_order),
		STORY(test_an_answer_outlives_the_end_of_sending),
		STORY(test_a_command_that_ends_later),
		STORY(test_who_leaves_in_between_harms_nobody),
		STORY(test_one_answer_at_a_time),
		STORY(test_line_length),
		STORY(test_client_count),
		STORY(test_the_silent_are_hung_up_on),
		STORY(test_accepting_goes_on_after_an_error),
		STORY(test_a_left_behind_socket_is_replaced),
		STORY(test_where_it_cannot_be),
	};
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
