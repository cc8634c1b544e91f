// Segments as bytes. The ports and the checksum are left zero: whoever carries the bytes knows the
// addresses, and damages nothing.

#include "tests/sim/tcp/wire.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { END, NOP, MSS, SCALE, SACK_PERMITTED, SACK, TIMESTAMP = 8 };

static char *put16(char *at, uint32_t value)
{
	at[0] = (char)(value >> 8);
	at[1] = (char)value;
	return at + 2;
}

static char *put32(char *at, uint32_t value)
{
	return put16(put16(at, value >> 16), value);
}

static char *put_kind(char *at, int kind, int len)
{
	at[0] = (char)kind;
	at[1] = (char)len;
	return at + 2;
}

static uint32_t get16(const char *at)
{
	return (uint32_t)(uint8_t)at[0] << 8 | (uint8_t)at[1];
}

static uint32_t get32(const char *at)
{
	return get16(at) << 16 | get16(at + 2);
}

static char *write_options(const struct wire *s, char *at)
{
	const char *const first = at;
	if (s->has_mss)
		at = put16(put_kind(at, MSS, 4), s->mss);
	if (s->has_sack_permitted)
		at = put_kind(at, SACK_PERMITTED, 2);
	if (s->has_timestamp)
		at = put32(put32(put_kind(at, TIMESTAMP, 10), s->ts_value), s->ts_echo);
	if (s->has_scale) {
		at = put_kind(at, SCALE, 3);
		*at++ = (char)s->scale;
	}
	if (s->sack_count > 0)
		at = put_kind(at, SACK, 2 + 8 * s->sack_count);
	for (unsigned i = 0; i < s->sack_count; i++)
		at = put32(put32(at, s->sacks[i].from), s->sacks[i].to);
	if (s->raw.len > 0)
		memcpy(at, s->raw.at, s->raw.len);
	at += s->raw.len;
	while ((at - first) % 4 != 0)
		*at++ = s->raw.len > 0 ? END : NOP;
	return at;
}

static char *write_header(const struct wire *s, char *bytes, size_t header)
{
	memset(bytes, 0, TCP_HEADER_BYTES);
	put32(put32(bytes + 4, s->seq), s->ack);
	bytes[12] = (char)(header / 4 << 4);
	bytes[13] = (char)s->flags;
	put16(bytes + 14, s->window);
	if (s->is_urgent)
		put16(bytes + 18, (uint32_t)s->payload.len);
	return bytes + header;
}

size_t wire_write(const struct wire *s, char *bytes)
{
	const char *end = write_options(s, bytes + TCP_HEADER_BYTES);
	const size_t header = (size_t)(end - bytes);
	assert(header <= 60 && header + s->payload.len <= WIRE_BYTES_MAX);
	char *at = write_header(s, bytes, header);
	if (s->payload.len > 0)
		memcpy(at, s->payload.at, s->payload.len);
	return header + s->payload.len;
}

static void read_option(int kind, struct span option, struct wire *s)
{
	const char *at = option.at + 2;
	if (kind == MSS && option.len == 4) {
		s->has_mss = true;
		s->mss = (uint16_t)get16(at);
	} else if (kind == SCALE && option.len == 3) {
		s->has_scale = true;
		s->scale = (uint8_t)*at;
	} else if (kind == SACK_PERMITTED && option.len == 2) {
		s->has_sack_permitted = true;
	} else if (kind == TIMESTAMP && option.len == 10) {
		s->has_timestamp = true;
		s->ts_value = get32(at);
		s->ts_echo = get32(at + 4);
	} else if (kind == SACK && option.len % 8 == 2 && option.len <= 2 + 8 * TCP_SACK_MAX) {
		for (; at < option.at + option.len; at += 8)
			s->sacks[s->sack_count++] = (struct tcp_sack){get32(at), get32(at + 4)};
	} else {
		abort(); // ours sends no other
	}
}

void wire_read(struct span bytes, struct wire *s)
{
	const size_t header = (size_t)((uint8_t)bytes.at[12] >> 4) * 4;
	assert(bytes.len >= TCP_HEADER_BYTES && header >= TCP_HEADER_BYTES && header <= bytes.len);
	*s = (struct wire){.seq = get32(bytes.at + 4),
		.ack = get32(bytes.at + 8),
		.flags = (uint8_t)bytes.at[13],
		.window = (uint16_t)get16(bytes.at + 14),
		.payload = span_from(bytes, header)};
	for (size_t at = TCP_HEADER_BYTES; at < header && bytes.at[at] != END;) {
		if (bytes.at[at] == NOP) {
			at++;
			continue;
		}
		assert(at + 1 < header);
		const size_t len = (uint8_t)bytes.at[at + 1];
		assert(len >= 2 && at + len <= header);
		read_option(bytes.at[at], (struct span){bytes.at + at, len}, s);
		at += len;
	}
}

size_t wire_of_out(const struct tcp_out *out, char *bytes)
{
	const size_t header = TCP_HEADER_BYTES + out->option_bytes;
	assert(out->option_bytes <= TCP_OPTIONS_MAX && out->option_bytes % 4 == 0);
	assert(out->part_count <= TCP_PARTS_MAX);
	const struct wire s = {
		.seq = out->seq, .ack = out->ack, .flags = out->flags, .window = out->window};
	char *at = write_header(&s, bytes, header);
	memcpy(bytes + TCP_HEADER_BYTES, out->options, out->option_bytes);
	for (unsigned i = 0; i < out->part_count; i++) {
		assert((size_t)(at - bytes) + out->parts[i].len <= WIRE_BYTES_MAX);
		memcpy(at, out->parts[i].at, out->parts[i].len);
		at += out->parts[i].len;
	}
	return (size_t)(at - bytes);
}

uint32_t wire_len(const struct wire *s)
{
	return (uint32_t)s->payload.len + !!(s->flags & TCP_SYN) + !!(s->flags & TCP_FIN);
}

const char *wire_text(const struct wire *s, uint32_t seq_base, uint32_t ack_base)
{
	static const char *const names[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG"};
	static char text[400];
	int len = 0;
	for (int bit = 5; bit >= 0; bit--)
		if (s->flags & 1 << bit)
			len += snprintf(text + len, sizeof(text) - (size_t)len, "%s ", names[bit]);
#define ADD(...) len += snprintf(text + len, sizeof(text) - (size_t)len, __VA_ARGS__)
	ADD("seq %d", (int)(s->seq - seq_base));
	if (s->flags & TCP_ACK)
		ADD(" ack %d", (int)(s->ack - ack_base));
	ADD(" raw_win %u", s->window);
	if (s->payload.len > 0)
		ADD(" len %zu", s->payload.len);
	if (s->has_mss)
		ADD(" mss %u", s->mss);
	if (s->has_scale)
		ADD(" wscale %u", s->scale);
	if (s->has_sack_permitted)
		ADD(" sackok");
	if (s->has_timestamp)
		ADD(" ts %u echo %u", s->ts_value, s->ts_echo);
	for (unsigned i = 0; i < s->sack_count; i++)
		ADD(" sack %d-%d", (int)(s->sacks[i].from - ack_base),
			(int)(s->sacks[i].to - ack_base));
#undef ADD
	return text;
}

void wire_fill(uint64_t salt, uint64_t offset, char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = wire_byte(salt, offset + i);
}

bool wire_matches(uint64_t salt, uint64_t offset, struct span bytes)
{
	for (size_t i = 0; i < bytes.len; i++)
		if (bytes.at[i] != wire_byte(salt, offset + i))
			return false;
	return true;
}
