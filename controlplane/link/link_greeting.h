// What Redis says of itself when it is met: ROLE, INFO, CONFIG GET, and SENTINEL of a sentinel.
//
// Pure. Replies are what a peer says: anything may be in them.
#pragma once

#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <stdint.h>

#define LINK_GREETING_ID_BYTES 41u // 40 hex digits and the end
#define LINK_GREETING_HOST_BYTES 254u
#define LINK_GREETING_WARNINGS_MAX 6u
#define LINK_GREETING_TEXT_BYTES 160u

// Who a primary is.
struct link_server {
	char run_id[LINK_GREETING_ID_BYTES]; // of the process
	char replication_id[LINK_GREETING_ID_BYTES]; // of its history of writes
	uint64_t offset; // bytes of that history, when it was greeted
	char version[16];
	uint32_t replicas; // connected to it
};

// What an operator should change there; sentences.
struct link_warnings {
	uint32_t count;
	char texts[LINK_GREETING_WARNINGS_MAX][LINK_GREETING_TEXT_BYTES];
};

// Each returns true, or false with the reason in `error`, LINK_GREETING_TEXT_BYTES; control
// characters of an error of Redis' are in it as '?', arguments that it repeats are not.

// A reply that only has to be no error: to AUTH, SELECT.
bool link_greeting_take_ok(const redisReply *reply, char *error);

// ROLE: only a primary will do.
bool link_greeting_take_role(const redisReply *reply, char *error);

// INFO: fills `server`. A server that is still loading is refused.
bool link_greeting_take_info(const redisReply *reply, struct link_server *server, char *error);

// CONFIG GET link_greeting_config[]: replaces `warnings`. A server that does not tell (an ACL) is a
// warning too, so there is no result.
//   has_replicas  there are, or should be: sentinels are about
extern const char *const link_greeting_config[];
#define LINK_GREETING_CONFIG_COUNT 4u
void link_greeting_take_config(
	const redisReply *reply, bool has_replicas, struct link_warnings *warnings);

// SCRIPT LOAD: the name of the script, LINK_GREETING_ID_BYTES.
bool link_greeting_take_script(const redisReply *reply, char *name, char *error);

// SENTINEL GET-MASTER-ADDR-BY-NAME: where the primary is.
//   host  LINK_GREETING_HOST_BYTES: an address, or a name
bool link_greeting_take_primary(const redisReply *reply, char *host, uint16_t *port, char *error);

// Whether an error of a batch means that this server is no primary to write to any more (READONLY,
// MASTERDOWN, LOADING), or that it has forgotten the script.
bool link_greeting_is_demoted(const redisReply *reply);
bool link_greeting_is_forgotten(const redisReply *reply);
