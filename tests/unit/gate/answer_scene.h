// The scene that answers are tested in: one visitor of one room, and a strict reader of what comes
// out.
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "controlplane/pages/folder.h"
#include "dataplane/gate/answer.h"
#include "dataplane/gate/page.h"
#include "dataplane/http/head.h"

#define NOW_S 1800000000u
#define DATE "Fri, 15 Jan 2027 08:00:00 GMT"
#define TOKEN_CHARACTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

static struct folder *folder;
static struct token_secrets secrets;
static struct gate_site site;
static struct gate_room room;
static struct gate_request request;
static struct decision decision;
static struct answer_frame frame;
static struct carry_stale stale;
static char out[ANSWER_BYTES_MAX + 1];
static size_t out_len;
static struct http_head head;

static int start(void **state)
{
	(void)state;
	const struct template_ear ear = {NULL, NULL}; // nothing is wrong with them
	token_secrets_add(&secrets, 3, (const uint8_t *)"0123456789abcdef", 16);
	secrets.current = 3;
	return folder_read(NULL, "en", NULL, &ear, NULL, &folder);
}

static int stop(void **state)
{
	(void)state;
	folder_give(folder);
	return 0;
}

static int scene(void **state)
{
	(void)state;
	site = (struct gate_site){.name = {"shop", 4}, .pass_same_site = GATE_SAME_SITE_NONE};
	room = (struct gate_room){.name = {"derby", 5},
		.line_id = 7,
		.queue_status = 200,
		.ticket_ttl_s = 86400,
		.pages = folder_set(folder)};
	memset(&request, 0, sizeof(request));
	request.route = GATE_ROUTE_GUARDED;
	request.method = HTTP_GET;
	request.site = &site;
	request.room = &room;
	request.host = SPAN("tickets.club.example");
	stale.count = 0;
	decision = (struct decision){.action = DECIDE_ANSWER,
		.answer = DECIDE_PAGE,
		.ticket = {.kind = TOKEN_TICKET,
			.line_id = 7,
			.key = 9,
			.visitor = 5,
			.issued = NOW_S},
		.pass = {.kind = TOKEN_PASS,
			.line_id = 7,
			.key = 8,
			.visitor = 5,
			.issued = NOW_S,
			.expires = NOW_S + 600},
		.status = {.state = STATUS_waiting,
			.exact = true,
			.poll_after = 5,
			.position = 47382,
			.ahead = 46110,
			.ahead_min = STATUS_UNKNOWN,
			.eta_low = 1200,
			.eta_high = 1500,
			.now = NOW_S}};
	frame = (struct answer_frame){.date = DATE,
		.secrets = &secrets,
		.now_s = NOW_S,
		.minor = 1,
		.site = &site,
		.stale = &stale};
	return 0;
}

// --- reading what was rendered

static void read_answer(enum http_method method)
{
	static const struct http_limits limits = {1024, 16384, HTTP_FIELDS_MAX};
	uint32_t scanned = 0, bytes = 0;
	struct span all = {out, out_len};
	assert_int_equal(http_head_end(all, &limits, &scanned, &bytes), HTTP_OK);
	struct span text = {out, bytes};
	assert_int_equal(http_answer_parse(text, &limits, method, &head), HTTP_OK);
	uint64_t body = head.body == HTTP_BODY_LENGTH ? head.content_length : 0;
	assert_int_equal(out_len - bytes, body);
}

static inline void render(void)
{
	memset(out, '~', sizeof(out));
	out_len = answer_render(&decision, &request, &frame, out);
	assert_int_equal(out[out_len], '~');
	read_answer(frame.is_head ? HTTP_HEAD : HTTP_GET);
}

// The value of the `nth` field of that name, or NULL.
static const char *field(const char *name, unsigned nth)
{
	static char value[4096];
	for (uint16_t i = 0; i < head.field_count; i++) {
		struct span is = http_field_name(&head, &head.fields[i]);
		if (is.len != strlen(name) || memcmp(is.at, name, is.len) != 0 || nth-- > 0)
			continue;
		struct span found = http_field_value(&head, &head.fields[i]);
		assert_true(found.len < sizeof(value));
		memcpy(value, found.at, found.len);
		value[found.len] = 0;
		return value;
	}
	return NULL;
}

static inline void assert_field(const char *name, const char *value)
{
	const char *found = field(name, 0);
	assert_non_null(found);
	assert_string_equal(found, value);
	assert_null(field(name, 1));
}

static inline json_t *body_json(void)
{
	json_t *json = json_loadb(
		out + head.head_bytes, out_len - head.head_bytes, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(json);
	return json;
}

// The signed text of a token, as it is expected.
static inline const char *token_text(const struct token *token)
{
	static char text[TOKEN_TEXT_BYTES + 1];
	struct token copy = *token;
	token_sign(&secrets, &copy, text);
	return text;
}

static inline struct gate_token *carry(enum token_kind kind, enum carrier carrier)
{
	struct gate_token *token = &request.tokens[request.token_count++];
	*token = (struct gate_token){
		.carried = {.carrier = (uint8_t)carrier, .kind = (uint8_t)kind}};
	return token;
}
