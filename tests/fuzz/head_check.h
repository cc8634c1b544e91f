// What holds of every head that was accepted, whatever it was made of.
#pragma once

#include <assert.h>

#include "dataplane/http/head.h"
#include "dataplane/http/octet.h"

static inline bool head_check_is_inside(const struct http_head *head, struct span s)
{
	return s.at >= head->bytes && s.at + s.len <= head->bytes + head->head_bytes;
}

static inline void head_check_fields(const struct http_head *head)
{
	const char *end = head->bytes;
	unsigned counts[HTTP_FIELD_IDS] = {0};
	for (unsigned i = 0; i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];
		struct span name = http_field_name(head, field);
		struct span value = http_field_value(head, field);
		assert(head_check_is_inside(head, name));
		assert(head_check_is_inside(head, value));
		assert(name.at > end && value.at > name.at + name.len);
		assert(octet_is_token(name));
		assert(octet_scan(value, 0, OCTET_TEXT) == value.len);
		assert(octet_trim(value).len == value.len);
		assert(field->id < HTTP_FIELD_IDS);
		counts[field->id]++;
		end = value.at + value.len;
	}
	for (unsigned id = 1; id < HTTP_FIELD_IDS; id++) {
		const struct http_field *field = http_field_first(head, id);
		for (; field; field = http_field_next(head, field)) {
			assert(field->id == id);
			counts[id]--;
		}
		assert(counts[id] == 0);
	}
}

static inline void head_check_body(const struct http_head *head)
{
	bool has_length = head->first[HTTP_FIELD_content_length];
	bool has_coding = head->first[HTTP_FIELD_transfer_encoding];
	assert(!(has_length && has_coding));
	assert(head->body != HTTP_BODY_LENGTH || has_length);
	assert(head->body != HTTP_BODY_CHUNKED || (has_coding && head->minor == 1));
	assert(head->body == HTTP_BODY_LENGTH || head->content_length == 0);
}

static inline void head_check_options(const struct http_head *head)
{
	assert(head->option_count <= HTTP_OPTIONS_MAX);
	for (unsigned i = 0; i < head->option_count; i++) {
		const struct http_option *option = &head->options[i];
		struct span s = {head->bytes + option->at, option->len};
		assert(head_check_is_inside(head, s));
		assert(octet_is_token(s));
		assert(http_connection_lists(head, s));
	}
	assert(!head->has_upgrade || http_connection_lists(head, SPAN("UPGRADE")));
	assert(!head->keep_alive || !http_connection_lists(head, SPAN("close")));
}
