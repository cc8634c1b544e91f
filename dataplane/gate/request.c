// Reading a request: route, wishes, tokens.
//
// Everything is taken from the head once, in the order in which it can end the reading: host, path,
// endpoint, what the visitor may have, what they carry. Wishes (language, JSON or HTML, whether a
// ticket may be drawn) cost more than the rest of a status poll and are not read for endpoints,
// which do not ask.
//
// Tokens are gone through twice, around the MACs: first decoded, so that only what could be valid
// costs a MAC, and what this connection has shown before costs a comparison; then settled. All that
// can change while a connection lives is checked for remembered tokens too: room, date, end, and
// that the secret is still valid.

#include "dataplane/gate/request.h"

#include "dataplane/gate/lane.h"
#include "dataplane/gate/page.h"
#include "dataplane/http/accept.h"
#include "dataplane/http/head.h"
#include "dataplane/http/octet.h"

#include <assert.h>
#include <stddef.h>

#define HOST_SCRATCH_BYTES (MATCH_HOST_BYTES_MAX + 1)

static const struct gate_site no_site; // where a host names none: all it has is /.sluice/

static bool read_host(const struct gate_map *map, const struct http_head *head, char *scratch,
	struct gate_request *request);
static enum gate_route read_endpoint(
	const struct gate_map *map, struct span endpoint, struct gate_request *request);
static void read_wishes(const struct http_head *head, struct gate_request *request);
static void read_cookies(const struct http_head *head, char *scratch, struct gate_request *request);
static void read_carried(const struct http_head *head, char *scratch, struct gate_request *request);
static bool is_cross_site(const struct http_head *head, struct span host);

static enum gate_route read_route(const struct gate_map *map, const struct http_head *head,
	char *scratch, struct gate_request *request)
{
	if (!read_host(map, head, scratch, request))
		return GATE_ROUTE_BAD;
	if (request->site && span_is_equal(head->target, SPAN("*")))
		return GATE_ROUTE_SERVER;
	const struct gate_site *site = request->site ? request->site : &no_site;
	struct match match = match_path(site, head->target, scratch + HOST_SCRATCH_BYTES);
	if (match.kind == MATCH_SLUICE && span_is_equal(match.endpoint, SPAN("health")))
		return GATE_ROUTE_HEALTH;
	if (!request->site)
		return GATE_ROUTE_MISDIRECTED;
	if (match.kind == MATCH_BAD)
		return GATE_ROUTE_BAD;
	if (match.kind == MATCH_SLUICE)
		return read_endpoint(map, match.endpoint, request);
	request->room = match.room;
	return match.room ? GATE_ROUTE_GUARDED : GATE_ROUTE_UNGUARDED;
}

void gate_request_read(const struct gate_map *map, const struct http_head *head, char *scratch,
	struct gate_request *request)
{
	memset(request, 0, offsetof(struct gate_request, tokens));
	request->method = head->method;
	request->target = head->target;
	request->has_body = head->body == HTTP_BODY_CHUNKED || head->content_length > 0;
	request->route = read_route(map, head, scratch, request);
	const bool is_code = request->route == GATE_ROUTE_CODE;
	if (is_code || request->route < GATE_ROUTE_STATUS || request->route > GATE_ROUTE_HEALTH)
		read_wishes(head, request);
	if (is_code || request->route == GATE_ROUTE_LEAVE)
		request->is_cross_site = is_cross_site(head, request->host);
	read_cookies(head, scratch, request);
}

void gate_request_keep(const struct gate_request *request, struct gate_request_kept *kept)
{
	assert(!request->ticket && !request->pass && !request->pass_over); // not settled yet
	memcpy(kept->found, request, sizeof(kept->found));
	kept->host_bytes = (uint16_t)request->host.len;
	memcpy(kept->host, request->host.at ? request->host.at : "", kept->host_bytes);
}

void gate_request_again(const struct gate_request_kept *kept, const struct http_head *head,
	char *scratch, struct gate_request *request)
{
	memcpy(request, kept->found, sizeof(kept->found));
	memset((char *)request + sizeof(kept->found), 0,
		offsetof(struct gate_request, tokens) - sizeof(kept->found));
	request->target = head->target;
	request->redirect = (struct span){NULL, 0};
	if (request->host.at)
		request->host.at = memcpy(scratch, kept->host, kept->host_bytes);
	read_cookies(head, scratch, request);
}

// What may differ between requests that are alike otherwise.
static void read_cookies(const struct http_head *head, char *scratch, struct gate_request *request)
{
	request->has_other_cookies = http_field_first(head, HTTP_FIELD_cookie) != NULL;
	if (request->room)
		read_carried(head,
			scratch + HOST_SCRATCH_BYTES + MATCH_SCRATCH_BYTES(head->target.len),
			request);
}

// Which site was asked. An absolute-form target names a host as well, and has to name the same:
// returns false if it does not.
static bool read_host(const struct gate_map *map, const struct http_head *head, char *scratch,
	struct gate_request *request)
{
	struct span host = head->host.at ? head->host : head->authority;
	if (head->absolute_form && head->host.at) {
		char other[HOST_SCRATCH_BYTES];
		struct span named = match_host(head->authority, other);
		if (!named.at || !span_is_equal(named, match_host(host, scratch)))
			return false;
	}
	request->site = gate_map_site(map, host, scratch, &request->host);
	return true;
}

// LANE/draw and LANE/draw/keys of a room: what anybody may see of a lane. Endpoints of rooms have
// no such names, so a lane may be called `draw` too.
static enum gate_route read_lane_endpoint(
	const struct gate_room *room, struct span endpoint, struct gate_request *request)
{
	const char *slash = endpoint.len ? memchr(endpoint.at, '/', endpoint.len) : NULL;
	if (!slash)
		return GATE_ROUTE_UNKNOWN;
	const struct span name = {endpoint.at, slash - endpoint.at};
	const struct span rest = span_from(endpoint, name.len + 1);
	const bool is_list = span_is_equal(rest, SPAN("draw/keys"));
	const struct gate_room *lane = lane_of_name(room, name);
	if (!lane || (!is_list && !span_is_equal(rest, SPAN("draw"))))
		return GATE_ROUTE_UNKNOWN;
	request->room = lane;
	return is_list ? GATE_ROUTE_DRAW_KEYS : GATE_ROUTE_DRAW;
}

// ROOM/status and the others; the room has to be one of this site.
static enum gate_route read_endpoint(
	const struct gate_map *map, struct span endpoint, struct gate_request *request)
{
	static const struct {
		struct span name;
		enum gate_route route;
	} endpoints[] = {
		{{"status", 6}, GATE_ROUTE_STATUS},
		{{"leave", 5}, GATE_ROUTE_LEAVE},
		{{"draw", 4}, GATE_ROUTE_DRAW},
		{{"draw/keys", 9}, GATE_ROUTE_DRAW_KEYS},
		{{"code", 4}, GATE_ROUTE_CODE},
	};
	const char *slash = endpoint.len ? memchr(endpoint.at, '/', endpoint.len) : NULL;
	if (!slash)
		return GATE_ROUTE_UNKNOWN;
	struct span name = {endpoint.at, slash - endpoint.at};
	if (span_is_equal(name, SPAN("assets"))) {
		request->asset = gate_map_asset(map, span_from(endpoint, name.len + 1));
		return request->asset ? GATE_ROUTE_ASSET : GATE_ROUTE_UNKNOWN;
	}
	const struct gate_room *room = gate_map_room(map, name);
	if (!room || &map->sites[room->site] != request->site)
		return GATE_ROUTE_UNKNOWN;
	for (size_t i = 0; i < sizeof(endpoints) / sizeof(endpoints[0]); i++)
		if (span_is_equal(span_from(endpoint, name.len + 1), endpoints[i].name)) {
			if (endpoints[i].route == GATE_ROUTE_CODE && !room->takes_codes)
				return GATE_ROUTE_UNKNOWN;
			request->room = room;
			return endpoints[i].route;
		}
	return read_lane_endpoint(room, span_from(endpoint, name.len + 1), request);
}

static bool has_fetch_metadata(const struct http_head *head)
{
	const struct span prefix = SPAN("sec-fetch-");
	for (uint16_t i = 0; i < head->field_count; i++) {
		struct span name = http_field_name(head, &head->fields[i]);
		if (name.len >= prefix.len &&
			span_is_equal_caseless((struct span){name.at, prefix.len}, prefix))
			return true;
	}
	return false;
}

// Whether somebody looks at what comes back, and not a page that loads its parts: (a), (b) and (c)
// of contract section 2.
static bool is_visit(const struct http_head *head, const struct accept_types *types)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_sec_fetch_mode);
	if (field) {
		struct span mode = http_field_value(head, field);
		if (span_is_equal(mode, SPAN("navigate")))
			return true;
		bool is_script = span_is_equal(mode, SPAN("cors")) ||
				 span_is_equal(mode, SPAN("same-origin"));
		return is_script && types->ranks_json_first;
	}
	if (has_fetch_metadata(head))
		return false;
	if (types->names_html_or_json)
		return true;
	return (types->is_any || types->is_absent) && !http_field_first(head, HTTP_FIELD_referer);
}

// Whether a field says `prefetch`, perhaps with parameters: `prefetch;prerender`.
static bool says_prefetch(const struct http_head *head, enum http_field_id id)
{
	const struct span prefetch = SPAN("prefetch");
	const struct http_field *field = http_field_first(head, id);
	for (; field; field = http_field_next(head, field)) {
		struct span value = http_field_value(head, field);
		size_t len = 0;
		while (len < value.len && octet_is(value.at[len], OCTET_TOKEN))
			len++;
		if (span_is_equal_caseless((struct span){value.at, len}, prefetch))
			return true;
	}
	return false;
}

// The pages that answers to the request come from; NULL: no site answers to its host.
static const struct page_set *page_set_of(const struct gate_request *request)
{
	if (request->room)
		return request->room->pages;
	return request->site ? request->site->pages : NULL;
}

static void read_wishes(const struct http_head *head, struct gate_request *request)
{
	struct accept_types types = accept_types(head);
	request->wants_json = types.ranks_json_first;
	const struct page_set *pages = page_set_of(request);
	if (pages)
		request->language = accept_language(head, pages->languages, pages->language_count);
	request->encoding = accept_encoding(head);
	request->is_prefetch = says_prefetch(head, HTTP_FIELD_sec_purpose) ||
			       says_prefetch(head, HTTP_FIELD_purpose);
	request->draws =
		head->method == HTTP_GET && !request->is_prefetch && is_visit(head, &types);
	// One that asks for an upgrade would open a tunnel past the gate.
	request->is_preflight = head->method == HTTP_OPTIONS && !request->has_body &&
				!http_field_first(head, HTTP_FIELD_upgrade) &&
				http_field_first(head, HTTP_FIELD_origin) &&
				http_field_first(head, HTTP_FIELD_access_control_request_method);
}

// Whether a page of another host sent this, by what the browser says of it. Who sends neither field
// is no browser, and no page made them send it.
static bool is_cross_site(const struct http_head *head, struct span host)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_sec_fetch_site);
	for (; field; field = http_field_next(head, field)) {
		struct span site = http_field_value(head, field);
		if (!span_is_equal(site, SPAN("same-origin")) &&
			!span_is_equal(site, SPAN("same-site")) &&
			!span_is_equal(site, SPAN("none")))
			return true;
	}
	field = http_field_first(head, HTTP_FIELD_origin);
	for (; field; field = http_field_next(head, field)) {
		struct span origin = http_field_value(head, field); // scheme://host[:port] or null
		const char *authority = memmem(origin.at, origin.len, "://", 3);
		if (!authority)
			return true;
		char scratch[HOST_SCRATCH_BYTES];
		struct span from = span_from(origin, authority + 3 - origin.at);
		if (!span_is_equal(match_host(from, scratch), host))
			return true;
	}
	return false;
}

static void read_carried(const struct http_head *head, char *scratch, struct gate_request *request)
{
	struct carried found[CARRY_TOKENS_MAX];
	request->token_count =
		carry_collect(head, request->room, found, &request->has_other_cookies);
	for (uint32_t i = 0; i < request->token_count; i++) {
		request->tokens[i].carried = found[i];
		request->tokens[i].state = GATE_TOKEN_NONE;
		if (found[i].carrier == CARRY_QUERY && found[i].kind == TOKEN_TICKET)
			request->redirect = carry_redirect(head->target, scratch);
	}
}

// Decode one token. Returns the key to check it with, or NULL if it counts as none.
static const struct mac_key *token_read(struct gate_token *token, const struct gate_room *room,
	const struct token_secrets *secrets, uint64_t now_s)
{
	const struct token *fields = &token->token;
	if (!token_decode(token->carried.text, &token->wire, &token->token))
		return NULL;
	if (fields->kind != token->carried.kind)
		return NULL;
	if (fields->line_id != room->line_id && !lane_of_line(room, fields->line_id))
		return NULL;
	if (token_is_dated_ahead(fields, now_s))
		return NULL;
	return token_key(secrets, fields);
}

static bool is_remembered(const struct gate_remembered *remembered, const struct gate_token *token)
{
	if (!remembered)
		return false;
	bool is_pass = token->token.kind == TOKEN_PASS;
	return token->print == (is_pass ? remembered->pass : remembered->ticket);
}

uint32_t gate_request_tokens(struct gate_request *request, const struct token_secrets *secrets,
	const struct token_print_key *key, const struct gate_remembered *remembered, uint64_t now_s,
	struct mac_job *jobs)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < request->token_count; i++) {
		struct gate_token *token = &request->tokens[i];
		const struct mac_key *secret = token_read(token, request->room, secrets, now_s);
		token->state = GATE_TOKEN_NONE;
		if (!secret)
			continue;
		token->print = token_print(key, &token->wire);
		token->state = GATE_TOKEN_VALID;
		if (is_remembered(remembered, token))
			continue;
		token->state = GATE_TOKEN_PENDING;
		jobs[count++] = (struct mac_job){secret, token->wire.body, token->tag};
	}
	return count;
}

// Of two valid tickets one of a lane counts, then the smaller key; of equal ones that of the query,
// which is then taken out of the address.
static bool is_better_ticket(const struct gate_request *request, const struct gate_token *token,
	const struct gate_token *than)
{
	const uint32_t line_id = request->room->line_id;
	if (than && (token->token.line_id == line_id) != (than->token.line_id == line_id))
		return than->token.line_id == line_id;
	if (!than || token->token.key != than->token.key)
		return !than || token->token.key < than->token.key;
	return token->carried.carrier == CARRY_QUERY;
}

static bool is_better_pass(const struct gate_token *token, const struct gate_token *than)
{
	return !than || token->token.expires > than->token.expires;
}

static void settle_one(struct gate_request *request, const struct gate_token *token)
{
	if (token->token.kind == TOKEN_TICKET && is_better_ticket(request, token, request->ticket))
		request->ticket = token;
	if (token->token.kind == TOKEN_INVITATION)
		request->invitation = token;
	if (token->token.kind == TOKEN_PASS && is_better_pass(token, request->pass))
		request->pass = token;
}

// Which line the visitor is in: that of the pass, else where an invitation leads, else that of the
// ticket, else the one that such newcomers enter.
static void settle_lane(struct gate_request *request, uint64_t now_s)
{
	const struct gate_token *invitation = request->invitation, *pass = request->pass;
	if (invitation && invitation->token.expires > 0 && invitation->token.expires <= now_s) {
		invitation = NULL;
		request->entry_by = GATE_ENTRY_OVER;
	}
	if (invitation && request->ticket &&
		request->ticket->token.line_id != invitation->token.line_id) {
		request->outranked = request->ticket;
		request->ticket = NULL;
	}
	if (pass) {
		request->room = lane_of_line(request->room, pass->token.line_id);
	} else if (invitation) {
		request->room = lane_of_line(request->room, invitation->token.line_id);
		request->entry_by = GATE_ENTRY_LINK;
	} else if (request->ticket) {
		request->room = lane_of_line(request->room, request->ticket->token.line_id);
	} else if (request->entry) {
		request->room = request->entry;
	}
}

void gate_request_settle(
	struct gate_request *request, struct gate_remembered *remembered, uint64_t now_s)
{
	for (uint32_t i = 0; i < request->token_count; i++) {
		struct gate_token *token = &request->tokens[i];
		if (token->state == GATE_TOKEN_PENDING)
			token->state = token_is_signed(&token->wire, token->tag) ? GATE_TOKEN_VALID
										 : GATE_TOKEN_NONE;
		if (token->state == GATE_TOKEN_VALID)
			settle_one(request, token);
	}
	if (remembered && request->ticket)
		remembered->ticket = request->ticket->print;
	if (remembered && request->pass)
		remembered->pass = request->pass->print;
	if (request->pass && request->pass->token.expires <= now_s) {
		request->pass_over = request->pass;
		request->pass = NULL;
	}
	request->whole = request->room;
	if (request->room && request->room->lane_count > 0)
		settle_lane(request, now_s);
	request->takes_query = request->method == HTTP_GET && request->ticket &&
			       request->ticket->carried.carrier == CARRY_QUERY;
}
