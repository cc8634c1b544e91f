// Both versions announce themselves in their first bytes, "PROXY " and a signature that no text
// protocol begins with, so one byte is often enough to refuse who speaks neither. The parser keeps
// nothing: it is given the whole header so far each time, which is one segment nearly always.

#include "drivers/proxy/header.h"

#include <arpa/inet.h>

#include "drivers/ip.h"

#define V1_BYTES_MAX 107 // with CRLF
#define V2_HEAD_BYTES 16 // signature, version and command, family, length

static const char v1_prefix[] = {'P', 'R', 'O', 'X', 'Y', ' '};
static const char v2_prefix[] = {
	'\r', '\n', '\r', '\n', '\0', '\r', '\n', 'Q', 'U', 'I', 'T', '\n'};

static enum header_result parse_v1(struct span in, struct header *header);
static enum header_result parse_v2(struct span in, struct header *header);

// HEADER_OK: `in` begins with the prefix; HEADER_MORE: what there is of it does.
static enum header_result match(struct span in, const char *prefix, size_t len)
{
	size_t have = in.len < len ? in.len : len;
	if (have && memcmp(in.at, prefix, have) != 0)
		return HEADER_BAD;
	return have == len ? HEADER_OK : HEADER_MORE;
}

enum header_result header_parse(struct span in, struct header *header)
{
	enum header_result v1 = match(in, v1_prefix, sizeof(v1_prefix));
	enum header_result v2 = match(in, v2_prefix, sizeof(v2_prefix));
	if (v1 == HEADER_OK)
		return parse_v1(in, header);
	if (v2 == HEADER_OK)
		return parse_v2(in, header);
	return v1 == HEADER_MORE || v2 == HEADER_MORE ? HEADER_MORE : HEADER_BAD;
}

// Cut the next word off `line`: up to one space, which must be there unless this is the last word.
static bool cut_word(struct span *line, bool is_last, struct span *word)
{
	const char *space = line->len ? memchr(line->at, ' ', line->len) : NULL;
	if (is_last != !space)
		return false;
	word->at = line->at;
	word->len = space ? (size_t)(space - line->at) : line->len;
	*line = span_from(*line, word->len + !is_last);
	return word->len > 0;
}

static bool read_ip(struct span word, bool is_ipv4, struct stream_address *address)
{
	char text[INET6_ADDRSTRLEN];
	uint8_t ip[16];
	if (word.len >= sizeof(text) || memchr(word.at, '\0', word.len))
		return false;
	memcpy(text, word.at, word.len);
	text[word.len] = '\0';
	if (inet_pton(is_ipv4 ? AF_INET : AF_INET6, text, ip) != 1)
		return false;
	if (is_ipv4)
		ip_map(address->ip, ip);
	else
		memcpy(address->ip, ip, sizeof(ip));
	return true;
}

static bool read_port(struct span word, struct stream_address *address)
{
	uint32_t port = 0;
	if (word.len > 5 || (word.at[0] == '0' && word.len > 1))
		return false;
	for (size_t i = 0; i < word.len; i++) {
		if (word.at[i] < '0' || word.at[i] > '9')
			return false;
		port = port * 10 + (uint32_t)(word.at[i] - '0');
	}
	address->port = (uint16_t)port;
	return port <= UINT16_MAX;
}

// "SOURCE DESTINATION SPORT DPORT"
static bool read_addresses(struct span line, bool is_ipv4, struct header *header)
{
	struct span words[4];
	for (unsigned i = 0; i < 4; i++)
		if (!cut_word(&line, i == 3, &words[i]))
			return false;
	header->has_addresses = true;
	return read_ip(words[0], is_ipv4, &header->peer) &&
	       read_ip(words[1], is_ipv4, &header->local) && read_port(words[2], &header->peer) &&
	       read_port(words[3], &header->local);
}

// The line without "PROXY " and CRLF.
static bool read_line(struct span line, struct header *header)
{
	struct span family;
	if (span_is_equal(line, SPAN("UNKNOWN")))
		return true;
	if (!cut_word(&line, false, &family))
		return false;
	if (span_is_equal(family, SPAN("UNKNOWN")))
		return true; // whatever follows is ignored
	if (span_is_equal(family, SPAN("TCP4")))
		return read_addresses(line, true, header);
	return span_is_equal(family, SPAN("TCP6")) && read_addresses(line, false, header);
}

static enum header_result parse_v1(struct span in, struct header *header)
{
	size_t have = in.len < V1_BYTES_MAX ? in.len : V1_BYTES_MAX;
	const char *end = memchr(in.at, '\r', have);
	size_t line_bytes = end ? (size_t)(end - in.at) : have;
	if (!end || line_bytes + 1 == have)
		return have == V1_BYTES_MAX ? HEADER_BAD : HEADER_MORE;
	if (end[1] != '\n')
		return HEADER_BAD;
	struct header found = {.bytes = (uint32_t)line_bytes + 2};
	struct span line = {in.at + sizeof(v1_prefix), line_bytes - sizeof(v1_prefix)};
	if (!read_line(line, &found))
		return HEADER_BAD;
	*header = found;
	return HEADER_OK;
}

static uint16_t read_16(const char *at)
{
	return (uint16_t)((uint8_t)at[0] << 8 | (uint8_t)at[1]);
}

// Type, 16-bit length, value; as many as fill `tlvs`.
static bool tlvs_are_whole(struct span tlvs)
{
	while (tlvs.len) {
		if (tlvs.len < 3 || tlvs.len - 3 < read_16(tlvs.at + 1))
			return false;
		tlvs = span_from(tlvs, 3u + read_16(tlvs.at + 1));
	}
	return true;
}

// The part behind the head: addresses, then TLVs.
static bool read_body(uint8_t family, struct span body, struct header *header)
{
	size_t ip_bytes = family == 0x11 ? 4 : 16, bytes = 2 * ip_bytes + 4;
	if (body.len < bytes)
		return false;
	if (family == 0x11) {
		ip_map(header->peer.ip, body.at);
		ip_map(header->local.ip, body.at + ip_bytes);
	} else {
		memcpy(header->peer.ip, body.at, ip_bytes);
		memcpy(header->local.ip, body.at + ip_bytes, ip_bytes);
	}
	header->peer.port = read_16(body.at + 2 * ip_bytes);
	header->local.port = read_16(body.at + 2 * ip_bytes + 2);
	header->has_addresses = true;
	return tlvs_are_whole(span_from(body, bytes));
}

static enum header_result parse_v2(struct span in, struct header *header)
{
	if (in.len < V2_HEAD_BYTES)
		return HEADER_MORE;
	uint8_t command = (uint8_t)in.at[12], family = (uint8_t)in.at[13];
	size_t bytes = V2_HEAD_BYTES + read_16(in.at + 14);
	bool is_local = command == 0x20 || family == 0x00; // nothing follows that we would use
	if (command != 0x20 && command != 0x21)
		return HEADER_BAD;
	if (!is_local && family != 0x11 && family != 0x21)
		return HEADER_BAD; // TCP is what we listen to
	if (bytes > HEADER_BYTES_MAX)
		return HEADER_BAD;
	if (in.len < bytes)
		return HEADER_MORE;
	struct header found = {.bytes = (uint32_t)bytes};
	struct span body = {in.at + V2_HEAD_BYTES, bytes - V2_HEAD_BYTES};
	if (!is_local && !read_body(family, body, &found))
		return HEADER_BAD;
	*header = found;
	return HEADER_OK;
}
