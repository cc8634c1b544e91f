// A head of a model is `before`, another value, `after`. The value holds no CR or LF and does not
// begin or end with white space; so lines begin and end where they do in the model, the field has
// just this value, and whatever the model's head says of itself is said again. Nothing in a head
// depends on cookies: neither how it is delimited nor whether it is refused.
//
// model_cookie() looks from the end, where most browsers put their cookies, and many just as far
// from it. It need not find the
// field that counts: it only has to find the same place in the model and in what is of it.

#include "dataplane/http/model.h"

#include "dataplane/http/head_scan.h"
#include "dataplane/http/octet.h"

#include <assert.h>
#include <stddef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

static const struct span cookie_start = SPAN("\nCookie: ");

// Whether the line called Cookie begins after the LF at `at`.
static bool is_cookie(struct span in, size_t at)
{
	return in.len - at > cookie_start.len && (in.at[at + 1] | 0x20) == 'c' &&
	       memcmp(in.at + at + 2, cookie_start.at + 2, cookie_start.len - 2) == 0;
}

// The last LF before `end` behind which a line called Cookie begins; in.len if there is none.
static size_t find_one_by_one(struct span in, size_t end)
{
	for (size_t at = end; at-- > 0;)
		if (in.at[at] == '\n' && is_cookie(in, at))
			return at;
	return in.len;
}

#if defined(__SSE2__)
// The same, 16 places at a time.
static size_t find_last(struct span in)
{
	const __m128i feed = _mm_set1_epi8('\n');
	size_t end = in.len;
	for (; end >= sizeof(feed); end -= sizeof(feed)) {
		const char *from = in.at + end - sizeof(feed);
		__m128i octets = _mm_loadu_si128((const __m128i *)from);
		unsigned feeds = (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(octets, feed));
		while (feeds) {
			unsigned last = 31 - (unsigned)__builtin_clz(feeds);
			size_t at = end - sizeof(feed) + last;
			if (is_cookie(in, at))
				return at;
			feeds ^= 1u << last;
		}
	}
	return find_one_by_one(in, end);
}
#else
static size_t find_last(struct span in)
{
	return find_one_by_one(in, in.len);
}
#endif

size_t model_cookie(struct span in, size_t guess)
{
	const size_t line = guess + cookie_start.len; // from its LF to the end
	if (line <= in.len && in.at[in.len - line] == '\n' && is_cookie(in, in.len - line))
		return in.len - guess;
	size_t at = find_last(in);
	return at < in.len ? at + cookie_start.len : in.len;
}

// Where the one Cookie field has its value; the end of the head if it has no such field; 0 if it
// has several, or one that is empty.
static size_t value_at(const struct http_head *head)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_cookie);
	if (!field)
		return head->head_bytes;
	return field->next || field->value_len == 0 ? 0 : field->value_at;
}

bool model_make(const struct http_head *head, size_t cookie_at, struct model *model)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_cookie);
	const size_t value_len = field ? field->value_len : 0;
	const bool names_host = head->absolute_form || head->authority.len > 0;
	if (head->head_bytes - value_len > MODEL_BYTES_MAX || cookie_at != value_at(head) ||
		names_host || head->target.at[0] != '/')
		return false;
	assert(head->target.at > head->bytes && head->target.at < head->bytes + cookie_at);
	model->before = (uint16_t)cookie_at;
	model->after = (uint16_t)(head->head_bytes - value_len - cookie_at);
	model->cookie = head->first[HTTP_FIELD_cookie];
	model->target_at = (uint16_t)(head->target.at - head->bytes);
	memcpy(model->text, head->bytes, model->before);
	memcpy(model->text + model->before, head->bytes + model->before + value_len, model->after);
	memcpy(&model->head, head,
		offsetof(struct http_head, fields) + head->field_count * sizeof(head->fields[0]));
	return true;
}

// Whether a value may stand where the model has its own.
static bool is_value(struct span in, struct span value)
{
	if (octet_is_space(value.at[0]) || octet_is_space(value.at[value.len - 1]))
		return false;
	struct span until = {in.at, (size_t)(value.at - in.at) + value.len};
	return head_scan_best()->text(until, until.len - value.len) == until.len;
}

static bool is_alike(const struct model *model, struct span in, size_t cookie_at)
{
	const size_t fixed = (size_t)model->before + model->after;
	if (cookie_at != model->before || (model->cookie ? in.len <= fixed : in.len != fixed) ||
		memcmp(in.at, model->text, model->before) != 0)
		return false;
	if (!model->cookie)
		return true;
	return memcmp(in.at + in.len - model->after, model->text + model->before, model->after) ==
		       0 &&
	       is_value(in, (struct span){in.at + cookie_at, in.len - fixed});
}

// The value is another one: what stands behind it has moved.
static void move(struct http_head *head, unsigned cookie, size_t value_len)
{
	struct http_field *field = &head->fields[cookie - 1];
	const size_t end = (size_t)field->value_at + field->value_len;
	const uint16_t by = (uint16_t)(value_len - field->value_len);
	field->value_len = (uint16_t)value_len;
	if (by == 0)
		return;
	for (unsigned i = cookie; i < head->field_count; i++) {
		head->fields[i].name_at += by;
		head->fields[i].value_at += by;
	}
	for (unsigned i = 0; i < head->option_count; i++)
		if (head->options[i].at >= end)
			head->options[i].at += by;
}

bool model_read(const struct model *model, struct span in, size_t cookie_at,
	const struct http_limits *limits, struct http_head *head)
{
	if (in.len > limits->head_bytes || !is_alike(model, in, cookie_at))
		return false;
	const struct http_head *known = &model->head;
	memcpy(head, known,
		offsetof(struct http_head, fields) + known->field_count * sizeof(head->fields[0]));
	head->bytes = in.at;
	head->head_bytes = (uint32_t)in.len;
	head->method_name.at = in.at;
	head->target.at = in.at + model->target_at;
	if (model->cookie)
		move(head, model->cookie, in.len - model->before - model->after);
	const struct http_field *host = http_field_first(head, HTTP_FIELD_host);
	if (host)
		head->host = http_field_value(head, host);
	return true;
}
