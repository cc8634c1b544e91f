// Answer heads. The first byte says what was asked.

#include "dataplane/http/head.h"
#include "tests/fuzz/head_check.h"

static const struct http_limits limits = {.line_bytes = 400, .head_bytes = 1000, .fields = 20};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct http_head head;
	if (len == 0)
		return 0;
	enum http_method asked = data[0] % (HTTP_TRACE + 1);
	struct span in = {(const char *)data + 1, len - 1};
	uint32_t scanned = 0, head_bytes = 0;
	enum http_result end = http_head_end(in, &limits, &scanned, &head_bytes);
	bool is_whole = end == HTTP_OK && head_bytes == in.len;
	if (http_answer_parse(in, &limits, asked, &head) != HTTP_OK)
		return 0;
	assert(is_whole);
	head_check_fields(&head);
	head_check_body(&head);
	head_check_options(&head);
	assert(head.status >= 100 && head.status <= 599);
	assert(asked != HTTP_HEAD || head.body == HTTP_BODY_NONE);
	assert(head.body != HTTP_BODY_CLOSE || !head.keep_alive);
	return 0;
}
