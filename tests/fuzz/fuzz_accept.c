// Lists and cookies: the input is the value of the Accept fields and of Cookie, a field line for
// each of its lines.

#include "dataplane/http/accept.h"
#include "dataplane/http/cookie.h"
#include "tests/fuzz/head_check.h"

#define HEAD_BYTES_MAX 20000

static const struct http_limits limits = {400, HEAD_BYTES_MAX, HTTP_FIELDS_MAX};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool has_odd_name(struct span name, const void *arg)
{
	return name.at[0] & *(const char *)arg;
}

static bool is_any_name(struct span name, const void *arg)
{
	(void)arg;
	return name.len > 0;
}

// Append to `out`, which holds *len bytes, as far as there is room.
static void append(char out[HEAD_BYTES_MAX], size_t *len, struct span s)
{
	if (s.len > HEAD_BYTES_MAX - *len)
		return;
	memcpy(out + *len, s.at, s.len);
	*len += s.len;
}

// Parse a request with the input as the values of `name`. False if it is refused.
static bool parse_with(struct http_head *head, struct span name, struct span input)
{
	static char bytes[HEAD_BYTES_MAX];
	size_t len = 0;
	append(bytes, &len, SPAN("GET / HTTP/1.1\r\nHost: a\r\n"));
	while (input.len > 0) {
		const char *end = memchr(input.at, '\n', input.len);
		size_t line_bytes = end ? (size_t)(end - input.at) : input.len;
		append(bytes, &len, name);
		append(bytes, &len, (struct span){input.at, line_bytes});
		append(bytes, &len, SPAN("\r\n"));
		input = span_from(input, line_bytes + (end ? 1 : 0));
	}
	append(bytes, &len, SPAN("\r\n"));
	return http_request_parse((struct span){bytes, len}, &limits, head) == HTTP_OK;
}

static void check_types(const struct http_head *head)
{
	struct accept_types types = accept_types(head);
	const struct http_field *field = http_field_first(head, HTTP_FIELD_accept);
	assert(types.is_absent == !field);
	assert(!types.is_any || !types.names_html_or_json);
	assert(!types.is_any || !types.ranks_json_first);
}

static void check_cookies(const struct http_head *head)
{
	static char kept[HEAD_BYTES_MAX];
	struct cookie_walk walk = cookie_walk(head);
	for (struct cookie cookie; cookie_next(&walk, &cookie);) {
		assert(cookie.name.len > 0);
		assert(head_check_is_inside(head, cookie.name));
		assert(head_check_is_inside(head, cookie.value));
	}
	const struct http_field *field = http_field_first(head, HTTP_FIELD_cookie);
	for (; field; field = http_field_next(head, field)) {
		struct span value = http_field_value(head, field);
		size_t all = cookie_write_kept(value, kept, has_odd_name, &(char){0});
		assert(all == 0 || span_is_equal(value, (struct span){kept, all}));
		size_t some = cookie_write_kept(value, kept, has_odd_name, &(char){1});
		assert(some <= value.len);
		size_t none = cookie_write_kept(value, kept, is_any_name, NULL);
		assert(none <= some || none == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct http_head head;
	static const struct span languages[] = {{"en", 2}, {"ja", 2}, {"pt-br", 5}};
	struct span in = {(const char *)data, len};
	if (parse_with(&head, SPAN("Accept: "), in))
		check_types(&head);
	if (parse_with(&head, SPAN("Accept-Language: "), in))
		assert(accept_language(&head, languages, 3) < 3);
	if (parse_with(&head, SPAN("Accept-Encoding: "), in))
		assert(accept_encoding(&head) <= ACCEPT_BR);
	if (parse_with(&head, SPAN("Cookie: "), in))
		check_cookies(&head);
	return 0;
}
