// The connection on which news come: it subscribes to one channel of the primary, and again when it
// is lost, as long as it is told to.
//
//   start ─▶ connect ─▶ AUTH, SUBSCRIBE ─▶ subscribed ─▶ told, told, ...
//              ▲ LINK_NEWS_PAUSE_MS later      └─▶ every LINK_NEWS_LOOK_MS: SUBSCRIBE again, which
//              └── lost, or silent ─────────────── a living peer confirms
//
// Control thread only.
#pragma once

#include "controlplane/link/link_conn.h"

#define LINK_NEWS_PAUSE_MS 250u
#define LINK_NEWS_LOOK_MS 500u

struct link_news_events {
	void (*subscribed)(void *context); // news come from now on
	void (*told)(void *context, const char *message, size_t bytes);
};

struct link_news {
	struct link_conn conn;
	struct event *timer;
	const struct link_news_events *events;
	void *context;
	const char *user, *password, *channel; // the first two may be NULL
	struct link_conn_address address;
	uint32_t answer_ms;
	bool is_started, is_subscribed;
	bool expects_auth; // its reply comes first
	uint64_t messages_total, lost_total;
};

// `news` has user, password, channel and answer_ms; texts outlive it.
// Returns 0 or -ENOMEM; link_news_fini() in either case.
int link_news_init(struct link_news *news, struct event_base *base,
	const struct link_news_events *events, void *context);
void link_news_fini(struct link_news *news);

// Subscribe at `address`; stop. Without events.
void link_news_start(struct link_news *news, const struct link_conn_address *address);
void link_news_stop(struct link_news *news);
