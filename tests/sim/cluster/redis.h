// A real redis-server for a test: on a socket in a folder of its own, without persistence, gone
// when the test is.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

struct redis_server {
	char folder[32];
	int pid;
	redisContext *link;
};

// Start one and connect. Aborts, saying why, if it does not come up within 10 s.
void redis_server_start(struct redis_server *server);

// End it and remove its folder.
void redis_server_stop(struct redis_server *server);

// One command; an error is the end of the test. The reply is the caller's (freeReplyObject).
redisReply *redis_server_do(
	struct redis_server *server, int argc, const char **argv, const size_t *lengths);
