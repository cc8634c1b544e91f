// Its callbacks deliver pieces that lie next to each other in the input; we join them.

#include "tests/unit/http/other_reader.h"

#include <http_parser.h>
#include <limits.h>
#include <string.h>

struct reading {
	struct other_head *head;
	bool in_value, is_complete;
};

static struct reading *reading_of(http_parser *parser)
{
	return parser->data;
}

static void extend(struct span *s, const char *at, size_t len)
{
	*s = s->at ? (struct span){s->at, at + len - s->at} : (struct span){at, len};
}

static int on_url(http_parser *parser, const char *at, size_t len)
{
	extend(&reading_of(parser)->head->url, at, len);
	return 0;
}

static int on_name(http_parser *parser, const char *at, size_t len)
{
	struct reading *r = reading_of(parser);
	r->head->field_count += r->in_value;
	r->in_value = false;
	extend(&r->head->names[r->head->field_count], at, len);
	return 0;
}

static int on_value(http_parser *parser, const char *at, size_t len)
{
	struct reading *r = reading_of(parser);
	r->in_value = true;
	extend(&r->head->values[r->head->field_count], at, len);
	return 0;
}

static int on_complete(http_parser *parser)
{
	struct reading *r = reading_of(parser);
	r->head->field_count += r->in_value;
	r->is_complete = true;
	return 0;
}

static void trim_end(struct span *s)
{
	while (s->len > 0 && (s->at[s->len - 1] == ' ' || s->at[s->len - 1] == '\t'))
		s->len--;
}

void other_read(struct span in, bool is_request, struct other_head *head)
{
	static const http_parser_settings settings = {
		.on_url = on_url,
		.on_header_field = on_name,
		.on_header_value = on_value,
		.on_headers_complete = on_complete,
	};
	memset(head, 0, sizeof(*head));
	struct reading r = {.head = head};
	http_parser parser;
	http_parser_init(&parser, is_request ? HTTP_REQUEST : HTTP_RESPONSE);
	parser.data = &r;
	size_t used = http_parser_execute(&parser, &settings, in.at, in.len);
	enum http_errno error = HTTP_PARSER_ERRNO(&parser);
	head->is_accepted = r.is_complete && used == in.len && error == HPE_OK;
	head->is_method_unknown = error == HPE_INVALID_METHOD;
	head->error = http_errno_name(error);
	if (!head->is_accepted)
		return;
	const char *method = is_request ? http_method_str(parser.method) : "";
	head->method = (struct span){method, strlen(method)};
	head->major = parser.http_major;
	head->minor = parser.http_minor;
	head->status = parser.status_code;
	head->is_chunked = parser.flags & F_CHUNKED;
	head->has_length = parser.content_length != ULLONG_MAX && !head->is_chunked;
	head->content_length = head->has_length ? parser.content_length : 0;
	for (unsigned i = 0; i < head->field_count; i++)
		trim_end(&head->values[i]);
}
