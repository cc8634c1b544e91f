// A stream as OpenSSL reads and writes it.
//
// Reading takes from the event in hand and nothing else: no bytes are kept. Writing goes straight
// to the inner stream, which takes all of it or is of no use any more. So OpenSSL is never told to
// write again later, and to read again only when the event is used up.
#pragma once

#include <openssl/bio.h>

#include "drivers/stream.h"

// What a peer may make us send without our asking (handshake, alerts, key updates) while it takes
// nothing of what is queued for it.
#define BIO_REPLY_BYTES_MAX 32768u

struct bio_stream {
	struct stream_driver *inner_driver;
	struct stream *inner;
	struct span in; // not read yet of the event in hand
	size_t reply_bytes; // sent unasked since the queue was empty
	bool is_asked; // within a call of the stream's owner
	bool is_shut; // nothing can be sent any more, and what would be is dropped
	bool is_full; // a write has failed
};

// The methods of such a BIO. NULL when out of memory; ended with BIO_meth_free().
BIO_METHOD *bio_methods(void);

// A BIO over `stream`, borrowed until the BIO is freed. NULL when out of memory.
BIO *bio_new(const BIO_METHOD *methods, struct bio_stream *stream);
