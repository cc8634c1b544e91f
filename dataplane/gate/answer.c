// Answers as bytes: status line, fields, cookies, body, in that order, in one pass.
//
// Whatever we say ourselves is about one visitor and one moment, so all of it is `no-store`.

#include "dataplane/gate/answer.h"

#include "dataplane/gate/answer_code.h"
#include "dataplane/gate/draw.h"
#include "dataplane/gate/gather.h"
#include "dataplane/gate/page.h"
#include "dataplane/gate/writer.h"
#include "dataplane/http/head.h"

#define DATE_BYTES 29u
#define REFUSAL_BYTES_MAX 1024u // of a body
#define STATUS_ROOM_BYTES (STATUS_JSON_BYTES_MAX + WRITER_NUMBER_BYTES_MAX + 4) // and its length
static_assert(PAGE_BODY_BYTES_MAX + PAGE_CSP_BYTES_MAX + ANSWER_FIELDS_BYTES_MAX + 2048 <
		      ANSWER_BYTES_MAX,
	"head and page fit");
static_assert(DECIDE_LOCATION_BYTES_MAX < PAGE_BODY_BYTES_MAX, "and so do head and redirect");

// What refusals say. The texts are HTML and JSON alike.
static const struct refusal {
	uint16_t code;
	struct span reason; // also the title
	struct span english, japanese;
} refusals[] = {
	{400, SPAN("Bad Request"), SPAN("The request could not be understood."),
		SPAN("リクエストを解釈できませんでした。")},
	{401, SPAN("Unauthorized"), SPAN("No place in line was shown."),
		SPAN("整理券が提示されていません。")},
	{403, SPAN("Forbidden"), SPAN("This request came from another site."),
		SPAN("別のサイトからのリクエストは受け付けられません。")},
	{404, SPAN("Not Found"), SPAN("There is nothing here."),
		SPAN("お探しのページはありません。")},
	{405, SPAN("Method Not Allowed"), SPAN("This method is not allowed here."),
		SPAN("このメソッドは使用できません。")},
	{408, SPAN("Request Timeout"), SPAN("The request took too long to arrive."),
		SPAN("リクエストが時間内に届きませんでした。")},
	{413, SPAN("Content Too Large"), SPAN("The request is too large."),
		SPAN("リクエストが大きすぎます。")},
	{414, SPAN("URI Too Long"), SPAN("The address is too long."),
		SPAN("アドレスが長すぎます。")},
	{421, SPAN("Misdirected Request"), SPAN("This host is not served here."),
		SPAN("このホストはここでは提供されていません。")},
	{431, SPAN("Request Header Fields Too Large"),
		SPAN("The request has too many or too large fields."),
		SPAN("リクエストヘッダーが大きすぎます。")},
	{500, SPAN("Internal Server Error"), SPAN("Something went wrong here."),
		SPAN("エラーが発生しました。")},
	{501, SPAN("Not Implemented"), SPAN("This method is not supported."),
		SPAN("このメソッドには対応していません。")},
	{502, SPAN("Bad Gateway"),
		SPAN("The site did not answer. Your place is kept; please try again."),
		SPAN("サイトから応答がありません。順番は保たれています。もう一度お試しください。")},
	{503, SPAN("Service Unavailable"),
		SPAN("Not available at the moment. Please try again shortly."),
		SPAN("ただいまご利用いただけません。しばらくしてからもう一度お試しください。")},
	{504, SPAN("Gateway Timeout"),
		SPAN("The site took too long to answer. Your place is kept; please try again."),
		SPAN("サイトの応答に時間がかかっています。順番は保たれています。もう一度お試しくだ"
		     "さい。")},
	{505, SPAN("HTTP Version Not Supported"), SPAN("This version of HTTP is not supported."),
		SPAN("このバージョンの HTTP には対応していません。")},
};
#define REFUSALS (sizeof(refusals) / sizeof(refusals[0]))

static const struct refusal *refusal_of(unsigned code)
{
	for (size_t i = 0; i < REFUSALS; i++) {
		if (refusals[i].code == code)
			return &refusals[i];
	}
	assert(!"a code that something here answers with");
}

static struct span reason_of(unsigned code)
{
	switch (code) {
	case 202:
		return SPAN("Accepted");
	case 204:
		return SPAN("No Content");
	case 302:
		return SPAN("Found");
	case 303:
		return SPAN("See Other");
	case 308:
		return SPAN("Permanent Redirect");
	case 410:
		return SPAN("Gone");
	case 411:
		return SPAN("Length Required");
	case 429:
		return SPAN("Too Many Requests");
	default:
		return refusal_of(code)->reason;
	}
}

static void put_field(struct writer *w, struct span name, struct span value)
{
	writer_span(w, name);
	writer_span(w, value);
	writer_span(w, SPAN("\r\n"));
}

static void put_number_field(struct writer *w, struct span name, uint64_t n)
{
	writer_span(w, name);
	writer_number(w, n);
	writer_span(w, SPAN("\r\n"));
}

static void put_retry_after(struct writer *w, uint32_t seconds)
{
	writer_span(w, SPAN("Retry-After: "));
	writer_number(w, seconds);
	writer_span(w, SPAN("\r\n"));
}

static void put_hsts(struct writer *w, uint32_t seconds)
{
	if (seconds > 0)
		put_number_field(w, SPAN("Strict-Transport-Security: max-age="), seconds);
}

size_t answer_hsts(uint32_t seconds, char *out)
{
	struct writer w = {out, out + ANSWER_HSTS_BYTES_MAX};
	put_hsts(&w, seconds);
	return (size_t)(w.at - out);
}

// Up to the date. Nearly all answers are 200: that is written at once.
static void put_status_line(struct writer *w, unsigned code)
{
	if (code == 200)
		return writer_span(w, SPAN("HTTP/1.1 200 OK\r\nDate: "));
	writer_span(w, SPAN("HTTP/1.1 "));
	writer_number(w, code);
	writer_char(w, ' ');
	writer_span(w, reason_of(code));
	writer_span(w, SPAN("\r\nDate: "));
}

// The status line and what every answer has.
static void put_head(
	struct writer *w, unsigned code, bool is_lasting, const struct answer_frame *frame)
{
	put_status_line(w, code);
	writer_span(w, (struct span){frame->date, DATE_BYTES});
	if (is_lasting)
		writer_span(w, SPAN("\r\nCache-Control: public, max-age=31536000, immutable\r\n"));
	else
		writer_span(w, SPAN("\r\nCache-Control: no-store\r\n"));
	if (frame->is_secure && frame->site)
		put_hsts(w, frame->site->hsts_s);
	if (frame->close)
		writer_span(w, SPAN("Connection: close\r\n"));
	else if (frame->minor == 0)
		writer_span(w, SPAN("Connection: keep-alive\r\n"));
}

// A body, and its length, which follows its type.
static void put_sized(struct writer *w, struct span body, const struct answer_frame *frame)
{
	writer_span(w, SPAN("\r\nContent-Length: "));
	writer_number(w, body.len);
	writer_span(w, SPAN("\r\n\r\n"));
	if (!frame->is_head)
		writer_span(w, body);
}

static void put_json(struct writer *w, struct span json, const struct answer_frame *frame)
{
	writer_span(w, SPAN("Content-Type: application/json"));
	put_sized(w, json, frame);
}

static void put_refusal_json(
	struct writer *w, const struct refusal *refusal, const struct answer_frame *frame)
{
	char text[REFUSAL_BYTES_MAX];
	struct writer body = {text, text + sizeof(text)};
	writer_span(&body, SPAN("{\"status\":"));
	writer_number(&body, refusal->code);
	writer_span(&body, SPAN(",\"error\":\""));
	writer_span(&body, refusal->reason);
	writer_span(&body, SPAN("\",\"message\":\""));
	writer_span(&body, refusal->english);
	writer_span(&body, SPAN("\"}"));
	put_json(w, (struct span){text, (size_t)(body.at - text)}, frame);
}

// In both languages: whoever is refused may not have said theirs.
static void put_refusal_html(
	struct writer *w, const struct refusal *refusal, const struct answer_frame *frame)
{
	char text[REFUSAL_BYTES_MAX];
	struct writer body = {text, text + sizeof(text)};
	writer_span(&body,
		SPAN("<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
		     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
		     "<meta name=\"color-scheme\" content=\"light dark\">\n<title>"));
	writer_span(&body, refusal->reason);
	writer_span(&body, SPAN("</title>\n<h1>"));
	writer_span(&body, refusal->reason);
	writer_span(&body, SPAN("</h1>\n<p>"));
	writer_span(&body, refusal->english);
	writer_span(&body, SPAN("</p>\n<p lang=\"ja\">"));
	writer_span(&body, refusal->japanese);
	writer_span(&body, SPAN("</p>\n</html>\n"));
	writer_span(w, SPAN("Content-Type: text/html; charset=utf-8"));
	put_sized(w, (struct span){text, (size_t)(body.at - text)}, frame);
}

static void put_refusal(
	struct writer *w, unsigned code, bool is_json, const struct answer_frame *frame)
{
	const struct refusal *refusal = refusal_of(code);
	if (is_json)
		put_refusal_json(w, refusal, frame);
	else
		put_refusal_html(w, refusal, frame);
}

// A page and the fields that describe it; the end of the answer.
static void put_page(struct writer *w, const struct page *page, enum accept_encoding encoding,
	const struct page_view *view, bool is_head)
{
	static const struct span encodings[PAGE_ENCODINGS] = {
		[ACCEPT_GZIP] = {"gzip", 4}, [ACCEPT_BR] = {"br", 2}};
	put_field(w, SPAN("Content-Language: "), page->language);
	if (encoding != ACCEPT_IDENTITY)
		put_field(w, SPAN("Content-Encoding: "), encodings[encoding]);
	writer_span(w, SPAN("Content-Type: text/html; charset=utf-8\r\n"));
	put_number_field(w, SPAN("Content-Length: "), page_body_bytes(page, encoding, view));
	writer_span(w, SPAN("\r\n"));
	if (!is_head)
		w->at += page_render(page, encoding, view, w->at);
}

#define ERROR_RETRY_S 10u

// Of somebody who stands nowhere.
static struct status no_status(const struct answer_frame *frame)
{
	return (struct status){.position = STATUS_UNKNOWN,
		.ahead = STATUS_UNKNOWN,
		.eta_low = STATUS_UNKNOWN,
		.eta_high = STATUS_UNKNOWN,
		.poll_after = ERROR_RETRY_S,
		.now = frame->now_s};
}

// 502 or 504 in the design of the site. Nothing is known of the visitor.
static void put_error(struct writer *w, unsigned code, const struct answer_frame *frame)
{
	const struct answer_error *error = frame->error;
	const struct status status = no_status(frame);
	const struct page_view view = {.status = &status,
		.site = error->site,
		.room = error->room,
		.kind = PAGE_error,
		.code = (uint16_t)code};
	writer_span(w, SPAN("X-Content-Type-Options: nosniff\r\n"));
	put_field(w, SPAN("Content-Security-Policy: "), error->page->csp);
	put_page(w, error->page, error->encoding, &view, frame->is_head);
}

size_t answer_refusal(unsigned status, bool wants_json, const struct answer_frame *frame, char *out)
{
	struct writer w = {out, out + ANSWER_BYTES_MAX};
	put_head(&w, status, false, frame);
	struct writer fields = {w.at, w.at + ANSWER_FIELDS_BYTES_MAX};
	answer_stale(&fields, frame);
	w.at = fields.at;
	const bool is_ours = status != 502 && status != 504;
	if (is_ours || wants_json || !frame->error || !frame->error->page)
		put_refusal(&w, status, wants_json, frame);
	else
		put_error(&w, status, frame);
	return (size_t)(w.at - out);
}

// It is rendered where it stays if its length has three digits, as nearly always; else it moves.
static void put_status_json(struct writer *w, const struct decision *decision,
	const struct gate_room *room, const struct answer_frame *frame)
{
	const struct span blank = SPAN("\r\n\r\n");
	if (frame->is_head) {
		char text[STATUS_JSON_BYTES_MAX];
		const size_t unseen = status_json(&decision->status, room, text);
		return put_json(w, (struct span){text, unseen}, frame);
	}
	writer_span(w, SPAN("Content-Type: application/json\r\nContent-Length: "));
	assert((size_t)(w->end - w->at) >= STATUS_ROOM_BYTES);
	char *at = w->at + 3 + blank.len;
	const size_t len = status_json(&decision->status, room, at);
	const unsigned digits = writer_digits(len);
	if (digits != 3)
		memmove(w->at + digits + blank.len, at, len);
	writer_number(w, len);
	writer_span(w, blank);
	w->at += len;
}

static void put_page_fields(struct writer *w, const struct page *page)
{
	writer_span(w, SPAN("X-Robots-Tag: noindex\r\nX-Content-Type-Options: nosniff\r\n"
			    "Vary: Accept, Accept-Language, Accept-Encoding\r\n"));
	put_field(w, SPAN("Content-Security-Policy: "), page->csp);
}

// The queue page, or the same as JSON.
static void put_queue(struct writer *w, const struct decision *decision,
	const struct gate_request *request, const struct answer_frame *frame)
{
	const struct status *status = &decision->status;
	const struct gate_room *room = request->room;
	const struct page *page = room->pages->pages[request->language][status->state];
	const struct page_view view = {
		.status = status, .site = request->site, .room = room, .kind = status->state};
	put_page_fields(w, page);
	put_retry_after(w, status->poll_after);
	put_field(w, SPAN("Sluice-State: "), status_told(status->state));
	if (request->wants_json)
		put_status_json(w, decision, room, frame);
	else
		put_page(w, page, request->encoding, &view, frame->is_head);
}

// The page that asks for a code, or the same as JSON.
static void put_invitation(struct writer *w, const struct decision *decision,
	const struct gate_request *request, const struct answer_frame *frame)
{
	const struct gate_room *room = request->room;
	const struct page *page = room->pages->pages[request->language][PAGE_invitation];
	const struct status status = no_status(frame);
	const struct page_view view = {.status = &status,
		.site = request->site,
		.room = room,
		.kind = PAGE_invitation,
		.outcome = decision->outcome,
		.once = decision->once};
	char json[ANSWER_CODE_BYTES_MAX];
	put_page_fields(w, page);
	writer_span(w, SPAN("Referrer-Policy: same-origin\r\n")); // the address may have a code
	if (decision->outcome == CODE_guarded)
		put_retry_after(w, decision->status.poll_after);
	if (request->wants_json)
		put_json(w, (struct span){json, answer_code_json(decision->outcome, room, json)},
			frame);
	else
		put_page(w, page, request->encoding, &view, frame->is_head);
}

// Where a code, or what the visitor had already, leads.
static void put_welcome(struct writer *w, const struct decision *decision,
	const struct gate_request *request, const struct answer_frame *frame)
{
	if (request->wants_json) {
		put_retry_after(w, decision->status.poll_after);
		put_status_json(w, decision, request->room, frame);
		return;
	}
	put_field(w, SPAN("Location: "), request->room->path);
	writer_span(w, SPAN("Content-Length: 0\r\n\r\n"));
}

static struct span health_json(const struct decision *decision)
{
#define X(state) SPAN("{\"version\":\"" SLUICE_VERSION "\",\"state\":\"" state "\"}")
	if (decision->is_unhealthy)
		return X("stalled");
	return decision->is_draining ? X("draining") : X("ok");
#undef X
}

static struct span allowed(enum gate_route route)
{
	if (route == GATE_ROUTE_SERVER)
		return SPAN("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"); // not CONNECT, TRACE
	if (route == GATE_ROUTE_LEAVE)
		return SPAN("POST");
	if (route == GATE_ROUTE_CODE)
		return SPAN("GET, HEAD, POST");
	return route >= GATE_ROUTE_ASSET ? SPAN("GET, HEAD") : SPAN("GET");
}

static unsigned code_of(const struct decision *decision, const struct gate_request *request)
{
	switch ((enum decide_answer)decision->answer) {
	case DECIDE_PAGE:
		return request->room->queue_status;
	case DECIDE_STATUS:
		return decision->status.state == STATUS_expired ? 410 : 200;
	case DECIDE_UNKNOWN:
		return 401;
	case DECIDE_LEFT:
	case DECIDE_SERVER:
		return 204;
	case DECIDE_CROSS_SITE:
		return 403;
	case DECIDE_HTTPS:
		return 308;
	case DECIDE_REDIRECT:
		return 302;
	case DECIDE_UNAVAILABLE:
		return 503;
	case DECIDE_NOT_FOUND:
	case DECIDE_DRAW_NONE:
		return 404;
	case DECIDE_INVITATION:
		return answer_code_status(decision->outcome);
	case DECIDE_WELCOME:
		return request->wants_json ? 200 : 303;
	case DECIDE_DRAW:
	case DECIDE_DRAW_KEYS:
	case DECIDE_ASSET:
		return 200;
	case DECIDE_METHOD:
		return 405;
	case DECIDE_HEALTH:
		return decision->is_draining || decision->is_unhealthy ? 503 : 200;
	case DECIDE_BAD_TARGET:
		return 400;
	case DECIDE_MISDIRECTED:
		return 421;
	}
	assert(!"an answer");
}

// A browser keeps the method and the body (RFC 9110 15.4.9).
static void put_https(struct writer *w, const struct gate_request *request)
{
	uint16_t port = request->site->https_port;
	writer_span(w, SPAN("Location: https://"));
	writer_span(w, request->host);
	if (port != 443) {
		writer_char(w, ':');
		writer_number(w, port);
	}
	put_field(w, request->target, SPAN(""));
}

// Endpoints speak JSON whatever is asked for, but for that which people fill in.
static bool is_endpoint(enum gate_route route)
{
	return route >= GATE_ROUTE_STATUS && route <= GATE_ROUTE_HEALTH && route != GATE_ROUTE_CODE;
}

// A picture that is opened by itself could run scripts: it is let do nothing.
static void put_asset(struct writer *w, const struct gate_asset *asset)
{
	put_field(w, SPAN("Content-Type: "), asset->type);
	writer_span(
		w, SPAN("X-Content-Type-Options: nosniff\r\n"
			"Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; "
			"sandbox\r\n"));
	put_number_field(w, SPAN("Content-Length: "), asset->bytes.len);
	writer_span(w, SPAN("\r\n"));
}

// What follows the cookies.
static void put_rest(struct writer *w, const struct decision *decision,
	const struct gate_request *request, const struct answer_frame *frame)
{
	switch ((enum decide_answer)decision->answer) {
	case DECIDE_PAGE:
		return put_queue(w, decision, request, frame);
	case DECIDE_INVITATION:
		return put_invitation(w, decision, request, frame);
	case DECIDE_WELCOME:
		return put_welcome(w, decision, request, frame);
	case DECIDE_STATUS:
		put_retry_after(w, decision->status.poll_after);
		return put_status_json(w, decision, request->room, frame);
	case DECIDE_UNKNOWN:
		writer_span(w, SPAN("WWW-Authenticate: Sluice\r\n"));
		return put_json(w, SPAN("{\"state\":\"unknown\"}"), frame);
	case DECIDE_DRAW:
		return put_json(
			w, (struct span){decision->proof->json, decision->proof->json_len}, frame);
	case DECIDE_DRAW_KEYS: // the list itself follows, piece by piece
		writer_span(w, SPAN("Content-Type: text/plain\r\n"));
		put_number_field(
			w, SPAN("Content-Length: "), decision->list->count * DRAW_LINE_BYTES);
		return writer_span(w, SPAN("\r\n"));
	case DECIDE_ASSET:
		return put_asset(w, request->asset);
	case DECIDE_HEALTH:
		return put_json(w, health_json(decision), frame);
	case DECIDE_SERVER:
		put_field(w, SPAN("Allow: "), allowed(request->route));
		return writer_span(w, SPAN("\r\n"));
	case DECIDE_LEFT:
		return writer_span(w, SPAN("\r\n")); // no Content-Length (RFC 9110 8.6)
	case DECIDE_HTTPS:
		put_https(w, request);
		return writer_span(w, SPAN("Content-Length: 0\r\n\r\n"));
	case DECIDE_REDIRECT:
		put_field(w, SPAN("Location: "), request->redirect);
		return writer_span(
			w, SPAN("Referrer-Policy: no-referrer\r\nContent-Length: 0\r\n\r\n"));
	case DECIDE_UNAVAILABLE:
		put_retry_after(w, decision->status.poll_after);
		break;
	case DECIDE_METHOD:
		put_field(w, SPAN("Allow: "), allowed(request->route));
		break;
	case DECIDE_CROSS_SITE:
	case DECIDE_NOT_FOUND:
	case DECIDE_BAD_TARGET:
	case DECIDE_MISDIRECTED:
	case DECIDE_DRAW_NONE:
		break;
	}
	put_refusal(w, code_of(decision, request),
		request->wants_json || is_endpoint(request->route), frame);
}

// Whether answer_fields() has anything to say.
static bool has_fields(const struct decision *decision, const struct answer_frame *frame)
{
	return decision->sets_ticket || decision->sets_pass || decision->clears_ticket ||
	       decision->clears_pass || (frame->stale && frame->stale->count > 0);
}

size_t answer_render(const struct decision *decision, const struct gate_request *request,
	const struct answer_frame *frame, char *out)
{
	assert(decision->action == DECIDE_ANSWER);
	struct writer w = {out, out + ANSWER_BYTES_MAX};
	const bool is_asset = decision->answer == DECIDE_ASSET;
	put_head(&w, code_of(decision, request), is_asset, frame);
	if (!is_asset && has_fields(decision, frame)) // an asset is for everybody
		w.at += answer_fields(decision, request, frame, w.at);
	put_rest(&w, decision, request, frame);
	return (size_t)(w.at - out);
}
