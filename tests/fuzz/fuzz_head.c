// Request heads: the end is found where it is however the bytes are cut, and what is accepted is
// what head.h promises.

#include "dataplane/http/head.h"
#include "tests/fuzz/head_check.h"

#include <stddef.h>

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

static bool is_same(const struct http_head *a, const struct http_head *b)
{
	size_t bytes = offsetof(struct http_head, fields) + a->field_count * sizeof(a->fields[0]);
	return memcmp(a, b, bytes) == 0;
}

// In one pass, and cut in two: as the end looked for and then parsed.
static void check_read(struct span in, enum http_result result, const struct http_head *head)
{
	static struct http_head read;
	uint32_t scanned = 0;
	assert(http_request_read(in, &limits, &scanned, &read) == result);
	assert(result != HTTP_OK || is_same(&read, head));
	scanned = 0;
	struct span half = {in.at, in.len / 2};
	enum http_result cut = http_request_read(half, &limits, &scanned, &read);
	if (cut == HTTP_MORE)
		cut = http_request_read(in, &limits, &scanned, &read);
	assert(cut == result);
	assert(result != HTTP_OK || is_same(&read, head));
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
	struct span whole = in;
	in.len = head_bytes;
	if (result == HTTP_OK)
		result = http_request_parse(in, &limits, &head);
	check_read(whole, result, &head);
	if (result != HTTP_OK)
		return 0;
	assert(head.bytes == in.at && head.head_bytes == head_bytes);
	head_check_fields(&head);
	head_check_body(&head);
	head_check_options(&head);
	check_request(&head);
	return 0;
}
