// A ticket of TLS 1.3 is used once, so that nobody on the way can tell two connections of one
// client (RFC 8446 C.4); each connection brings new ones. A session of TLS 1.2 is used until the
// peer gives another.
//
// OpenSSL's own cache finds sessions of servers only; what a client gets it hands to a callback.

#include "dataplane/tls/peer.h"

#include <openssl/ssl.h>

// Returns whether the session is taken.
static int remember(SSL *ssl, SSL_SESSION *session)
{
	struct peer *peer = SSL_get_app_data(ssl);
	const unsigned char *ticket;
	size_t ticket_bytes;
	SSL_SESSION_get0_ticket(session, &ticket, &ticket_bytes);
	if (ticket_bytes > PEER_TICKET_BYTES_MAX)
		return 0;
	peer_forget(peer);
	peer->session = session;
	return 1;
}

void peer_watch(SSL_CTX *context)
{
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(context, remember);
}

void peer_resume(struct peer *peer, SSL *ssl)
{
	SSL_set_app_data(ssl, peer);
	if (!peer->session)
		return;
	SSL_set_session(ssl, peer->session);
	if (SSL_SESSION_get_protocol_version(peer->session) >= TLS1_3_VERSION)
		peer_forget(peer);
}

void peer_note(struct peer *peer, uint32_t fault)
{
	atomic_store_explicit(&peer->fault, fault, memory_order_relaxed);
	if (fault)
		atomic_fetch_add_explicit(&peer->failures, 1, memory_order_relaxed);
}

void peer_forget(struct peer *peer)
{
	SSL_SESSION_free(peer->session);
	peer->session = NULL;
}
