// The scene that decisions are tested in: one room whose line has ten tickets. Those below 2 have
// lapsed, those from 2 to 4 are called, the others wait.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/gate/decide.h"
#include "dataplane/gate/pace.h"
#include "dataplane/gate/place.h"
#include "dataplane/http/head.h"

#define NOW_S 1800000000u
#define NOW_SLOT (NOW_S * 1000ull / PLACE_SLOT_MS)
#define TICKETS 10
#define FIRST_CALLED 2
#define FIRST_WAITING 5
#define ENTRIES 64
#define LINE_ID 7
#define TTL_S 86400
#define LIFE_S 600
#define HOLD (PLACE_OPEN_LINE | PLACE_OPEN_HOLD)

static struct place_line *line;
static uint64_t keys[TICKETS];
static struct gate_site site = {.name = {"shop", 4}};
static struct gate_room room;
static struct gate_request request;
static struct decide_input input;
static struct decision decision;

static int scene(void **state)
{
	(void)state;
	free(line);
	line = calloc(1, place_line_bytes(ENTRIES));
	assert_non_null(line);
	place_line_init(line, LINE_ID, ENTRIES);
	assert_true(place_begin(line, NOW_SLOT - 1000));
	for (int i = 0; i < TICKETS; i++)
		keys[i] = place_mint(line, NOW_SLOT - 900 + (uint64_t)i, 0);
	place_close(line, NOW_SLOT - 800);
	atomic_store(&line->floor, keys[FIRST_CALLED]);
	atomic_store(&line->threshold_rank, FIRST_WAITING);
	atomic_store(&line->threshold, keys[FIRST_WAITING]);
	atomic_store(&line->open, PLACE_OPEN_LINE);
	atomic_store(&line->wait_low, 2ull << 32);
	atomic_store(&line->wait_high, 3ull << 32);
	atomic_store(&line->next_poll_after, 4);
	room = (struct gate_room){.name = {"derby", 5},
		.line_id = LINE_ID,
		.index = 3,
		.queue_status = 200,
		.session_s = LIFE_S,
		.ticket_ttl_s = TTL_S,
		.line_max = UINT64_MAX,
		.line = line};
	memset(&request, 0, sizeof(request));
	request.route = GATE_ROUTE_GUARDED;
	request.method = HTTP_GET;
	request.draws = true;
	request.site = &site;
	request.room = &room;
	input = (struct decide_input){.request = &request,
		.now_ms = NOW_S * 1000ull,
		.now_s = NOW_S,
		.fresh_visitor = 0xf4e5,
		.random = 0};
	return 0;
}

static int scene_end(void **state)
{
	(void)state;
	free(line);
	line = NULL;
	return 0;
}

static struct gate_token *carry(enum token_kind kind, enum carrier carrier)
{
	struct gate_token *token = &request.tokens[request.token_count++];
	*token = (struct gate_token){.state = GATE_TOKEN_VALID,
		.carried = {.carrier = (uint8_t)carrier, .kind = (uint8_t)kind},
		.token = {.kind = (uint8_t)kind,
			.line_id = LINE_ID,
			.visitor = 0xabc,
			.issued = NOW_S - 100}};
	return token;
}

static inline void carry_ticket(uint64_t key, enum carrier carrier)
{
	struct gate_token *token = carry(TOKEN_TICKET, carrier);
	token->token.key = key;
	if (!request.ticket || key < request.ticket->token.key)
		request.ticket = token;
}

static inline void carry_pass(uint32_t age_s, enum carrier carrier)
{
	struct gate_token *token = carry(TOKEN_PASS, carrier);
	token->token.key = 0x5e55;
	token->token.issued = NOW_S - age_s;
	token->token.expires = NOW_S - age_s + LIFE_S;
	if (age_s < LIFE_S)
		request.pass = token;
	else
		request.pass_over = token;
}

static void run(void)
{
	memset(&decision, 0xaa, sizeof(decision));
	decide(&input, &decision);
}
