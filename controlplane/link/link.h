// The link to Redis: batches of a script go out, replies and news come back, and it comes again by
// itself when it is lost. It knows nothing of what is in a batch.
//
//   owner ── link_send() ──▶ EVALSHA ──▶ primary        one batch in flight
//     ▲ ◀─ replied/lost ◀── reply, or none in time
//     └── subscribed/told ◀── SUBSCRIBE, a connection of its own
//
// Who the primary is says the configuration, or one of the sentinels, who are asked again before
// each try. It must say that it is one (ROLE): a replica is refused.
//
// Everything runs on the loop of control and waits for nobody: names are resolved by evdns, each
// step has its time, and each buffer its bound.
//
// Promises to the owner: events are never called from within a function of this header; between
// `ready` and `lost` there are at most as many `replied` as batches; a batch that `lost` cuts off
// may or may not have been done, so that it must be one that can be sent again.
//
// Control thread only. Times are us of CLOCK_MONOTONIC.
#pragma once

#include <event2/event.h>
#include <hiredis/hiredis.h>

#include "config/config.h"
#include "controlplane/link/link_greeting.h"
#include "controlplane/link/link_password.h"

#define LINK_ANSWER_MS 1000u // for a reply to a batch
#define LINK_BATCH_BYTES_MAX (4u << 20) // of one batch on the wire
#define LINK_REPLY_BYTES_MAX (16u << 20) // of one reply, or one burst of news
#define LINK_ADDRESS_BYTES 264u // "[ADDRESS]:PORT", or the path of a socket
#define LINK_TEXT_BYTES 256u

struct link_options {
	const struct config_store *store; // not embedded; outlives the link
	const char *password; // copied; NULL: none
	const char *channel; // of news; outlives the link
	const char *script; // of batches; outlives the link
	size_t script_bytes;
	uint32_t answer_ms; // 0: LINK_ANSWER_MS
	size_t reply_bytes_max; // 0: LINK_REPLY_BYTES_MAX
};

struct link;

struct link_status {
	bool is_ready; // a batch can be sent, or is in flight
	bool has_batch; // one is in flight
	bool has_news; // subscribed
	char primary[LINK_ADDRESS_BYTES]; // of the last try; empty: none was found yet
	struct link_server server; // as of the last greeting
	struct link_warnings warnings; // likewise
	uint64_t ready_us; // since when; 0: it is not
	uint64_t sent_us; // when the batch in flight was sent
	uint64_t round_us; // how long the last reply took
	char error[LINK_TEXT_BYTES]; // why the last try or connection failed; empty: it did not
	uint64_t tries_total, ready_total, lost_total; // tries to connect; those that came through
	uint64_t batches_total, reloads_total; // sent; sent again with the script
	uint64_t news_total, news_lost_total; // messages; losses of their connection
};

struct link_events {
	// The primary has been greeted, `status` says who it is. `is_other`: its run id or
	// replication id is not that of the connection before; true at the first.
	void (*ready)(void *context, const struct link_status *status, bool is_other);
	// The connection is gone, and with it the batch in flight; `reason` dies with the call.
	void (*lost)(void *context, const char *reason);
	// The reply to the batch in flight; an error of the script's too. Dies with the call.
	void (*replied)(void *context, const redisReply *reply);
	// News come from now on: what was published before has to be asked for.
	void (*subscribed)(void *context);
	// One message. Dies with the call.
	void (*told)(void *context, const char *message, size_t bytes);
};

// Begin to connect. `events` outlives the link.
// Returns 0, -EINVAL (a password that is too long) or -ENOMEM. The caller's: link_destroy(), which
// accepts NULL, calls no event and must not be called by one.
int link_create(struct event_base *base, const struct link_options *options,
	const struct link_events *events, void *context, struct link **link);
void link_destroy(struct link *link);

// Send a batch: EVALSHA of the script with `key_count` keys and then arguments, all in `argv`.
//   bytes  the length of each
// It is copied. A Redis that has forgotten the script gets it again, and the batch with it.
// Returns 0; -EAGAIN when not ready or a batch is in flight; -E2BIG beyond LINK_BATCH_BYTES_MAX;
// -ENOMEM.
int link_send(struct link *link, uint32_t key_count, uint32_t argc, const char *const *argv,
	const size_t *bytes);

// Give this connection up, as if it had been lost (the owner does not believe the store); `lost`
// comes later, from the loop. The next try is made the later, up to 500 ms, the more often in a
// row.
void link_drop(struct link *link, const char *reason);

// How it stands. Dies with the next call, and with the next event.
const struct link_status *link_status(struct link *link);
