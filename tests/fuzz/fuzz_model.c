// Heads by models: whatever is read by a model is what the parser reads, bit for bit.
//
// Three octets (where, two octets long; what), then a head. It becomes a model, by which it is read
// again: as it is, with that octet in place of the one there, with it added, and with one less.

#include "dataplane/http/model.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

static const struct http_limits limits = {.line_bytes = 400, .head_bytes = 1000, .fields = 20};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool is_same(const struct http_head *a, const struct http_head *b)
{
	size_t bytes = offsetof(struct http_head, fields) + a->field_count * sizeof(a->fields[0]);
	return memcmp(a, b, bytes) == 0;
}

// The parser on all of `in`.
static bool parse(struct span in, struct http_head *head)
{
	uint32_t scanned = 0;
	return http_request_read(in, &limits, &scanned, head) == HTTP_OK &&
	       head->head_bytes == in.len;
}

// Returns whether `in` is of the model.
static bool check(const struct model *model, struct span in)
{
	static struct http_head read, parsed;
	if (!model_read(model, in, model_cookie(in, 0), &limits, &read))
		return false;
	assert(parse(in, &parsed) && is_same(&read, &parsed));
	return true;
}

// Each variant in memory of its own, so that nothing is read beyond its end.
static void check_variant(const struct model *model, struct span head, size_t at, size_t drop,
	const char *octet, size_t add)
{
	size_t len = head.len - drop + add;
	char *text = malloc(len);
	memcpy(text, head.at, at);
	memcpy(text + at, octet, add);
	memcpy(text + at + add, head.at + at + drop, head.len - at - drop);
	check(model, (struct span){text, len});
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct http_head head;
	static struct model model;
	struct span in = {(const char *)data, len};
	if (len < 4)
		return 0;
	in = span_from(in, 3);
	uint32_t scanned = 0;
	if (http_request_read(in, &limits, &scanned, &head) != HTTP_OK)
		return 0;
	in.len = head.head_bytes;
	if (!model_make(&head, model_cookie(in, 0), &model))
		return 0;
	assert(check(&model, in));
	size_t at = ((size_t)data[0] << 8 | data[1]) % in.len;
	const char *octet = (const char *)data + 2;
	check_variant(&model, in, at, 1, octet, 1);
	check_variant(&model, in, at, 0, octet, 1);
	check_variant(&model, in, at, 1, octet, 0);
	return 0;
}
