// What a worker remembers of a peer between streams: a session to resume, and how handshakes went.
//
// Whoever knows the peer keeps this beside it, zero to begin with, for as long as a stream to it
// lives. A resumed handshake verifies nothing anew: a peer that must be verified otherwise than
// before is another peer.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

struct ssl_session_st;
struct ssl_st;

#define PEER_TICKET_BYTES_MAX 4096u // a session with a longer ticket is not kept

struct peer {
	struct ssl_session_st *session; // the latest; NULL: none
	_Atomic uint32_t failures; // handshakes; written: worker; read: control
	_Atomic uint32_t fault; // fault.h: of the latest handshake; 0: it was good
};

// Have `ssl`, not begun yet, resume the session, if there is one, and remember what sessions it
// gets. Borrows `peer` for as long as `ssl` lives.
void peer_resume(struct peer *peer, struct ssl_st *ssl);

// Have each connection of a context remember sessions as peer_resume() said.
struct ssl_ctx_st;
void peer_watch(struct ssl_ctx_st *context);

// How a handshake went: `fault` 0: well.
void peer_note(struct peer *peer, uint32_t fault);

// Let go of the session. Nothing else must be freed.
void peer_forget(struct peer *peer);
