// The client side of admin.socket: one connection, one line there, one line back.

#include "controlplane/cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int connect_to(const char *path, char *error)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const struct timeval wait = {.tv_sec = CLIENT_WAIT_S};
	size_t len = strlen(path);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || len >= sizeof(address.sun_path)) {
		errno = fd < 0 ? errno : ENAMETOOLONG;
		goto fail;
	}
	memcpy(address.sun_path, path, len);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
		return fd;

fail:
	if (errno == ENOENT || errno == ECONNREFUSED)
		snprintf(error, CLIENT_ERROR_BYTES, "sluice is not running: nobody listens at %s",
			path);
	else
		snprintf(error, CLIENT_ERROR_BYTES, "%s: %s", path, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static int send_all(int fd, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t sent = send(fd, text, len, MSG_NOSIGNAL);
		if (sent < 0)
			return -errno;
		text += sent;
		len -= sent;
	}
	return 0;
}

static int send_request(int fd, const json_t *request)
{
	char *line = json_dumps(request, JSON_COMPACT);
	if (!line)
		return -ENOMEM;
	int ret = send_all(fd, line, strlen(line));
	free(line);
	return ret < 0 ? ret : send_all(fd, "\n", 1);
}

// The answer's line, without its end, which the caller frees.
static int receive_line(int fd, char **line)
{
	char piece[16384], *end = NULL;
	size_t len = 0;
	ssize_t got = 0;
	FILE *out = open_memstream(line, &len);
	if (!out)
		return -ENOMEM;
	for (size_t total = 0; !end && total < CLIENT_ANSWER_BYTES_MAX; total += got) {
		got = recv(fd, piece, sizeof(piece), 0);
		if (got <= 0)
			break;
		end = memchr(piece, '\n', got);
		fwrite(piece, 1, end ? (size_t)(end - piece) : (size_t)got, out);
	}
	int ret = end ? 0 : got < 0 ? -errno : -EPROTO;
	if (fclose(out) != 0)
		ret = -ENOMEM;
	return ret;
}

static json_t *parse(const char *line)
{
	json_t *answer = json_loads(line, 0, NULL);
	if (json_is_integer(json_object_get(answer, "status")))
		return answer;
	json_decref(answer);
	return NULL;
}

json_t *client_ask(const char *path, const json_t *request, char *error)
{
	json_t *answer = NULL;
	char *line = NULL;
	int fd = connect_to(path, error);
	if (fd < 0)
		return NULL;
	int ret = send_request(fd, request);
	if (ret == 0)
		ret = receive_line(fd, &line);
	if (ret == 0 && !(answer = parse(line)))
		ret = -EPROTO;
	if (ret == -EAGAIN)
		snprintf(error, CLIENT_ERROR_BYTES, "%s: no answer within %d s", path,
			CLIENT_WAIT_S);
	else if (ret < 0)
		snprintf(error, CLIENT_ERROR_BYTES, "%s: %s", path, strerror(-ret));
	free(line);
	close(fd);
	return answer;
}
