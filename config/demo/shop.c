// A small shop: the origin of the demo, the crowd and the end-to-end tests.
//
// It trusts what sluice tells it (Sluice-Session, Sluice-Room) and keeps a ledger of the sessions
// inside, so that anybody can see how many there are and how many there ever were at once:
//
//   GET  /stats             the ledger as JSON
//   GET  /…/buy             thanks, and `Sluice-Command: end`: the visit is over
//   GET  /…/more            `Sluice-Command: renew`
//   POST /left?session=ID   a visitor is about to leave without buying, or its pass is about to run
//                           out (told by the crowd itself, not through sluice)
//   any other               the shop page
//
// A session is inside from its first request until it bought, left, or `--session` seconds have
// passed since that or since it was renewed. One thread, libevent's evhttp; stops at SIGINT and
// SIGTERM.

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#define LEDGER_SIZE (1u << 20) // sessions remembered; a power of two
#define ID_BYTES 32u

enum visit { VISIT_NONE, VISIT_INSIDE, VISIT_OVER };

struct session {
	char id[ID_BYTES];
	enum visit visit;
	double since_s;
	TAILQ_ENTRY(session) by_age;
};

static struct session ledger[LEDGER_SIZE];
static TAILQ_HEAD(, session) insiders = TAILQ_HEAD_INITIALIZER(insiders); // the oldest first
static uint64_t inside, inside_max, sessions, requests, without_session, after_end;
static double session_s = 600;
static double delay_s;

static double now_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

// The entry of `id`, or the free one where it goes; NULL when the ledger is full.
static struct session *ledger_find(const char *id)
{
	uint64_t hash = 1469598103934665603u; // FNV-1a
	for (const char *c = id; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	for (uint32_t i = 0; i < LEDGER_SIZE; i++) {
		struct session *session = &ledger[(hash + i) & (LEDGER_SIZE - 1)];
		if (session->visit == VISIT_NONE || strncmp(session->id, id, ID_BYTES) == 0)
			return session;
	}
	return NULL;
}

static void ledger_end(struct session *session)
{
	if (session->visit != VISIT_INSIDE)
		return;
	session->visit = VISIT_OVER;
	TAILQ_REMOVE(&insiders, session, by_age);
	inside--;
}

static void ledger_expire(void)
{
	const double limit_s = now_s() - session_s;
	for (struct session *oldest;
		(oldest = TAILQ_FIRST(&insiders)) && oldest->since_s <= limit_s;)
		ledger_end(oldest);
}

static void ledger_begin(struct session *session, const char *id)
{
	snprintf(session->id, ID_BYTES, "%s", id);
	session->visit = VISIT_INSIDE;
	session->since_s = now_s();
	TAILQ_INSERT_TAIL(&insiders, session, by_age);
	sessions++;
	if (++inside > inside_max)
		inside_max = inside;
}

static void ledger_renew(struct session *session)
{
	if (session->visit != VISIT_INSIDE)
		return;
	session->since_s = now_s();
	TAILQ_REMOVE(&insiders, session, by_age);
	TAILQ_INSERT_TAIL(&insiders, session, by_age);
}

static struct session *ledger_seen(const char *id)
{
	struct session *session = ledger_find(id);
	ledger_expire();
	if (!session)
		return NULL;
	if (session->visit == VISIT_OVER)
		after_end++;
	if (session->visit == VISIT_NONE)
		ledger_begin(session, id);
	return session;
}

static void answer_stats(struct evhttp_request *request)
{
	ledger_expire();
	struct evbuffer *body = evbuffer_new();
	evbuffer_add_printf(body,
		"{\"inside\":%" PRIu64 ",\"inside_max\":%" PRIu64 ",\"sessions\":%" PRIu64
		",\"requests\":%" PRIu64 ",\"without_session\":%" PRIu64 ",\"after_end\":%" PRIu64
		"}\n",
		inside, inside_max, sessions, requests, without_session, after_end);
	evhttp_add_header(
		evhttp_request_get_output_headers(request), "Content-Type", "application/json");
	evhttp_send_reply(request, HTTP_OK, "OK", body);
	evbuffer_free(body);
}

static void answer_left(struct evhttp_request *request)
{
	struct evkeyvalq query;
	const char *text = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(request));
	if (text && evhttp_parse_query_str(text, &query) == 0) {
		const char *id = evhttp_find_header(&query, "session");
		struct session *session = id ? ledger_find(id) : NULL;
		if (session)
			ledger_end(session);
		evhttp_clear_headers(&query);
	}
	evhttp_send_reply(request, 204, "No Content", NULL);
}

static void add_page(struct evbuffer *body, const char *room, const char *id, bool bought)
{
	evbuffer_add_printf(body,
		"<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">"
		"<meta name=\"viewport\" content=\"width=device-width\"><title>The shop</title>"
		"<style>body{font:18px/1.5 system-ui;color-scheme:light "
		"dark;max-width:36rem;margin:3rem auto;padding:0 "
		"1rem}"
		"a{display:inline-block;padding:.6rem "
		"1.2rem;border-radius:.5rem;background:#067a55;"
		"color:#fff;text-decoration:none}</style>");
	if (bought)
		evbuffer_add_printf(
			body, "<h1>Thank you</h1><p>Your place is free for the next.</p>");
	else
		evbuffer_add_printf(body,
			"<h1>You are in</h1><p id=\"room\">Room %s, session <code>%s</code></p>"
			"<p><a href=\"/%s/buy\">Buy and leave</a></p>",
			room, id, room);
}

static bool ends_with(const char *text, const char *tail)
{
	size_t len = strlen(text), tail_len = strlen(tail);
	return len >= tail_len && strcmp(text + len - tail_len, tail) == 0;
}

static void answer_page(struct evhttp_request *request)
{
	struct evkeyvalq *in = evhttp_request_get_input_headers(request);
	struct evkeyvalq *out = evhttp_request_get_output_headers(request);
	const char *id = evhttp_find_header(in, "Sluice-Session");
	const char *room = evhttp_find_header(in, "Sluice-Room");
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	bool bought = path && ends_with(path, "/buy");
	struct session *session = id ? ledger_seen(id) : NULL;
	without_session += !id;
	if (bought) {
		evhttp_add_header(out, "Sluice-Command", "end");
		if (session)
			ledger_end(session);
	} else if (path && ends_with(path, "/more")) {
		evhttp_add_header(out, "Sluice-Command", "renew");
		if (session)
			ledger_renew(session);
	}
	struct evbuffer *body = evbuffer_new();
	add_page(body, room ? room : "none", id ? id : "none", bought);
	evhttp_add_header(out, "Content-Type", "text/html; charset=utf-8");
	evhttp_send_reply(request, HTTP_OK, "OK", body);
	evbuffer_free(body);
}

static void on_late(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	answer_page(context);
}

static void on_request(struct evhttp_request *request, void *context)
{
	const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(request));
	if (path && strcmp(path, "/stats") == 0) {
		answer_stats(request);
		return;
	}
	if (path && strcmp(path, "/left") == 0) {
		answer_left(request);
		return;
	}
	requests++;
	struct timeval delay = {(time_t)delay_s, (long)((delay_s - (double)(time_t)delay_s) * 1e6)};
	if (delay_s > 0)
		event_base_once(context, -1, EV_TIMEOUT, on_late, request, &delay);
	else
		answer_page(request);
}

static void on_signal(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	event_base_loopbreak(context);
}

static int usage(void)
{
	fprintf(stderr, "usage: shop [--address 127.0.0.1] [--port 9000] [--session SECONDS]"
			" [--delay SECONDS]\n");
	return 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"address", required_argument, NULL, 'a'},
		{"port", required_argument, NULL, 'p'}, {"session", required_argument, NULL, 's'},
		{"delay", required_argument, NULL, 'd'}, {0}};
	const char *address = "127.0.0.1";
	long port = 9000;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		if (option == 'a')
			address = optarg;
		else if (option == 'p')
			port = strtol(optarg, NULL, 10);
		else if (option == 's')
			session_s = strtod(optarg, NULL);
		else if (option == 'd')
			delay_s = strtod(optarg, NULL);
		else
			return usage();
	}
	if (optind != argc || port < 1 || port > 65535)
		return usage();
	signal(SIGPIPE, SIG_IGN);
	struct event_base *base = event_base_new();
	struct evhttp *http = evhttp_new(base);
	evhttp_set_timeout(http, 120);
	evhttp_set_gencb(http, on_request, base);
	if (evhttp_bind_socket(http, address, (uint16_t)port) < 0) {
		perror("shop: bind");
		return 1;
	}
	event_add(evsignal_new(base, SIGINT, on_signal, base), NULL);
	event_add(evsignal_new(base, SIGTERM, on_signal, base), NULL);
	printf("shop on http://%s:%ld/\n", address, port);
	fflush(stdout);
	event_base_dispatch(base);
	evhttp_free(http);
	event_base_free(base);
	return 0;
}
