// Request heads: the end is found where it is however the bytes are cut, and what is accepted is
// what head.h promises.

#include "dataplane/http/head.h"
#include "tests/fuzz/head_check.h"

static const struct http_limits limits = {.line_bytes = 400, .head_bytes = 1000, .fields = 20};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_request(const struct http_head *head)
{
	assert(octet_is_token(head->method_name));
	assert(head->target.len > 0);
	assert(octet_scan(head->target, 0, OCTET_TARGET) == head->target.len);
	assert(head->target.at[0] == '/' || head->method == HTTP_OPTIONS ||
		head->method == HTTP_CONNECT);
	assert(head->authority.len == 0 || head_check_is_inside(head, head->authority));
	assert(head->absolute_form || head->method == HTTP_CONNECT || head->authority.len == 0);
	assert(head->host.len > 0 || head->minor == 0);
	assert(head->body != HTTP_BODY_CLOSE);
	assert(!head->expect_continue || head->body != HTTP_BODY_NONE);
}

// The end of the head, byte by byte.
static enum http_result end_bytewise(struct span in, uint32_t *head_bytes)
{
	uint32_t scanned = 0;
	enum http_result result = HTTP_MORE;
	for (size_t len = 0; len <= in.len && result == HTTP_MORE; len++)
		result = http_head_end((struct span){in.at, len}, &limits, &scanned, head_bytes);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct http_head head;
	struct span in = {(const char *)data, len};
	in = span_from(in, http_head_skip(in));
	uint32_t scanned = 0, head_bytes = 0, bytewise = 0;
	enum http_result result = http_head_end(in, &limits, &scanned, &head_bytes);
	assert(result == end_bytewise(in, &bytewise));
	assert(head_bytes == bytewise);
	// The parser is safe with what is no head, too.
	if (http_request_parse(in, &limits, &head) == HTTP_OK)
		assert(result == HTTP_OK && head_bytes == in.len);
	if (result != HTTP_OK)
		return 0;
	in.len = head_bytes;
	if (http_request_parse(in, &limits, &head) != HTTP_OK)
		return 0;
	assert(head.bytes == in.at && head.head_bytes == head_bytes);
	head_check_fields(&head);
	head_check_body(&head);
	head_check_options(&head);
	check_request(&head);
	return 0;
}
