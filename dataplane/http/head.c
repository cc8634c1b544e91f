// The outline of a head: where it ends, its first line, its fields. What single fields mean is read
// when all are known, in target.c, framing.c and connection.c.
//
// Nothing is repaired and nothing is decoded: a head is accepted as it stands or refused. The two
// passes over it (where is the end, what does it say) check the bytes independently, so that the
// parser is safe with any input. So a head that parses and ends in a blank line needs no pass that
// looks for its end; whatever does not is left to both, whose answers do not depend on how it came.

#include "dataplane/http/head.h"

#include "dataplane/http/connection.h"
#include "dataplane/http/field.h"
#include "dataplane/http/framing.h"
#include "dataplane/http/head_scan.h"
#include "dataplane/http/host.h"
#include "dataplane/http/octet.h"
#include "dataplane/http/target.h"

#include <assert.h>

#define CRLF_BYTES 2

#define LINES_MAX (HTTP_FIELDS_MAX + 2) // the first, the fields, the blank one

// A head being read.
struct reader {
	const struct head_scan *scan;
	struct span in;
	size_t at; // all before it is read
	unsigned line, line_count;
	uint16_t ends[LINES_MAX];
	uint16_t names[LINES_MAX]; // where the name that a line begins with ends
};

static void begin(
	struct reader *r, struct span in, const struct http_limits *limits, struct http_head *head);
static void find_lines(struct reader *r, unsigned max);
static enum http_result read_request(
	struct span in, const struct http_limits *limits, struct http_head *head);
static enum http_result read_request_line(struct reader *r, uint32_t max, struct http_head *head);
static enum http_result read_status_line(struct reader *r, uint32_t max, struct http_head *head);
static enum http_result read_fields(struct reader *r, uint32_t max, struct http_head *head);
static bool host_is_acceptable(struct http_head *head);

static size_t min(size_t a, size_t b)
{
	return a < b ? a : b;
}

enum http_result http_head_end(
	struct span in, const struct http_limits *limits, uint32_t *scanned, uint32_t *head_bytes)
{
	const struct head_scan *scan = head_scan_best();
	assert(limits->head_bytes > 0);
	assert(limits->head_bytes <= HTTP_HEAD_BYTES_MAX);
	assert(*scanned <= in.len);
	size_t at = *scanned;
	// Looked at again is no more than the first line, which is short or over its limit.
	bool in_first_line = at == 0 || !memchr(in.at, '\n', at);
	for (;;) {
		// Look no further than the limits, and ask for them before asking what is wrong:
		// so the answer is that of reading byte by byte.
		size_t line_max = in_first_line ? limits->line_bytes : limits->head_bytes;
		size_t seen = min(in.len, min(line_max + 1, limits->head_bytes - 1));
		if (at < seen)
			at = scan->text((struct span){in.at, seen}, at);
		if (in_first_line && at > limits->line_bytes)
			return HTTP_LINE_TOO_LARGE;
		if (at + CRLF_BYTES > limits->head_bytes)
			return HTTP_TOO_LARGE;
		if (at < in.len && in.at[at] != '\r')
			return HTTP_BAD;
		if (at + CRLF_BYTES > in.len)
			break;
		if (in.at[at + 1] != '\n' || at == 0)
			return HTTP_BAD;
		if (in.at[at - 1] == '\n') {
			*head_bytes = at + CRLF_BYTES;
			return HTTP_OK;
		}
		at += CRLF_BYTES;
		in_first_line = false;
	}
	*scanned = at;
	return HTTP_MORE;
}

static bool is_crlf(struct span in, size_t at)
{
	return in.len - at >= CRLF_BYTES && memcmp(in.at + at, "\r\n", CRLF_BYTES) == 0;
}

size_t http_head_skip(struct span in)
{
	return is_crlf(in, 0) ? CRLF_BYTES : 0;
}

enum http_result http_request_read(
	struct span in, const struct http_limits *limits, uint32_t *scanned, struct http_head *head)
{
	uint32_t head_bytes = 0;
	struct span most = {in.at, min(in.len, limits->head_bytes)};
	if (*scanned == 0 && read_request(most, limits, head) == HTTP_OK)
		return HTTP_OK;
	enum http_result result = http_head_end(in, limits, scanned, &head_bytes);
	if (result == HTTP_OK)
		result = http_request_parse((struct span){in.at, head_bytes}, limits, head);
	return result;
}

enum http_result http_request_parse(
	struct span in, const struct http_limits *limits, struct http_head *head)
{
	if (in.len > limits->head_bytes)
		return HTTP_TOO_LARGE;
	enum http_result result = read_request(in, limits, head);
	return result == HTTP_OK && head->head_bytes < in.len ? HTTP_BAD : result;
}

// Read the request head that `in` begins with.
static enum http_result read_request(
	struct span in, const struct http_limits *limits, struct http_head *head)
{
	struct reader r;
	begin(&r, in, limits, head);
	enum http_result result = read_request_line(&r, limits->line_bytes, head);
	if (result == HTTP_OK)
		result = read_fields(&r, limits->fields, head);
	if (result == HTTP_OK)
		result = connection_parse(head);
	if (result != HTTP_OK)
		return result;
	if (!host_is_acceptable(head) || !framing_of_request(head))
		return HTTP_BAD;
	head->expect_continue = connection_expects_continue(head);
	return HTTP_OK;
}

enum http_result http_answer_parse(struct span in, const struct http_limits *limits,
	enum http_method request_method, struct http_head *head)
{
	if (in.len > limits->head_bytes)
		return HTTP_TOO_LARGE;
	struct reader r;
	begin(&r, in, limits, head);
	enum http_result result = read_status_line(&r, limits->line_bytes, head);
	if (result == HTTP_OK)
		result = read_fields(&r, limits->fields, head);
	if (result == HTTP_OK)
		result = connection_parse(head);
	if (result != HTTP_OK)
		return result;
	if (head->head_bytes < in.len || !framing_of_answer(head, request_method))
		return HTTP_BAD;
	head->keep_alive &= head->body != HTTP_BODY_CLOSE;
	return HTTP_OK;
}

// All but the big array of fields is cleared.
static void begin(
	struct reader *r, struct span in, const struct http_limits *limits, struct http_head *head)
{
	assert(limits->head_bytes <= HTTP_HEAD_BYTES_MAX);
	assert(in.len <= limits->head_bytes);
	assert(limits->fields <= HTTP_FIELDS_MAX);
	memset(head, 0, offsetof(struct http_head, fields));
	head->bytes = in.at;
	r->scan = head_scan_best();
	r->in = in;
	r->at = 0;
	r->line = r->line_count = 0;
	find_lines(r, limits->fields + 2);
	r->scan->tokens(in, r->names, r->line_count);
}

// Find where lines begin and end, up to the blank one, or `max` of them, or the first that does not
// end in CRLF. All at once, because then reading one line does not wait for the one before.
static void find_lines(struct reader *r, unsigned max)
{
	uint64_t words[HEAD_SCAN_WORDS];
	size_t start = 0; // of the line
	for (size_t at = 0; at < r->in.len; at += HEAD_SCAN_OCTETS) {
		unsigned count = r->scan->mark(r->in, at, words);
		for (unsigned i = 0; i < count; i++) {
			size_t word_at = at + i * HEAD_SCAN_WORD_OCTETS;
			uint64_t stops = words[i];
			if (start == word_at + 1)
				stops &= stops - 1; // the LF of a line before
			for (; stops; stops &= stops - 1) {
				size_t end = word_at + __builtin_ctzll(stops);
				if (!is_crlf(r->in, end) || r->line_count == max)
					return;
				r->names[r->line_count] = start;
				r->ends[r->line_count++] = end;
				if (end == start)
					return;
				start = end + CRLF_BYTES;
				stops &= stops - 1; // the CR; then goes the LF
			}
		}
	}
}

// Take the line of which r->at is the start, or some place in it, without its CRLF. It is there.
static struct span read_line(struct reader *r)
{
	size_t end = r->ends[r->line++];
	struct span line = {r->in.at + r->at, end - r->at};
	r->at = end + CRLF_BYTES;
	return line;
}

// "HTTP/" DIGIT "." DIGIT, all of `s` (RFC 9112 2.3).
static enum http_result read_version(struct span s, struct http_head *head)
{
	struct span prefix = SPAN("HTTP/");
	if (s.len != prefix.len + 3 || memcmp(s.at, prefix.at, prefix.len) != 0)
		return HTTP_BAD;
	char major = s.at[5], minor = s.at[7];
	if (!octet_is_digit(major) || s.at[6] != '.' || !octet_is_digit(minor))
		return HTTP_BAD;
	if (major != '1' || minor > '1')
		return HTTP_VERSION;
	head->minor = minor - '0';
	return HTTP_OK;
}

static enum http_method method_of(struct span name)
{
	static const struct {
		struct span name;
		enum http_method method;
	} methods[] = {
		{SPAN("GET"), HTTP_GET},
		{SPAN("HEAD"), HTTP_HEAD},
		{SPAN("POST"), HTTP_POST},
		{SPAN("PUT"), HTTP_PUT},
		{SPAN("DELETE"), HTTP_DELETE},
		{SPAN("OPTIONS"), HTTP_OPTIONS},
		{SPAN("CONNECT"), HTTP_CONNECT},
		{SPAN("TRACE"), HTTP_TRACE},
	};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (span_is_equal(name, methods[i].name))
			return methods[i].method;
	return HTTP_METHOD_OTHER;
}

// method SP request-target SP HTTP-version (RFC 9112 3).
static enum http_result read_request_line(struct reader *r, uint32_t max, struct http_head *head)
{
	if (r->line == r->line_count)
		return HTTP_BAD;
	size_t method_end = r->names[r->line];
	struct span line = read_line(r);
	if (line.len > max)
		return HTTP_LINE_TOO_LARGE;
	if (method_end == 0 || method_end == line.len || line.at[method_end] != ' ')
		return HTTP_BAD;
	size_t target_at = method_end + 1, target_end = r->scan->target(line, target_at);
	if (target_end == target_at || target_end == line.len || line.at[target_end] != ' ')
		return HTTP_BAD;
	head->method_name = (struct span){line.at, method_end};
	head->method = method_of(head->method_name);
	// The version before the target's form: the preface of HTTP/2 is "PRI * HTTP/2.0".
	enum http_result result = read_version(span_from(line, target_end + 1), head);
	if (result != HTTP_OK)
		return result;
	struct span target = {line.at + target_at, target_end - target_at};
	return target_parse(head, target) ? HTTP_OK : HTTP_BAD;
}

// HTTP-version SP 3DIGIT SP [ reason-phrase ] (RFC 9112 4). The second space is not optional.
static enum http_result read_status_line(struct reader *r, uint32_t max, struct http_head *head)
{
	if (r->line == r->line_count)
		return HTTP_BAD;
	struct span line = read_line(r);
	if (line.len > max)
		return HTTP_LINE_TOO_LARGE;
	const size_t version_bytes = strlen("HTTP/1.1"), status_at = version_bytes + 1;
	if (line.len < status_at + 4)
		return HTTP_BAD;
	enum http_result result = read_version((struct span){line.at, version_bytes}, head);
	if (result != HTTP_OK)
		return result;
	const char *status = line.at + status_at;
	if (status[-1] != ' ' || status[3] != ' ')
		return HTTP_BAD;
	for (unsigned i = 0; i < 3; i++) {
		if (!octet_is_digit(status[i]))
			return HTTP_BAD;
		head->status = head->status * 10 + (status[i] - '0');
	}
	return head->status >= 100 && head->status <= 599 ? HTTP_OK : HTTP_BAD;
}

// field-name ":" OWS field-value OWS CRLF (RFC 9112 5).
static bool read_field(struct reader *r, struct http_head *head, struct http_field *field)
{
	if (r->line == r->line_count)
		return false;
	size_t name_end = r->names[r->line];
	if (name_end == r->at || r->in.at[name_end] != ':') // the line's CR is behind it
		return false;
	field->name_at = r->at;
	field->name_len = name_end - r->at;
	field->id = field_id(http_field_name(head, field));
	field->next = 0;
	r->at = name_end + 1;
	struct span value = octet_trim(read_line(r));
	field->value_at = value.at - r->in.at;
	field->value_len = value.len;
	return true;
}

static enum http_result read_fields(struct reader *r, uint32_t max, struct http_head *head)
{
	uint16_t last[HTTP_FIELD_IDS]; // index + 1, where first[] is set
	uint16_t count = 0;
	while (!is_crlf(r->in, r->at)) {
		if (count == max)
			return HTTP_TOO_LARGE;
		struct http_field *field = &head->fields[count++];
		if (!read_field(r, head, field))
			return HTTP_BAD;
		unsigned id = field->id;
		if (!head->first[id])
			head->first[id] = count;
		else if (id != HTTP_FIELD_OTHER)
			head->fields[last[id] - 1].next = count;
		last[id] = count;
	}
	head->field_count = count;
	head->head_bytes = r->at + CRLF_BYTES;
	return HTTP_OK;
}

// RFC 9112 3.2: one Host and no more, which HTTP/1.0 may leave out.
static bool host_is_acceptable(struct http_head *head)
{
	const struct http_field *field = http_field_first(head, HTTP_FIELD_host);
	if (!field)
		return head->minor == 0;
	struct span port;
	head->host = http_field_value(head, field);
	return !field->next && host_is_valid(head->host, &port);
}
