// The server's side of a handshake: what OpenSSL asks on its way, answered from what the driver was
// told last (tls_serve()).
#pragma once

#include <stdbool.h>

struct channel;
struct ssl_ctx_st;
struct ssl_st;
struct tls;

// Set a context up for visitors: versions, ciphers, and what is asked. Returns false when out of
// memory.
bool server_prepare(struct ssl_ctx_st *context);

// An SSL that accepts, for a channel of a listener that has an identity. NULL: out of memory.
struct ssl_st *server_begin(struct tls *tls, struct channel *channel);
