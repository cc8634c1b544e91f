// Tokens in an answer. They go out the way they came: as headers to who sent headers, else as
// cookies. A cookie that is to go is expired with and without Domain, since the site may have had
// another cookie_domain when it was set.

#include "dataplane/gate/answer.h"

#include "dataplane/gate/writer.h"

#define COOKIE_BYTES_MAX 700u // a Set-Cookie line: name, token, Domain (253), attributes
static_assert(COOKIE_BYTES_MAX > 16 + GATE_NAME_MAX + TOKEN_TEXT_BYTES + 253 + 120,
	"prefix, room, token, domain, attributes");
static_assert(4 * COOKIE_BYTES_MAX < ANSWER_FIELDS_BYTES_MAX,
	"two cookies, each set or cleared twice, always fit");

// Whether cookies of `domain` reach `host`; with another Domain a browser would keep none.
static bool is_within(struct span host, struct span domain)
{
	if (host.len < domain.len)
		return false;
	struct span tail = span_from(host, host.len - domain.len);
	return span_is_equal(tail, domain) &&
	       (host.len == domain.len || host.at[host.len - domain.len - 1] == '.');
}

// The attributes of a cookie, and the end of its line (RFC 6265 4.1).
static void put_attributes(struct writer *w, struct span same_site, uint64_t max_age_s,
	struct span domain, bool is_secure)
{
	writer_span(w, SPAN("; Path=/; HttpOnly; SameSite="));
	writer_span(w, same_site);
	writer_span(w, SPAN("; Max-Age="));
	writer_number(w, max_age_s);
	if (domain.len > 0) {
		writer_span(w, SPAN("; Domain="));
		writer_span(w, domain);
	}
	writer_span(w, is_secure ? SPAN("; Secure\r\n") : SPAN("\r\n"));
}

static struct span same_site_of(enum token_kind kind, const struct gate_site *site, bool is_secure)
{
	if (kind == TOKEN_TICKET || !is_secure || site->pass_same_site == GATE_SAME_SITE_LAX)
		return SPAN("Lax");
	return site->pass_same_site == GATE_SAME_SITE_STRICT ? SPAN("Strict") : SPAN("None");
}

static struct span cookie_prefix(enum token_kind kind)
{
	return kind == TOKEN_TICKET ? SPAN("sluice-t-") : SPAN("sluice-p-");
}

static bool carries_headers(const struct gate_request *request)
{
	for (uint32_t i = 0; i < request->token_count; i++) {
		if (request->tokens[i].carried.carrier == CARRY_HEADER)
			return true;
	}
	return false;
}

// Sign a token and let it go out as it would come in. A pass's cookie outlives the pass: one that
// has run out says `expired`, and may have been renewed by the origin.
static void set_token(struct writer *w, const struct token *token,
	const struct gate_request *request, const struct answer_frame *frame)
{
	const struct gate_site *site = request->site;
	const struct gate_room *room = request->room;
	struct token signed_token = *token;
	char text[TOKEN_TEXT_BYTES];
	token_sign(frame->secrets, &signed_token, text);
	struct span value = {text, sizeof(text)};
	if (carries_headers(request)) {
		writer_span(w, token->kind == TOKEN_TICKET ? SPAN("Sluice-Ticket: ")
							   : SPAN("Sluice-Pass: "));
		writer_span(w, value);
		writer_span(w, SPAN("\r\n"));
		return;
	}
	uint64_t left_s = token->expires > frame->now_s ? token->expires - frame->now_s : 0;
	writer_span(w, SPAN("Set-Cookie: "));
	writer_span(w, cookie_prefix(token->kind));
	writer_span(w, room->name);
	writer_char(w, '=');
	writer_span(w, value);
	put_attributes(w, same_site_of(token->kind, site, frame->is_secure),
		left_s > room->ticket_ttl_s ? left_s : room->ticket_ttl_s,
		is_within(request->host, site->cookie_domain) ? site->cookie_domain : SPAN(""),
		frame->is_secure);
}

static void clear_cookie(
	struct writer *w, struct span prefix, struct span name, struct span domain, bool is_secure)
{
	writer_span(w, SPAN("Set-Cookie: "));
	writer_span(w, prefix);
	writer_span(w, name);
	writer_char(w, '=');
	put_attributes(w, SPAN("Lax"), 0, domain, is_secure);
}

static void clear_both(
	struct writer *w, struct span prefix, struct span name, const struct answer_frame *frame)
{
	clear_cookie(w, prefix, name, SPAN(""), frame->is_secure);
	if (frame->site && frame->site->cookie_domain.len > 0)
		clear_cookie(w, prefix, name, frame->site->cookie_domain, frame->is_secure);
}

void answer_stale(struct writer *w, const struct answer_frame *frame)
{
	if (!frame->stale)
		return;
	for (uint32_t i = 0; i < frame->stale->count; i++) {
		struct span name = frame->stale->names[i];
		size_t domain = frame->site ? frame->site->cookie_domain.len : 0;
		if ((size_t)(w->end - w->at) > 2 * (name.len + domain + 120))
			clear_both(w, SPAN(""), name, frame);
	}
}

size_t answer_fields(const struct decision *decision, const struct gate_request *request,
	const struct answer_frame *frame, char *out)
{
	struct writer w = {out, out + ANSWER_FIELDS_BYTES_MAX};
	if (decision->sets_ticket)
		set_token(&w, &decision->ticket, request, frame);
	if (decision->sets_pass)
		set_token(&w, &decision->pass, request, frame);
	if (decision->clears_ticket)
		clear_both(&w, cookie_prefix(TOKEN_TICKET), request->room->name, frame);
	if (decision->clears_pass)
		clear_both(&w, cookie_prefix(TOKEN_PASS), request->room->name, frame);
	answer_stale(&w, frame);
	return (size_t)(w.at - out);
}
