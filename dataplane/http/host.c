// The grammar of RFC 3986 for hosts, with two things left out that no HTTP URI has: an empty host
// (RFC 9110 4.2.1), and addresses of a future version. An IPv4 address is also a name by that
// grammar, so names are all there is outside brackets.

#include "dataplane/http/host.h"

#include "dataplane/http/octet.h"

#define PORT_MAX 65535

static size_t name_end(struct span s);
static bool is_port(struct span s);
static bool is_ipv6(struct span s);
static bool is_ipv4(struct span s);

bool host_is_valid(struct span s, struct span *port)
{
	*port = (struct span){NULL, 0};
	size_t end;
	if (s.len > 0 && s.at[0] == '[') {
		const char *bracket = memchr(s.at, ']', s.len);
		if (!bracket || !is_ipv6((struct span){s.at + 1, bracket - s.at - 1}))
			return false;
		end = bracket - s.at + 1;
	} else {
		end = name_end(s);
	}
	if (end == 0)
		return false;
	if (end == s.len)
		return true;
	*port = span_from(s, end + 1);
	return s.at[end] == ':' && is_port(*port);
}

// Where the name that `s` begins with ends. An escape that is none ends it.
static size_t name_end(struct span s)
{
	size_t at = 0;
	for (;;) {
		at = octet_scan(s, at, OCTET_REG_NAME);
		if (s.len - at < 3 || s.at[at] != '%' || !octet_is(s.at[at + 1], OCTET_HEX) ||
			!octet_is(s.at[at + 2], OCTET_HEX))
			return at;
		at += 3;
	}
}

static bool is_port(struct span s)
{
	unsigned port = 0;
	for (size_t i = 0; i < s.len; i++) {
		if (!octet_is_digit(s.at[i]))
			return false;
		port = port * 10 + (s.at[i] - '0');
		if (port > PORT_MAX)
			return false;
	}
	return true;
}

// Eight groups of up to four hex digits; "::" stands once for one or more of them; the last two may
// be an IPv4 address.
static bool is_ipv6(struct span s)
{
	unsigned groups = 0;
	bool has_gap = false;
	size_t at = 0;
	if (s.len >= 2 && s.at[0] == ':' && s.at[1] == ':') {
		has_gap = true;
		at = 2;
	}
	while (at < s.len) {
		size_t end = octet_scan(s, at, OCTET_HEX);
		if (end < s.len && s.at[end] == '.') {
			groups += 2;
			if (!is_ipv4(span_from(s, at)))
				return false;
			break;
		}
		if (end == at || end - at > 4)
			return false;
		groups++;
		if (end == s.len)
			break;
		if (s.at[end] != ':' || end + 1 == s.len)
			return false;
		at = end + 1;
		if (s.at[at] == ':') {
			if (has_gap)
				return false;
			has_gap = true;
			at++;
		}
	}
	return has_gap ? groups <= 7 : groups == 8;
}

// Four numbers up to 255 without leading zeros (RFC 3986 dec-octet).
static bool is_ipv4(struct span s)
{
	size_t at = 0;
	for (unsigned number = 0; number < 4; number++) {
		if (number > 0 && (at == s.len || s.at[at++] != '.'))
			return false;
		size_t start = at;
		unsigned value = 0;
		while (at < s.len && at - start < 3 && octet_is_digit(s.at[at]))
			value = value * 10 + (s.at[at++] - '0');
		if (at == start || value > 255 || (s.at[start] == '0' && at - start > 1))
			return false;
	}
	return at == s.len;
}
