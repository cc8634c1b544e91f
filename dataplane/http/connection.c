// The options of all Connection fields are kept as offsets, at most HTTP_OPTIONS_MAX, so that the
// proxy can ask for each field whether it is among them without reading the list again: work stays
// linear, whatever a peer sends.

#include "dataplane/http/connection.h"

#include "dataplane/http/list.h"
#include "dataplane/http/octet.h"

static bool is_listed(const struct http_head *head, struct span lower);

enum http_result connection_parse(struct http_head *head)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_connection);
	for (; field; field = http_field_next(head, field)) {
		struct span rest = http_field_value(head, field), option;
		while (list_next(&rest, ',', &option)) {
			if (!octet_is_token(option))
				return HTTP_BAD;
			if (head->option_count == HTTP_OPTIONS_MAX)
				return HTTP_TOO_LARGE;
			head->options[head->option_count++] =
				(struct http_option){option.at - head->bytes, option.len};
		}
	}
	// RFC 9112 9.3
	head->keep_alive = !is_listed(head, SPAN("close")) &&
			   (head->minor > 0 || is_listed(head, SPAN("keep-alive")));
	// RFC 9110 7.8
	head->has_upgrade = head->minor > 0 && http_field_first(head, HTTP_FIELD_upgrade) &&
			    is_listed(head, SPAN("upgrade"));
	return HTTP_OK;
}

static struct span option_span(const struct http_head *head, unsigned index)
{
	return (struct span){head->bytes + head->options[index].at, head->options[index].len};
}

static bool is_listed(const struct http_head *head, struct span lower)
{
	for (unsigned i = 0; i < head->option_count; i++)
		if (span_is_equal_caseless(option_span(head, i), lower))
			return true;
	return false;
}

static bool is_equal_in_any_case(struct span a, struct span b)
{
	if (a.len != b.len)
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (octet_lower(a.at[i]) != octet_lower(b.at[i]))
			return false;
	return true;
}

bool http_connection_lists(const struct http_head *head, struct span name)
{
	for (unsigned i = 0; i < head->option_count; i++)
		if (is_equal_in_any_case(option_span(head, i), name))
			return true;
	return false;
}

bool connection_expects_continue(const struct http_head *head)
{
	if (head->minor == 0 || (head->body != HTTP_BODY_CHUNKED && head->content_length == 0))
		return false;
	const struct http_field *field = http_field_first(head, HTTP_FIELD_expect);
	for (; field; field = http_field_next(head, field)) {
		struct span rest = http_field_value(head, field), expectation;
		while (list_next(&rest, ',', &expectation))
			if (span_is_equal_caseless(expectation, SPAN("100-continue")))
				return true;
	}
	return false;
}
