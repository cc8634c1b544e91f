// Whatever RFC 9112 lets a recipient repair (repeated lengths that are equal, a length beside a
// coding, codings before `chunked`) is refused: nothing that browsers and servers send is lost, and
// there is no second reading of a message that passes here.

#include "dataplane/http/framing.h"

#include "dataplane/http/octet.h"

static bool announced(struct http_head *head);
static bool parse_length(struct span digits, uint64_t *length);

bool framing_of_request(struct http_head *head)
{
	return announced(head);
}

bool framing_of_answer(struct http_head *head, enum http_method request_method)
{
	if (!announced(head))
		return false;
	bool is_bare = head->status < 200 || head->status == 204;
	// RFC 9112 6.1, RFC 9110 8.6: these announce nothing; "Content-Length: 0" is common and
	// harmless
	if (is_bare && (head->body == HTTP_BODY_CHUNKED || head->content_length > 0))
		return false;
	if (is_bare || head->status == 304 || request_method == HTTP_HEAD ||
		(request_method == HTTP_CONNECT && head->status < 300)) {
		head->body = HTTP_BODY_NONE;
		head->content_length = 0;
	} else if (head->body == HTTP_BODY_NONE) {
		head->body = HTTP_BODY_CLOSE;
	}
	return true;
}

// What Transfer-Encoding and Content-Length announce, whether or not it follows.
static bool announced(struct http_head *head)
{
	const struct http_field *coding = http_field_first(head, HTTP_FIELD_transfer_encoding);
	const struct http_field *length = http_field_first(head, HTTP_FIELD_content_length);
	head->body = HTTP_BODY_NONE;
	head->content_length = 0;
	if ((coding && length) || (coding && coding->next) || (length && length->next))
		return false;
	if (coding) {
		head->body = HTTP_BODY_CHUNKED;
		return head->minor > 0 &&
		       span_is_equal_caseless(http_field_value(head, coding), SPAN("chunked"));
	}
	if (length) {
		head->body = HTTP_BODY_LENGTH;
		return parse_length(http_field_value(head, length), &head->content_length);
	}
	return true;
}

// RFC 9110 8.6: digits, at least one; more than 64 bits is no length.
static bool parse_length(struct span digits, uint64_t *length)
{
	*length = 0;
	for (size_t i = 0; i < digits.len; i++)
		if (!octet_is_digit(digits.at[i]) || __builtin_mul_overflow(*length, 10, length) ||
			__builtin_add_overflow(*length, digits.at[i] - '0', length))
			return false;
	return digits.len > 0;
}
