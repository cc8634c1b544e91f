// A writer that is full stays where it is; whoever writes a head asks once, at the end.

#include "dataplane/origin/head_writer.h"

void head_writer_put(struct head_writer *w, struct span text)
{
	if ((size_t)(w->end - w->at) < text.len) {
		w->is_full = true;
		return;
	}
	if (text.len > 0)
		memcpy(w->at, text.at, text.len);
	w->at += text.len;
}

void head_writer_put_number(struct head_writer *w, uint64_t number)
{
	char digits[20], *at = digits + sizeof(digits);
	do {
		*--at = (char)('0' + number % 10);
	} while ((number /= 10) > 0);
	head_writer_put(w, (struct span){at, (size_t)(digits + sizeof(digits) - at)});
}

void head_writer_put_field(struct head_writer *w, struct span name, struct span value)
{
	head_writer_put(w, name);
	head_writer_put(w, SPAN(": "));
	head_writer_put(w, value);
	head_writer_put(w, SPAN("\r\n"));
}

bool head_writer_is_hop_field(const struct http_head *head, const struct http_field *field)
{
	switch (field->id) {
	case HTTP_FIELD_connection:
	case HTTP_FIELD_content_length:
	case HTTP_FIELD_keep_alive:
	case HTTP_FIELD_proxy_connection:
	case HTTP_FIELD_te:
	case HTTP_FIELD_trailer:
	case HTTP_FIELD_transfer_encoding:
	case HTTP_FIELD_upgrade:
		return true;
	}
	struct span name = http_field_name(head, field);
	if (span_is_equal_caseless(name, SPAN("proxy-authorization")) ||
		span_is_equal_caseless(name, SPAN("proxy-authenticate")))
		return true;
	return head->option_count > 0 && http_connection_lists(head, name);
}

bool head_writer_begins_alike(struct span name, struct span lower)
{
	if (name.len < lower.len)
		return false;
	for (size_t i = 0; i < lower.len; i++) {
		char c = name.at[i];
		if (c >= 'A' && c <= 'Z')
			c += 'a' - 'A';
		if (c == '_')
			c = '-';
		if (c != lower.at[i])
			return false;
	}
	return true;
}
