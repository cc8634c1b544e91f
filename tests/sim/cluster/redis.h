// A real redis-server for a test: on a socket in a folder of its own, without persistence, gone
// when the test is.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hiredis/hiredis.h>

#define REDIS_SCRIPT_ARGS 3 // before those of a script: EVALSHA, its name, how many keys
#define REDIS_SHA_BYTES 40u // of the name

struct redis_server {
	char folder[32];
	int pid;
	redisContext *link;
};

// Start one and connect. Aborts, saying why, if it does not come up within 10 s.
void redis_server_start(struct redis_server *server);

// End it.
void redis_server_stop(struct redis_server *server);

// One command; an error is the end of the test. The reply is the caller's (freeReplyObject).
redisReply *redis_server_do(
	struct redis_server *server, int argc, const char **argv, const size_t *lengths);

// Run a script with one key and `count` arguments, the key among them.
//   argv, lengths  of them from REDIS_SCRIPT_ARGS on
redisReply *redis_server_run(struct redis_server *server, const char *sha, const char **argv,
	size_t *lengths, uint32_t count);
