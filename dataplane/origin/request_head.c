// What a client writes is a claim; what the origin reads from us is a fact. So every field whose
// name the origin takes our word for is removed first, whatever its case and whether spelt with
// dashes or underscores, and written from what we know. A trusted proxy's forwarding fields are
// kept and continued (RFC 7239 4).

#include "dataplane/origin/request_head.h"

#include "dataplane/http/cookie.h"
#include "dataplane/origin/head_writer.h"
#include "drivers/ip.h"

#include <arpa/inet.h>

static const struct span requesting_protocols[] = {
	{"h2", 2}, {"http", 4}, {"tls", 3}}; // as prefixes: h2c, HTTP/2.0, TLS/1.0

// Whether a list of protocols (RFC 9110 7.8) has one that carries further requests.
static bool carries_requests(struct span list)
{
	for (size_t at = 0; at < list.len; at++) {
		bool is_start = at == 0 || list.at[at - 1] == ',' || list.at[at - 1] == ' ' ||
				list.at[at - 1] == '\t';
		for (size_t i = 0; is_start && i < 3; i++)
			if (head_writer_begins_alike(span_from(list, at), requesting_protocols[i]))
				return true;
	}
	return false;
}

bool request_head_may_upgrade(const struct http_head *head)
{
	if (!head->has_upgrade || head->body != HTTP_BODY_NONE)
		return false;
	const struct http_field *field = http_field_first(head, HTTP_FIELD_upgrade);
	for (; field; field = http_field_next(head, field))
		if (carries_requests(http_field_value(head, field)))
			return false;
	return true;
}

static bool is_ours(struct span name, const void *arg)
{
	(void)arg;
	struct span start = {name.at, name.len < 9 ? name.len : 9};
	return span_is_equal(start, SPAN("sluice-t-")) || span_is_equal(start, SPAN("sluice-p-"));
}

static void put_cookies(struct head_writer *w, struct span name, struct span value)
{
	struct head_writer before = *w;
	head_writer_put(w, name);
	head_writer_put(w, SPAN(": "));
	if ((size_t)(w->end - w->at) < value.len) {
		w->is_full = true;
		return;
	}
	size_t kept = cookie_write_kept(value, w->at, is_ours, NULL);
	if (kept == 0) {
		*w = before;
		return;
	}
	w->at += kept;
	head_writer_put(w, SPAN("\r\n"));
}

// Whether a client's field is written by nobody but us, or not at all.
static bool is_replaced(
	const struct exchange_request *request, const struct http_field *field, struct span name)
{
	switch (field->id) {
	case HTTP_FIELD_expect:
	case HTTP_FIELD_forwarded:
	case HTTP_FIELD_host:
		return true;
	case HTTP_FIELD_x_forwarded_for:
		return true;
	case HTTP_FIELD_x_forwarded_host:
	case HTTP_FIELD_x_forwarded_proto:
		return !request->peer_is_trusted;
	}
	if (head_writer_begins_alike(name, SPAN("sluice-")))
		return true;
	if (memchr(name.at, '_', name.len))
		return head_writer_begins_alike(name, SPAN("x-forwarded-")) ||
		       head_writer_begins_alike(name, SPAN("transfer-encoding")) ||
		       head_writer_begins_alike(name, SPAN("content-length"));
	return !request->peer_is_trusted &&
	       head_writer_begins_alike(name, SPAN("x-forwarded-")); // -Port, -Prefix and their kin
}

static void put_client_fields(struct head_writer *w, const struct exchange_request *request)
{
	const struct http_head *head = request->head;
	for (uint16_t i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];
		struct span name = http_field_name(head, field);
		struct span value = http_field_value(head, field);
		if (head_writer_is_hop_field(head, field) || is_replaced(request, field, name))
			continue;
		if (field->id == HTTP_FIELD_cookie)
			put_cookies(w, name, value);
		else
			head_writer_put_field(w, name, value);
	}
}

// How the body comes, and what the connection is for.
static void put_framing(struct head_writer *w, const struct http_head *head, bool keeps)
{
	if (head->body == HTTP_BODY_CHUNKED) {
		head_writer_put(w, SPAN("Transfer-Encoding: chunked\r\n"));
	} else if (http_field_first(head, HTTP_FIELD_content_length)) {
		head_writer_put(w, SPAN("Content-Length: "));
		head_writer_put_number(w, head->content_length);
		head_writer_put(w, SPAN("\r\n"));
	}
	if (head->expect_continue)
		head_writer_put(w, SPAN("Expect: 100-continue\r\n"));
	if (request_head_may_upgrade(head)) {
		const struct http_field *field = http_field_first(head, HTTP_FIELD_upgrade);
		for (; field; field = http_field_next(head, field))
			head_writer_put_field(w, SPAN("Upgrade"), http_field_value(head, field));
		head_writer_put(w, SPAN("Connection: upgrade\r\n"));
	} else if (!keeps) {
		head_writer_put(w, SPAN("Connection: close\r\n"));
	}
}

// What a trusted proxy sent in fields of that id, each value followed by a comma, so that our own
// element can follow.
static void put_trusted(
	struct head_writer *w, const struct exchange_request *request, enum http_field_id id)
{
	if (!request->peer_is_trusted)
		return;
	const struct http_field *field = http_field_first(request->head, id);
	for (; field; field = http_field_next(request->head, field)) {
		if (field->value_len == 0 || head_writer_is_hop_field(request->head, field))
			continue;
		head_writer_put(w, http_field_value(request->head, field));
		head_writer_put(w, SPAN(", "));
	}
}

static void put_quoted(struct head_writer *w, struct span text)
{
	head_writer_put(w, SPAN("\""));
	for (size_t i = 0; i < text.len; i++) {
		if (text.at[i] == '"' || text.at[i] == '\\')
			head_writer_put(w, SPAN("\\"));
		head_writer_put(w, (struct span){text.at + i, 1});
	}
	head_writer_put(w, SPAN("\""));
}

static bool has_trusted(const struct exchange_request *request, enum http_field_id id)
{
	const struct http_field *field = http_field_first(request->head, id);
	return request->peer_is_trusted && field && !head_writer_is_hop_field(request->head, field);
}

static void put_forwarding(struct head_writer *w, const struct exchange_request *request)
{
	const uint8_t *ip = request->client->peer.ip;
	bool is_ip4 = ip_is_v4(ip);
	char text[INET6_ADDRSTRLEN];
	inet_ntop(is_ip4 ? AF_INET : AF_INET6, is_ip4 ? ip + 12 : ip, text, sizeof(text));
	struct span peer = {text, strlen(text)};
	struct span proto = request->is_tls ? SPAN("https") : SPAN("http");
	const struct http_head *head = request->head;
	struct span host = head->authority.len > 0 ? head->authority : head->host;
	if (host.len == 0)
		host = request->host;

	head_writer_put(w, SPAN("X-Forwarded-For: "));
	put_trusted(w, request, HTTP_FIELD_x_forwarded_for);
	head_writer_put(w, peer);
	head_writer_put(w, SPAN("\r\n"));
	if (!has_trusted(request, HTTP_FIELD_x_forwarded_proto))
		head_writer_put_field(w, SPAN("X-Forwarded-Proto"), proto);
	if (!has_trusted(request, HTTP_FIELD_x_forwarded_host))
		head_writer_put_field(w, SPAN("X-Forwarded-Host"), host);

	head_writer_put(w, SPAN("Forwarded: "));
	put_trusted(w, request, HTTP_FIELD_forwarded);
	head_writer_put(w, is_ip4 ? SPAN("for=") : SPAN("for=\"["));
	head_writer_put(w, peer);
	head_writer_put(w, is_ip4 ? SPAN(";host=") : SPAN("]\";host="));
	put_quoted(w, host);
	head_writer_put(w, SPAN(";proto="));
	head_writer_put(w, proto);
	head_writer_put(w, SPAN("\r\n"));
}

static void put_session(struct head_writer *w, const struct exchange_request *request)
{
	if (request->room.len > 0)
		head_writer_put_field(w, SPAN("Sluice-Room"), request->room);
	if (request->session == 0)
		return;
	char hex[16];
	for (unsigned i = 0; i < sizeof(hex); i++)
		hex[i] = "0123456789abcdef"[request->session >> (60 - 4 * i) & 15];
	head_writer_put_field(w, SPAN("Sluice-Session"), (struct span){hex, sizeof(hex)});
}

size_t request_head_write(
	char *out, size_t out_bytes, const struct exchange_request *request, bool keeps)
{
	struct head_writer w = {out, out + out_bytes, false};
	head_writer_put(&w, request->head->method_name);
	head_writer_put(&w, SPAN(" "));
	head_writer_put(&w, request->head->target);
	head_writer_put(&w, SPAN(" HTTP/1.1\r\n"));
	head_writer_put_field(&w, SPAN("Host"), request->host);
	put_client_fields(&w, request);
	put_framing(&w, request->head, keeps);
	put_forwarding(&w, request);
	put_session(&w, request);
	head_writer_put(&w, SPAN("\r\n"));
	return w.is_full ? 0 : (size_t)(w.at - out);
}
