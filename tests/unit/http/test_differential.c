// Against libhttp-parser, an independent reader: whatever we accept it accepts too, with the same
// method, target, fields and body. Where it accepts what we refuse, the class is named here.

#include "dataplane/http/head.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/http/other_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define BYTES_MAX 600

static const struct http_limits limits = {.line_bytes = 8192, .head_bytes = 16384, .fields = 100};
static struct http_head head;

static struct other_head other;

// Whether the other reader is known to take the framing of this head for something else.
static bool is_framing_misread(void)
{
	struct span coding = SPAN("transfer-encoding");
	for (unsigned i = 0; i < head.field_count; i++) {
		const struct http_field *field = &head.fields[i];
		struct span name = http_field_name(&head, field);
		// It counts a longer name that begins like this one.
		if (name.len > coding.len &&
			span_is_equal_caseless((struct span){name.at, coding.len}, coding))
			return true;
		// It bears no tab after these values, which RFC 9110 5.5 allows.
		if (field->id != HTTP_FIELD_transfer_encoding &&
			field->id != HTTP_FIELD_content_length)
			continue;
		for (const char *c = head.bytes + field->value_at + field->value_len; *c != '\r';
			c++)
			if (*c == '\t')
				return true;
	}
	return false;
}

// What we accept and it does not, knowingly. It knows 33 methods; to us any token is one.
static bool is_refused_by_the_other_alone(void)
{
	return is_framing_misread() ||
	       (other.is_method_unknown && head.method == HTTP_METHOD_OTHER);
}

// What the two readers tell differently about fields, version and body; NULL if nothing.
static const char *difference(void)
{
	if (other.major != 1 || other.minor != head.minor)
		return "version";
	if (other.field_count != head.field_count)
		return "number of fields";
	for (unsigned i = 0; i < head.field_count; i++) {
		const struct http_field *field = &head.fields[i];
		if (!span_is_equal(other.names[i], http_field_name(&head, field)))
			return "name of a field";
		if (!span_is_equal(other.values[i], http_field_value(&head, field)))
			return "value of a field";
	}
	bool is_told_by_status = head.status && head.body == HTTP_BODY_NONE;
	if (is_told_by_status || is_framing_misread())
		return NULL;
	if (other.is_chunked != (head.body == HTTP_BODY_CHUNKED) ||
		other.has_length != (head.body == HTTP_BODY_LENGTH) ||
		other.content_length != head.content_length)
		return "body";
	return NULL;
}

static const char *difference_of_targets(void)
{
	struct span url = other.url;
	if (head.absolute_form) {
		size_t start = head.authority.at + head.authority.len - url.at;
		if (start > url.len)
			return "authority";
		struct span whole = head.method == HTTP_OPTIONS ? SPAN("*") : SPAN("/");
		url = start == url.len ? whole : span_from(url, start);
	}
	return span_is_equal(url, head.target) ? NULL : "target";
}

static const char *difference_of_requests(struct span in)
{
	other_read(in, true, &other);
	if (!other.is_accepted)
		return is_refused_by_the_other_alone() ? NULL : other.error;
	if (!span_is_equal(other.method, head.method_name))
		return "method";
	const char *what = difference_of_targets();
	return what ? what : difference();
}

static const char *difference_of_answers(struct span in)
{
	other_read(in, false, &other);
	if (!other.is_accepted)
		return is_refused_by_the_other_alone() ? NULL : other.error;
	return other.status != head.status ? "status" : difference();
}

static const char *const requests[] = {
	"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
	"GET /a?c=d&e HTTP/1.1\r\nHost: a.example:80\r\nAccept: */*\r\nCookie: a=1\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nConnection: close\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n",
	"PUT http://a:80/b HTTP/1.1\r\nHost: a:80\r\nConnection: keep-alive, x\r\nX: y\r\n\r\n",
	"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
	"OPTIONS * HTTP/1.1\r\nHost: [::1]\r\n\r\n",
	"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
	"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
};

static const char *const answers[] = {
	"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nContent-Type: text/html\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
	"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
	"HTTP/1.1 204 \r\n\r\n",
	"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
};

// What goes wrong between readers.
static const char *const spices[] = {"\r\n", "\n", "\r", " ", "\t", ":", ",", ";", "\"", "\\", "#",
	"?", "/", "//", "@", "%", "[", "]", "0", "1", "9", "+", "-", "x", "\v", "\f", "\x7f",
	"\x80", "\xff", "HTTP/1.1", "HTTP/1.0", "http://", "Host: b\r\n", "Content-Length: 3\r\n",
	"Content-Length: 03\r\n", "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip\r\n",
	"chunked", ", chunked", "identity", "Connection: close\r\n", "Connection: keep-alive\r\n",
	"close", "keep-alive", "upgrade", "Upgrade: h2c\r\n", "\r\n ", "\r\n\t", "A: \r\n",
	"\r\n\r\n"};

// Bytes that change.
struct draft {
	size_t len;
	char at[BYTES_MAX];
};

static void take_out(struct draft *draft, size_t at, size_t bytes)
{
	size_t end = at + bytes < draft->len ? at + bytes : draft->len;
	memmove(draft->at + at, draft->at + end, draft->len - end);
	draft->len -= end - at;
}

static void put_in(struct draft *draft, size_t at, const char *s)
{
	struct span new = {s, strlen(s)};
	if (draft->len + new.len > BYTES_MAX)
		return;
	memmove(draft->at + at + new.len, draft->at + at, draft->len - at);
	memcpy(draft->at + at, new.at, new.len);
	draft->len += new.len;
}

static size_t line_start(const struct draft *draft, size_t at)
{
	while (at > 0 && draft->at[at - 1] != '\n')
		at--;
	return at;
}

// A copy of one of the seeds with up to three changes, flush against the unmapped page.
static struct span mutated(const char *const *seeds, size_t count)
{
	struct draft draft = {.len = 0};
	put_in(&draft, 0, seeds[dice(count)]);
	for (unsigned changes = dice(4); changes > 0 && draft.len > 0; changes--) {
		size_t at = dice(draft.len);
		switch (dice(6)) {
		case 0:
			take_out(&draft, at, 1 + dice(2));
			break;
		case 1:
			take_out(&draft, at, 1 + dice(12));
			break;
		case 2:
			draft.at[at] = (char)dice(256);
			break;
		case 3:
			put_in(&draft, line_start(&draft, at), spices[dice(LENGTH(spices))]);
			break;
		default:
			put_in(&draft, at, spices[dice(LENGTH(spices))]);
		}
	}
	return guard_copy((struct span){draft.at, draft.len});
}

// The head at the front of `in`; empty if there is none.
static struct span head_of(struct span in)
{
	uint32_t scanned = 0, bytes = 0;
	if (http_head_end(in, &limits, &scanned, &bytes) != HTTP_OK)
		bytes = 0;
	return (struct span){in.at, bytes};
}

static void requests_are_read_alike(void **state)
{
	(void)state;
	dice_begin();
	unsigned accepted = 0;
	for (unsigned round = 0; round < 100000; round++) {
		struct span in = head_of(mutated(requests, LENGTH(requests)));
		if (http_request_parse(in, &limits, &head) == HTTP_OK) {
			const char *what = difference_of_requests(in);
			if (what)
				fail_msg("%s: %.*s", what, (int)in.len, in.at);
			accepted++;
		}
	}
	printf("%u of 100000 requests accepted\n", accepted);
	assert_true(accepted > 20000);
}

static void answers_are_read_alike(void **state)
{
	(void)state;
	dice_begin();
	unsigned accepted = 0;
	for (unsigned round = 0; round < 100000; round++) {
		struct span in = head_of(mutated(answers, LENGTH(answers)));
		if (http_answer_parse(in, &limits, HTTP_GET, &head) == HTTP_OK) {
			const char *what = difference_of_answers(in);
			if (what)
				fail_msg("%s: %.*s", what, (int)in.len, in.at);
			accepted++;
		}
	}
	printf("%u of 100000 answers accepted\n", accepted);
	assert_true(accepted > 20000);
}

// Where the other reader is the more generous one. Each of these has been a way to make two readers
// disagree, or may become one.
static void what_only_we_refuse(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *input;
	} cases[] = {
		{"empty lines in front", "\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"lone LF in front", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"lone LF after the line", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
		{"lone LF after a field", "GET / HTTP/1.1\r\nHost: a\n\r\n"},
		{"lone LF as the last line", "GET / HTTP/1.1\r\nHost: a\r\n\n"},
		{"folded field", "GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n d\r\n\r\n"},
		{"folded first value", "GET / HTTP/1.1\r\nHost:\r\n a\r\n\r\n"},
		{"space in a name", "GET / HTTP/1.1\r\nHost: a\r\nB c: d\r\n\r\n"},
		{"space before the colon", "GET / HTTP/1.1\r\nHost: a\r\nB : c\r\n\r\n"},
		{"spaces before the target", "GET   / HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"spaces before the version", "GET /   HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"HTTP/0.9", "GET /\r\n\r\n"},
		{"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"obs-text in the target", "GET /\xe6 HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"tab in the target", "GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"* with GET", "GET * HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"user in the target", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"another scheme", "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"no port with CONNECT", "CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n"},
		{"HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n"},
		{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"},
		{"no Host", "GET / HTTP/1.1\r\n\r\n"},
		{"two Hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
		{"malformed Host", "GET / HTTP/1.1\r\nHost: a/b, c\r\n\r\n"},
		{"chunked in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"},
		{"two codings", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n"
				"Transfer-Encoding: chunked\r\n\r\n"},
		{"coding before chunked", "POST / HTTP/1.1\r\nHost: a\r\n"
					  "Transfer-Encoding: gzip, chunked\r\n\r\n"},
		{"option that is no token", "GET / HTTP/1.1\r\nHost: a\r\nConnection: a b\r\n\r\n"},
	};
	for (size_t i = 0; i < LENGTH(cases); i++) {
		struct span in = guard_string(cases[i].input);
		struct span ours = head_of(in);
		bool is_ours =
			ours.len == in.len && http_request_parse(ours, &limits, &head) == HTTP_OK;
		other_read(in, true, &other);
		if (is_ours || !other.is_accepted)
			fail_msg("%s: ours %d, %s", cases[i].name, is_ours, other.error);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_read_alike),
		cmocka_unit_test(answers_are_read_alike),
		cmocka_unit_test(what_only_we_refuse),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
