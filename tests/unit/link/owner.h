// An owner of a link that counts what happens to it, and a loop to let it happen.
#pragma once

#include "controlplane/link/link.h"

// What a batch of the tests does: SET its key to its argument, publish that, and say it again; the
// argument "wrong" is an error.
#define OWNER_CHANNEL "sluice:t:news"

struct owner {
	struct event_base *base;
	struct event *tick;
	struct link *link;
	struct config_store store;
	struct config_server servers[4];
	uint32_t ready, others, lost, replied, subscribed, told; // events
	char reason[LINK_TEXT_BYTES]; // of the last loss
	char reply[64], news[64]; // the last, cut
	size_t reply_bytes, news_bytes;
	int reply_type;
};

// A link to `store`, whose texts outlive it.
void owner_init(struct owner *owner, const struct config_store *store, const char *password,
	uint32_t answer_ms);
// The same, and a reply is at most so long.
void owner_init_bounded(
	struct owner *owner, const struct config_store *store, size_t reply_bytes_max);
void owner_fini(struct owner *owner);

// Stores: a socket of that name in the folder; a server; both without a user.
struct config_store owner_socket(const char *name);
struct config_store owner_server(struct config_server *server, const char *host, uint16_t port);

// Run the loop until a count reaches `count`. Returns the ms that it took; fails after 6 s.
uint32_t owner_wait(struct owner *owner, const uint32_t *counter, uint32_t count);

// Run the loop for so long.
void owner_run(struct owner *owner, uint32_t ms);

// Run the loop until the last try has failed for a reason that has `words` in it.
void owner_wait_error(struct owner *owner, const char *words);

// Send a batch that sets `key` to `text`, with or without waiting for the reply.
int owner_send(struct owner *owner, const char *key, const char *text);
void owner_batch(struct owner *owner, const char *key, const char *text);
