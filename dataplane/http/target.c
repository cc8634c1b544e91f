// Which form a target has is told by the method and the first octet, as in RFC 9112 3.2; nothing is
// decoded or resolved here.

#include "dataplane/http/target.h"

#include "dataplane/http/host.h"

static bool parse_connect(struct http_head *head, struct span sent);
static bool parse_absolute(struct http_head *head, struct span sent);

bool target_parse(struct http_head *head, struct span sent)
{
	head->target = sent;
	if (head->method == HTTP_CONNECT)
		return parse_connect(head, sent);
	if (sent.at[0] == '/')
		return true;
	if (span_is_equal(sent, SPAN("*")))
		return head->method == HTTP_OPTIONS;
	return parse_absolute(head, sent);
}

// authority-form: the port has to be there (RFC 9110 9.3.6).
static bool parse_connect(struct http_head *head, struct span sent)
{
	struct span port;
	head->authority = sent;
	return host_is_valid(sent, &port) && port.len > 0;
}

static bool begins_with(struct span s, struct span lower)
{
	return s.len >= lower.len && span_is_equal_caseless((struct span){s.at, lower.len}, lower);
}

// absolute-form. A query right after the authority, without a path, is refused: its origin-form
// "/?query" is nowhere in the bytes, and nobody sends it (RFC 9112 3.2.1 makes senders write "/").
static bool parse_absolute(struct http_head *head, struct span sent)
{
	size_t start;
	if (begins_with(sent, SPAN("http://")))
		start = strlen("http://");
	else if (begins_with(sent, SPAN("https://")))
		start = strlen("https://");
	else
		return false;
	struct span rest = span_from(sent, start), port;
	const char *slash = memchr(rest.at, '/', rest.len);
	size_t end = slash ? (size_t)(slash - rest.at) : rest.len;
	head->absolute_form = true;
	head->authority = (struct span){rest.at, end};
	struct span whole = head->method == HTTP_OPTIONS ? SPAN("*") : SPAN("/");
	head->target = slash ? span_from(rest, end) : whole;
	return host_is_valid(head->authority, &port);
}
