// Reading of headers. Nearly all segments carry either no option or, as all large stacks write it,
// two NOPs and a timestamp; that one is read at once.

#include "dataplane/net/tcp/segment.h"

#include <arpa/inet.h>
#include <string.h>

enum option {
	OPTION_END = 0,
	OPTION_NOP = 1,
	OPTION_MSS = 2,
	OPTION_SCALE = 3,
	OPTION_SACK_PERMITTED = 4,
	OPTION_SACK = 5,
	OPTION_TIMESTAMP = 8,
};

#define SCALE_MAX 14u // RFC 7323 2.3

static uint16_t read16(const char *at)
{
	uint16_t value;
	memcpy(&value, at, sizeof(value));
	return ntohs(value);
}

static uint32_t read32(const char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof(value));
	return ntohl(value);
}

static void read_sacks(const char *at, size_t bytes, struct tcp_segment *segment)
{
	size_t count = bytes / 8;
	if (count > TCP_SACK_MAX)
		count = TCP_SACK_MAX;
	for (size_t i = 0; i < count; i++, at += 8)
		segment->sacks[i] = (struct tcp_sack){read32(at), read32(at + 4)};
	segment->sack_count = (uint8_t)count;
}

// One option: `at` is its kind, `len` the length it names, which is there. One of the wrong length
// is as good as unknown.
static void read_option(const char *at, unsigned len, struct tcp_segment *segment)
{
	bool is_syn = segment->flags & TCP_SYN; // RFC 9293 3.2, RFC 7323 2.2, RFC 2018 2
	switch (*at) {
	case OPTION_MSS:
		if (len == 4 && is_syn) {
			segment->has_mss = true;
			segment->mss = read16(at + 2);
		}
		break;
	case OPTION_SCALE:
		if (len == 3 && is_syn) {
			uint8_t scale = (uint8_t)at[2];
			segment->has_scale = true;
			segment->scale = scale > SCALE_MAX ? SCALE_MAX : scale;
		}
		break;
	case OPTION_SACK_PERMITTED:
		if (len == 2 && is_syn)
			segment->has_sack_permitted = true;
		break;
	case OPTION_SACK:
		if (len >= 10 && (len - 2) % 8 == 0)
			read_sacks(at + 2, len - 2, segment);
		break;
	case OPTION_TIMESTAMP:
		if (len == 10) {
			segment->has_timestamp = true;
			segment->ts_value = read32(at + 2);
			segment->ts_echo = read32(at + 6);
		}
		break;
	}
}

static void read_options(const char *at, const char *end, struct tcp_segment *segment)
{
	while (at < end && *at != OPTION_END) {
		if (*at == OPTION_NOP) {
			at++;
			continue;
		}
		if (end - at < 2)
			return;
		unsigned len = (uint8_t)at[1];
		if (len < 2 || len > (size_t)(end - at))
			return;
		read_option(at, len, segment);
		at += len;
	}
}

bool tcp_segment_read(struct span bytes, struct tcp_segment *segment)
{
	if (bytes.len < TCP_HEADER_BYTES)
		return false;
	const char *at = bytes.at;
	size_t header = (size_t)((uint8_t)at[12] >> 4) * 4;
	if (header < TCP_HEADER_BYTES || header > bytes.len)
		return false;
	segment->peer.port = read16(at);
	segment->local.port = read16(at + 2);
	segment->seq = read32(at + 4);
	segment->ack = read32(at + 8);
	segment->flags = (uint8_t)at[13];
	segment->window = read16(at + 14);
	segment->has_mss = segment->has_scale = segment->has_sack_permitted = false;
	segment->has_timestamp = false;
	segment->sack_count = segment->scale = 0;
	segment->mss = 0;
	segment->payload = span_from(bytes, header);
	static const char timestamp_alone[] = {OPTION_NOP, OPTION_NOP, OPTION_TIMESTAMP, 10};
	if (header == 32 && memcmp(at + 20, timestamp_alone, sizeof(timestamp_alone)) == 0)
		read_option(at + 22, 10, segment);
	else if (header > TCP_HEADER_BYTES)
		read_options(at + TCP_HEADER_BYTES, at + header, segment);
	return true;
}
