// Each ticket has an entry of its own in the room's index, among as many others.

#include "bench/requests.h"

#include "dataplane/gate/place.h"

#include <stdio.h>
#include <stdlib.h>

#define SLOTS_APART 15u

// What a browser sends with fetch(), and with a visit.
#define POLL_FORMAT \
	"GET /.sluice/derby/status HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n" \
	"Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n" \
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " \
	"Chrome/126.0.0.0 Safari/537.36\r\nAccept-Encoding: gzip, deflate, br\r\n" \
	"Accept-Language: en-US,en;q=0.9\r\nCookie: sluice-t-derby=%.64s\r\n\r\n"
#define VISIT_FORMAT \
	"GET /derby/ HTTP/1.1\r\nHost: localhost\r\nAccept: text/html,application/xhtml+xml," \
	"application/xml;q=0.9,*/*;q=0.8\r\n" \
	"Sec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n" \
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) " \
	"Chrome/126.0.0.0 Safari/537.36\r\nAccept-Encoding: gzip, deflate, br\r\n" \
	"Accept-Language: en-US,en;q=0.9\r\nCookie: sluice-%c-derby=%.64s\r\n\r\n"

struct requests_kind requests_polls, requests_pages, requests_visits;

static void sign(const struct stage *stage, struct token token, char text[TOKEN_TEXT_BYTES])
{
	token.line_id = stage->derby->line_id;
	token.visitor = random();
	token.issued = stage->w->now_s;
	token_sign(&stage->snapshot->secrets, &token, text);
}

static void write_set(const struct stage *stage, unsigned set, unsigned i)
{
	char ticket[TOKEN_TEXT_BYTES], pass[TOKEN_TEXT_BYTES];
	uint64_t slot = stage->w->now_ms / PLACE_SLOT_MS + SLOTS_APART * (set * REQUESTS_COUNT + i),
		 key = 0;
	for (unsigned n = 0; n < SLOTS_APART; n++)
		key = place_mint(stage->derby, slot + n, 0);
	sign(stage, (struct token){.kind = TOKEN_TICKET, .key = key}, ticket);
	sign(stage, (struct token){.kind = TOKEN_PASS, .key = i + 1, .expires = UINT32_MAX}, pass);
	requests_polls.len[set][i] = (uint32_t)snprintf(
		requests_polls.text[set][i], REQUESTS_BYTES_MAX, POLL_FORMAT, ticket);
	requests_pages.len[set][i] = (uint32_t)snprintf(
		requests_pages.text[set][i], REQUESTS_BYTES_MAX, VISIT_FORMAT, 't', ticket);
	requests_visits.len[set][i] = (uint32_t)snprintf(
		requests_visits.text[set][i], REQUESTS_BYTES_MAX, VISIT_FORMAT, 'p', pass);
}

void requests_begin(struct stage *stage)
{
	for (unsigned set = 0; set < REQUESTS_SETS; set++)
		for (unsigned i = 0; i < REQUESTS_COUNT; i++)
			write_set(stage, set, i);
	place_close(stage->derby,
		stage->w->now_ms / PLACE_SLOT_MS + SLOTS_APART * REQUESTS_SETS * REQUESTS_COUNT);
}
