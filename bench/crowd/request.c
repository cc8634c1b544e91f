// The fields are those that Chromium sends, so that heads are as long as they will be.

#include "bench/crowd/request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

static const char browser[] =
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
	"Chrome/126.0.0.0 Safari/537.36\r\n"
	"Accept-Encoding: gzip, deflate, br\r\n"
	"Accept-Language: en-US,en;q=0.9\r\n";
static const char navigation[] =
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,"
	"*/*;q=0.8\r\n"
	"Sec-Fetch-Site: none\r\n"
	"Sec-Fetch-Mode: navigate\r\n"
	"Sec-Fetch-User: ?1\r\n"
	"Sec-Fetch-Dest: document\r\n"
	"Upgrade-Insecure-Requests: 1\r\n";
static const char script[] = "Accept: application/json\r\n"
			     "Sec-Fetch-Site: same-origin\r\n"
			     "Sec-Fetch-Mode: cors\r\n"
			     "Sec-Fetch-Dest: empty\r\n";

static int write_cookies(
	const struct plan *plan, const struct request_carried *carried, char *out, size_t bytes)
{
	const struct span t = carried->ticket, p = carried->pass;
	if (t.len && p.len)
		return snprintf(out, bytes, "Cookie: sluice-t-%s=%.*s; sluice-p-%s=%.*s\r\n",
			plan->room, (int)t.len, t.at, plan->room, (int)p.len, p.at);
	if (t.len)
		return snprintf(
			out, bytes, "Cookie: sluice-t-%s=%.*s\r\n", plan->room, (int)t.len, t.at);
	if (p.len)
		return snprintf(
			out, bytes, "Cookie: sluice-p-%s=%.*s\r\n", plan->room, (int)p.len, p.at);
	out[0] = '\0';
	return 0;
}

size_t request_write(const struct plan *plan, enum request request,
	const struct request_carried *carried, char *out)
{
	char cookies[512 + 2 * PLAN_TEXT_MAX];
	int bytes = 0;
	write_cookies(plan, carried, cookies, sizeof(cookies));
	switch (request) {
	case REQUEST_PAGE:
	case REQUEST_BUY:
		bytes = snprintf(out, REQUEST_BYTES_MAX,
			"GET %s%s HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", plan->path,
			request == REQUEST_BUY ? "buy" : "", plan->host, navigation, browser,
			cookies);
		break;
	case REQUEST_STATUS:
		bytes = snprintf(out, REQUEST_BYTES_MAX,
			"GET /.sluice/%s/status HTTP/1.1\r\nHost: %s\r\n%s%s%s\r\n", plan->room,
			plan->host, script, browser, cookies);
		break;
	case REQUEST_LEAVE:
		bytes = snprintf(out, REQUEST_BYTES_MAX,
			"POST /.sluice/%s/leave HTTP/1.1\r\nHost: %s\r\nContent-Length: "
			"0\r\n%s%s%s\r\n",
			plan->room, plan->host, script, browser, cookies);
		break;
	case REQUEST_TELL:
		bytes = snprintf(out, REQUEST_BYTES_MAX,
			"POST /left?session=%016" PRIx64 " HTTP/1.1\r\nHost: shop\r\n"
			"Content-Length: 0\r\nConnection: close\r\n\r\n",
			carried->session);
		break;
	case REQUEST_NONE:
		break;
	}
	assert(bytes > 0 && bytes < (int)REQUEST_BYTES_MAX);
	return (size_t)bytes;
}
