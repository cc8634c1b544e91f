// A small reader: one byte at a time in the head and on lines of chunks, by lengths in bodies.

#include "bench/crowd/answer.h"

#include <stdlib.h>

#define CHUNK_LINE_MAX 256u

void answer_begin(struct answer *answer)
{
	answer->part = ANSWER_HEAD;
	answer->closes = false;
	answer->status = 0;
	answer->head_bytes = answer->body_bytes = answer->line_bytes = 0;
	answer->left = 0;
}

static bool ends_with(const struct answer *answer, const char *end, uint32_t bytes)
{
	return answer->head_bytes >= bytes &&
	       memcmp(answer->head + answer->head_bytes - bytes, end, bytes) == 0;
}

// Walk over the lines of the head after the first. Returns false after the last.
static bool next_line(const struct answer *answer, struct span *line)
{
	const char *end = answer->head + answer->head_bytes;
	const char *start = line->at ? line->at + line->len : answer->head;
	const char *eol = memchr(start, '\n', (size_t)(end - start));
	if (line->at == NULL && eol) { // the status line
		start = eol + 1;
		eol = memchr(start, '\n', (size_t)(end - start));
	}
	if (!eol)
		return false;
	*line = (struct span){start, (size_t)(eol + 1 - start)};
	return true;
}

// The value if this line is a field of that name.
static struct span value_of(struct span line, const char *name)
{
	const size_t len = strlen(name);
	if (line.len <= len || line.at[len] != ':' ||
		!span_is_equal_caseless((struct span){line.at, len}, (struct span){name, len}))
		return (struct span){NULL, 0};
	struct span value = span_from(line, len + 1);
	while (value.len > 0 && (value.at[0] == ' ' || value.at[0] == '\t'))
		value = span_from(value, 1);
	while (value.len > 0 && (unsigned char)value.at[value.len - 1] <= ' ')
		value.len--;
	return value;
}

struct span answer_field(const struct answer *answer, const char *name)
{
	for (struct span line = {NULL, 0}; next_line(answer, &line);) {
		const struct span value = value_of(line, name);
		if (value.at)
			return value;
	}
	return (struct span){NULL, 0};
}

struct span answer_cookie(const struct answer *answer, const char *name)
{
	const size_t len = strlen(name);
	for (struct span line = {NULL, 0}; next_line(answer, &line);) {
		const struct span value = value_of(line, "set-cookie");
		if (value.len <= len || memcmp(value.at, name, len) != 0 || value.at[len] != '=')
			continue;
		const struct span rest = span_from(value, len + 1);
		const char *end = memchr(rest.at, ';', rest.len);
		return (struct span){rest.at, end ? (size_t)(end - rest.at) : rest.len};
	}
	return (struct span){NULL, 0};
}

struct span answer_json(const struct answer *answer, const char *name)
{
	const struct span none = {NULL, 0};
	const size_t len = strlen(name);
	const char *end = answer->body + answer->body_bytes;
	for (const char *at = answer->body; (at = memmem(at, (size_t)(end - at), name, len));
		at++) {
		const char *value = at + len;
		if (at == answer->body || at[-1] != '"' || end - value < 3 || value[0] != '"' ||
			value[1] != ':')
			continue;
		value += 2;
		const char *stops = value[0] == '"' ? "\"" : ",}]";
		value += value[0] == '"';
		size_t bytes = 0;
		while (value + bytes < end && !strchr(stops, value[bytes]))
			bytes++;
		return value + bytes < end ? (struct span){value, bytes} : none;
	}
	return none;
}

// What the head says of the body (RFC 9112 6.3).
static void find_body(struct answer *answer)
{
	const struct span length = answer_field(answer, "content-length");
	const struct span coding = answer_field(answer, "transfer-encoding");
	const struct span connection = answer_field(answer, "connection");
	answer->closes = span_is_equal_caseless(connection, SPAN("close"));
	if (answer->status < 200) {
		answer->head_bytes = 0; // 1xx: the answer itself is still to come
	} else if (answer->status == 204 || answer->status == 304) {
		answer->part = ANSWER_COMPLETE;
	} else if (coding.at) {
		answer->part = ANSWER_CHUNK_SIZE;
	} else if (length.at) {
		answer->left = strtoull(length.at, NULL, 10); // the line end stops it
		answer->part = answer->left ? ANSWER_LENGTH : ANSWER_COMPLETE;
	} else {
		answer->part = ANSWER_UNTIL_CLOSE;
		answer->closes = true;
	}
}

static bool take_head_byte(struct answer *answer, char c)
{
	if (answer->head_bytes == ANSWER_HEAD_MAX)
		return false;
	answer->head[answer->head_bytes++] = c;
	if (c != '\n' || !ends_with(answer, "\r\n\r\n", 4))
		return true;
	if (memcmp(answer->head, "HTTP/1.", 7) != 0 || answer->head_bytes < 16)
		return false;
	answer->status = (uint16_t)strtoul(answer->head + 9, NULL, 10);
	if (answer->status < 100 || answer->status > 599)
		return false;
	find_body(answer);
	return true;
}

static bool take_chunk_size_byte(struct answer *answer, char c)
{
	char *line =
		answer->head + answer->head_bytes; // after the head there is room, or it is bad
	if (answer->line_bytes == CHUNK_LINE_MAX ||
		answer->head_bytes + CHUNK_LINE_MAX > ANSWER_HEAD_MAX)
		return false;
	line[answer->line_bytes++] = c;
	if (c != '\n')
		return true;
	answer->line_bytes = 0;
	answer->left = strtoull(line, NULL, 16);
	answer->part = answer->left ? ANSWER_CHUNK : ANSWER_TRAILER;
	answer->left += 2; // its own line end
	return true;
}

static bool take_trailer_byte(struct answer *answer, char c)
{
	if (c == '\n' && answer->line_bytes == 0)
		answer->part = ANSWER_COMPLETE;
	else if (c == '\n')
		answer->line_bytes = 0;
	else if (c != '\r')
		answer->line_bytes = 1;
	return true;
}

static bool take_byte(struct answer *answer, char c)
{
	if (answer->part == ANSWER_HEAD)
		return take_head_byte(answer, c);
	if (answer->part == ANSWER_CHUNK_SIZE)
		return take_chunk_size_byte(answer, c);
	return take_trailer_byte(answer, c);
}

// Bytes of a body: of a chunk its line end is among them, which no reader of JSON minds.
static size_t take_body(struct answer *answer, struct span in)
{
	size_t bytes = in.len;
	if (answer->part != ANSWER_UNTIL_CLOSE && bytes > answer->left)
		bytes = answer->left;
	size_t kept = ANSWER_BODY_KEPT - answer->body_bytes;
	kept = kept < bytes ? kept : bytes;
	memcpy(answer->body + answer->body_bytes, in.at, kept);
	answer->body_bytes += (uint32_t)kept;
	if (answer->part == ANSWER_UNTIL_CLOSE)
		return bytes;
	answer->left -= bytes;
	if (answer->left == 0)
		answer->part = answer->part == ANSWER_CHUNK ? ANSWER_CHUNK_SIZE : ANSWER_COMPLETE;
	return bytes;
}

enum answer_result answer_feed(struct answer *answer, struct span in)
{
	while (in.len > 0) {
		const uint8_t part = answer->part;
		size_t taken = 1;
		if (part == ANSWER_COMPLETE)
			return ANSWER_BAD;
		if (part == ANSWER_LENGTH || part == ANSWER_CHUNK || part == ANSWER_UNTIL_CLOSE)
			taken = take_body(answer, in);
		else if (!take_byte(answer, in.at[0]))
			return ANSWER_BAD;
		in = span_from(in, taken);
	}
	return answer->part == ANSWER_COMPLETE ? ANSWER_DONE : ANSWER_MORE;
}

bool answer_is_whole_at_end(const struct answer *answer)
{
	return answer->part == ANSWER_UNTIL_CLOSE || answer->part == ANSWER_COMPLETE;
}
