// One list of figures, printed in two ways. A figure that could not be taken is absent.

#include "bench/crowd/report.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "bench/crowd/answer.h"

#define PATIENCE_S 20

struct printer {
	FILE *file;
	bool is_json, has_printed;
};

static void put(struct printer *p, const char *key, double value, const char *text)
{
	if (value < 0 || isnan(value))
		return;
	if (p->is_json)
		fprintf(p->file, "%s\"%s\":%.10g", p->has_printed ? "," : "{", key, value);
	else
		fprintf(p->file, "%-22s %12.10g  %s\n", key, value, text);
	p->has_printed = true;
}

static void put_time(
	struct printer *p, const char *name, const struct histogram *h, const char *text)
{
	static const struct {
		const char *name;
		double share;
	} points[] = {{"p50", .5}, {"p90", .9}, {"p99", .99}, {"p999", .999}, {"max", 1}};
	char key[64];
	if (h->count == 0)
		return;
	if (!p->is_json)
		fprintf(p->file, "%-22s", name);
	for (unsigned i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		const double ms = (double)histogram_value(h, points[i].share) / 1e3;
		snprintf(key, sizeof(key), "%s_%s_ms", name, points[i].name);
		if (p->is_json)
			put(p, key, ms, text);
		else
			fprintf(p->file, " %9.2f", ms);
	}
	if (!p->is_json)
		fprintf(p->file, "  %s (%llu)\n", text, (unsigned long long)h->count);
}

static void put_heading(struct printer *p, const char *text)
{
	if (!p->is_json)
		fprintf(p->file, "\n%s\n", text);
}

static void put_shop(struct printer *p, const struct report_shop *shop)
{
	put(p, "shop_sessions_max", shop->inside_max, "sessions at once, as the shop saw them");
	put(p, "shop_sessions", shop->sessions, "sessions it ever saw");
	put(p, "shop_inside", shop->inside, "still inside");
	put(p, "shop_requests", shop->requests, "requests");
	put(p, "shop_without_session", shop->without_session, "of these, that named no session");
	put(p, "shop_after_end", shop->after_end, "of these, of a session that was over");
}

void report_print(const struct plan *plan, const struct tally *tally,
	const struct judge_finding *finding, const struct report_shop *shop, double ran_s,
	FILE *file)
{
	struct printer p = {.file = file, .is_json = plan->json};
	put(&p, "seconds", ran_s, "");
#define X(name, text) put(&p, #name, (double)tally->name, text);
	TALLY_COUNTS(X)
#undef X
	put_heading(&p, "ms                           p50       p90       p99     p99.9       max");
#define X(name, text) put_time(&p, #name, &tally->name##_us, text);
	TALLY_TIMES(X)
#undef X
	put_heading(&p, "order, rate and capacity");
	put(&p, "inversions", (double)finding->inversions,
		"grants before present visitors of smaller keys, beyond the reservations");
	put(&p, "overtakes", (double)finding->overtakes, "the same, reservations or not");
	put(&p, "overtaken_max", (double)finding->overtaken_max, "visitors overtaken by one grant");
	put(&p, "arrivals_overtaken", (double)finding->arrivals_overtaken,
		"visitors whom somebody stands before who came more than 50 ms later");
	put(&p, "places_double", (double)finding->places_double,
		"keys or positions that somebody else has too");
	put(&p, "places_told", tally->place_count, "visitors who were told a position");
	put(&p, "second_max", (double)finding->second_max, "sessions begun in a second");
	put(&p, "window_max", (double)finding->window_max, "sessions begun in 60 seconds on end");
	put(&p, "held_max", (double)finding->held_max, "sessions at once, as the crowd saw them");
	const double rate = finding->waiting_s > 0
				    ? (double)finding->waiting_admitted / finding->waiting_s
				    : -1;
	put(&p, "waiting_seconds", finding->waiting_s, "in which somebody waited");
	put(&p, "rate", rate, "people a second let in from the line meanwhile");
	if (plan->rate > 0 && rate >= 0)
		put(&p, "rate_error", fabs(rate / plan->rate - 1), "relative to the room's");
	put_shop(&p, shop);
	if (p.is_json)
		fprintf(p.file, "}\n");
}

static bool ask(int fd, struct answer *answer)
{
	static const char text[] = "GET /stats HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n";
	char bytes[4096];
	if (send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL) != sizeof(text) - 1)
		return false;
	answer_begin(answer);
	for (;;) {
		const ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
		if (got <= 0)
			return answer_is_whole_at_end(answer);
		const enum answer_result result =
			answer_feed(answer, (struct span){bytes, (size_t)got});
		if (result != ANSWER_MORE)
			return result == ANSWER_DONE;
	}
}

static double figure(const struct answer *answer, const char *name)
{
	const struct span value = answer_json(answer, name);
	return value.at ? strtod(value.at, NULL) : -1;
}

void report_ask_shop(const struct plan_peer *peer, struct report_shop *shop)
{
	static struct answer answer;
	*shop = (struct report_shop){-1, -1, -1, -1, -1, -1};
	if (peer->bytes == 0)
		return;
	const int fd = socket(peer->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	if (fd < 0)
		return;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&peer->address, peer->bytes) == 0 &&
		ask(fd, &answer))
		*shop = (struct report_shop){
			.inside = figure(&answer, "inside"),
			.inside_max = figure(&answer, "inside_max"),
			.sessions = figure(&answer, "sessions"),
			.requests = figure(&answer, "requests"),
			.without_session = figure(&answer, "without_session"),
			.after_end = figure(&answer, "after_end"),
		};
	close(fd);
}
