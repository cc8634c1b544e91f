// In the order in which a handshake asks: may it go on now, which certificate, which protocol,
// which ticket key, which response to staple.
//
// A visitor whose turn has not come stops where its hello has been read and nothing costly was done
// (OpenSSL's own way to wait within a handshake); the driver goes on with it later.

#include "dataplane/tls/server.h"

#include "dataplane/tls/channel.h"
#include "dataplane/tls/identity.h"
#include "dataplane/tls/material.h"

#include <openssl/ssl.h>

// TLS 1.2; that of 1.3 are OpenSSL's own three, without those that nobody asks for. Forward secrecy
// and AEAD alone; ECDSA first, since it costs a third of RSA.
#define CIPHERS \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:" \
	"ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-AES128-GCM-SHA256:" \
	"ECDHE-RSA-AES256-GCM-SHA384:ECDHE-RSA-CHACHA20-POLY1305"
#define SUITES "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS "X25519:P-256" // the first is a third cheaper
#define OPTIONS \
	(SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE | \
		SSL_OP_PRIORITIZE_CHACHA)

static const struct identity *identity_of(const struct channel *channel)
{
	return channel->tls->service.identities[channel->stream.listener];
}

static int may_go_on(SSL *ssl, int *alert, void *unused)
{
	struct channel *channel = SSL_get_app_data(ssl);
	(void)alert;
	(void)unused;
	if (!channel->has_turn)
		channel->has_turn = channel_take_turn(channel->tls);
	return channel->has_turn ? SSL_CLIENT_HELLO_SUCCESS : SSL_CLIENT_HELLO_RETRY;
}

static int choose_certificate(SSL *ssl, int *alert, void *unused)
{
	struct channel *channel = SSL_get_app_data(ssl);
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct identity *identity = identity_of(channel);
	(void)alert;
	(void)unused;
	if (!name || !identity) // the listener has become a plain one meanwhile
		return SSL_TLSEXT_ERR_NOACK;
	SSL_CTX *context = identity_find(identity, channel->tls->worker, name);
	if (!context)
		return SSL_TLSEXT_ERR_NOACK; // the first one's
	return SSL_set_SSL_CTX(ssl, context) ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// RFC 7301 3.2: who names protocols and not ours is told so.
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *chosen_bytes,
	const unsigned char *offered, unsigned offered_bytes, void *unused)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *found;
	(void)ssl;
	(void)unused;
	int ret = SSL_select_next_proto(
		&found, chosen_bytes, ours, sizeof(ours) - 1, offered, offered_bytes);
	*chosen = found;
	return ret == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static int choose_ticket_key(SSL *ssl, unsigned char *name, unsigned char *iv,
	EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac, int is_new)
{
	const struct tls *tls = ((struct channel *)SSL_get_app_data(ssl))->tls;
	int ret = ticket_choose(
		tls->service.ticket_keys, tls->ticket_cipher, name, iv, cipher, mac, is_new);
	if (ret == 1 && !is_new && SSL_version(ssl) >= TLS1_3_VERSION)
		ret = 2; // a client uses a ticket once (RFC 8446 C.4): give it the next
	return ret;
}

static int staple(SSL *ssl, void *unused)
{
	struct tls *tls = ((struct channel *)SSL_get_app_data(ssl))->tls;
	uint64_t now_s = tls->now_s ? *tls->now_s : 0;
	bool ran_out;
	struct span response = material_staple(SSL_get_certificate(ssl), now_s, &ran_out);
	(void)unused;
	tls->counters.staple_late += ran_out;
	if (response.len == 0)
		return SSL_TLSEXT_ERR_NOACK;
	void *copy = OPENSSL_memdup(response.at, response.len); // OpenSSL frees it
	if (!copy)
		return SSL_TLSEXT_ERR_NOACK;
	SSL_set_tlsext_status_ocsp_resp(ssl, copy, (long)response.len);
	return SSL_TLSEXT_ERR_OK;
}

bool server_prepare(SSL_CTX *context)
{
	static const unsigned char everybody[] = "sluice"; // any context of ours resumes
	bool is_good = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) &&
		       SSL_CTX_set_cipher_list(context, CIPHERS) &&
		       SSL_CTX_set_ciphersuites(context, SUITES) &&
		       SSL_CTX_set1_groups_list(context, GROUPS) &&
		       SSL_CTX_set_session_id_context(context, everybody, sizeof(everybody) - 1) &&
		       SSL_CTX_set_num_tickets(context, 1);
	SSL_CTX_set_options(context, OPTIONS);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS); // an idle stream holds no buffer
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); // sessions are in tickets
	SSL_CTX_set_timeout(context, TICKET_LIFE_S);
	SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
	SSL_CTX_set_client_hello_cb(context, may_go_on, NULL);
	SSL_CTX_set_tlsext_servername_callback(context, choose_certificate);
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	SSL_CTX_set_tlsext_ticket_key_evp_cb(context, choose_ticket_key);
	SSL_CTX_set_tlsext_status_cb(context, staple);
	return is_good;
}

SSL *server_begin(struct tls *tls, struct channel *channel)
{
	SSL *ssl = SSL_new(identity_first(identity_of(channel), tls->worker));
	BIO *bio = bio_new(tls->methods, &channel->carrier);
	if (!ssl || !bio) {
		BIO_free(bio);
		SSL_free(ssl);
		return NULL;
	}
	SSL_set_bio(ssl, bio, bio); // takes it
	SSL_set_accept_state(ssl);
	SSL_set_app_data(ssl, channel);
	return ssl;
}
