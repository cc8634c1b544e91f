// The origin's fields keep their order and spelling; what frames the body and what concerns the
// connection is written anew, since both end here.

#include "dataplane/origin/answer_head.h"

#include "dataplane/origin/head_writer.h"

#include <assert.h>

#define STATUS_LINE_STATUS 9 // where the status begins in "HTTP/1.1 200 OK"

// Status and reason phrase as the origin wrote them, up to the line's end.
static struct span status_and_reason(const struct http_head *head)
{
	const char *at = head->bytes + STATUS_LINE_STATUS;
	const char *end = memchr(at, '\r', head->head_bytes - STATUS_LINE_STATUS);
	return (struct span){at, (size_t)(end - at)};
}

// Whether a field would let a cache keep an answer that is for one visitor alone (RFC 9111 3, 4.3).
static bool is_about_caching(uint16_t id)
{
	return id == HTTP_FIELD_cache_control || id == HTTP_FIELD_etag ||
	       id == HTTP_FIELD_expires || id == HTTP_FIELD_last_modified;
}

// Returns whether a Date was among them.
static bool put_fields(struct head_writer *w, const struct http_head *head, bool is_private)
{
	bool has_date = false;
	for (uint16_t i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];
		struct span name = http_field_name(head, field);
		if (head_writer_is_hop_field(head, field) ||
			head_writer_begins_alike(name, SPAN("sluice-")) ||
			(is_private && is_about_caching(field->id)))
			continue;
		head_writer_put_field(w, name, http_field_value(head, field));
		has_date |= field->id == HTTP_FIELD_date;
	}
	return has_date;
}

static void put_framing(struct head_writer *w, const struct http_head *head, enum http_body body)
{
	const struct http_field *length = http_field_first(head, HTTP_FIELD_content_length);
	bool may_have_length = head->status >= 200 && head->status != 204; // RFC 9110 8.6
	if (body == HTTP_BODY_CHUNKED)
		head_writer_put(w, SPAN("Transfer-Encoding: chunked\r\n"));
	else if (body != HTTP_BODY_CLOSE && length && may_have_length)
		head_writer_put_field(w, SPAN("Content-Length"), http_field_value(head, length));
}

static void put_connection(
	struct head_writer *w, const struct http_head *head, enum answer_head_then then)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_upgrade);
	switch (then) {
	case ANSWER_HEAD_GOES_ON:
		return;
	case ANSWER_HEAD_KEEP_ALIVE:
		head_writer_put(w, SPAN("Connection: keep-alive\r\n"));
		return;
	case ANSWER_HEAD_CLOSE:
		head_writer_put(w, SPAN("Connection: close\r\n"));
		return;
	case ANSWER_HEAD_UPGRADE:
		for (; field; field = http_field_next(head, field))
			head_writer_put_field(w, SPAN("Upgrade"), http_field_value(head, field));
		head_writer_put(w, SPAN("Connection: upgrade\r\n"));
		return;
	}
}

size_t answer_head_write(char *out, size_t out_bytes, const struct http_head *head,
	enum http_body body, enum answer_head_then then, const struct exchange_extra *extra)
{
	assert(extra->fields.len <= EXCHANGE_EXTRA_BYTES_MAX);
	struct head_writer w = {out, out + out_bytes, false};
	head_writer_put(&w, SPAN("HTTP/1.1 "));
	head_writer_put(&w, status_and_reason(head));
	head_writer_put(&w, SPAN("\r\n"));
	if (!put_fields(&w, head, extra->is_private) && extra->date.len > 0)
		head_writer_put_field(&w, SPAN("Date"), extra->date);
	if (extra->is_private)
		head_writer_put(&w, SPAN("Cache-Control: private, no-store\r\n"));
	head_writer_put(&w, extra->fields);
	put_framing(&w, head, body);
	put_connection(&w, head, then);
	head_writer_put(&w, SPAN("\r\n"));
	assert(!w.is_full);
	return (size_t)(w.at - out);
}
