// Both sides of the driver against each other: a client over one network in memory, a server over
// another, and what either writes is what the other one gets; byte by byte with `rig_bytewise`.
#pragma once

#include "dataplane/tls/identity.h"
#include "dataplane/tls/ticket.h"
#include "dataplane/tls/tls.h"
#include "tests/unit/origin/fake.h"
#include "tests/unit/tls/certificate.h"
#include "tests/unit/tls/rig.h"

#define PAIR_LINKS_MAX 64
#define PAIR_STREAMS_MAX 8 // of the server
#define PAIR_PER_S 1000 // handshakes

// One end of a connection.
struct pair_end {
	struct fake_stream *s; // of its network
	struct stream *stream; // of its driver; NULL: it has ended
	size_t taken; // of what s has `got`
	struct rig_heard heard;
	bool has_ended; // the other end knows
};

struct pair_link {
	struct peer peer;
	struct pair_end client, server;
};

struct pair {
	struct fake near, far; // the client's network, and the server's
	struct stream_driver *client, *server;
	struct certificate root;
	struct trust *trust;
	struct identity *identity;
	const struct identity *identities[TLS_LISTENERS_MAX]; // [0] and [1] are `identity`
	struct ticket_keys ticket_keys;
	uint32_t now_s; // the server's
	int link_count;
	struct pair_link links[PAIR_LINKS_MAX];
};

// A pair whose server has a certificate for each of the names, in their order ("DNS:a,DNS:b").
struct pair *pair_new(const char *const *names, unsigned count);
void pair_end(struct pair *pair); // asserts that nothing is left

// The client's context, for a test that wants it to be another kind of client.
SSL_CTX *pair_client(struct pair *pair);

// Connect: the client asks for `name`; `peer`: a session to resume, or NULL. Returns the link; its
// server.stream is NULL if the server had none left.
struct pair_link *pair_connect(struct pair *pair, const char *name, const struct peer *peer);

// One turn of both; and turns until nothing happens any more.
bool pair_turn(struct pair *pair);
void pair_settle(struct pair *pair);

// Connect, settle, and assert that both ends have opened.
struct pair_link *pair_open(struct pair *pair, const char *name, const struct peer *peer);

// The client's session, moved; the link forgets it.
struct peer pair_take_session(struct pair_link *link);

// Use up one handshake of the server's rate. Returns whether there was one left.
bool pair_use_turn(struct pair *pair);

#define pair_count(pair, counter) (tls_counters((pair)->server)->counter)
