// Several fields are one list (RFC 9110 5.3), so the last of them is read first.

#include "dataplane/forwarded.h"

#include "dataplane/http/octet.h"
#include "drivers/ip.h"

#include <arpa/inet.h>
#include <string.h>

// The whole field before those that were read; its bytes are not read yet.
static bool take_field(struct forwarded *from)
{
	while (from->fields > 0) {
		const struct http_field *field = &from->head->fields[--from->fields];
		if (field->id != HTTP_FIELD_x_forwarded_for)
			continue;
		from->left = http_field_value(from->head, field);
		return true;
	}
	return false;
}

struct forwarded forwarded_last(const struct http_head *head)
{
	struct forwarded from = {.head = head, .fields = head->field_count};
	take_field(&from);
	return from;
}

static struct span trim(struct span text)
{
	while (text.len > 0 && octet_is_space(text.at[text.len - 1]))
		text.len--;
	while (text.len > 0 && octet_is_space(text.at[0]))
		text = span_from(text, 1);
	return text;
}

// The last element that is left, taken off.
static bool take_last(struct forwarded *from, struct span *element)
{
	if (!from->left.at)
		return false;
	const char *comma = from->left.len ? memrchr(from->left.at, ',', from->left.len) : NULL;
	const size_t before = comma ? (size_t)(comma - from->left.at) : 0;
	*element = trim(comma ? span_from(from->left, before + 1) : from->left);
	from->left.len = before;
	if (!comma && !take_field(from))
		from->left = (struct span){0};
	return true;
}

// Only digits, as a port is.
static bool is_port(struct span text)
{
	for (size_t i = 0; i < text.len; i++)
		if (!octet_is_digit(text.at[i]))
			return false;
	return text.len > 0 && text.len <= 5;
}

// Without brackets and port. A colon that stands alone is before a port; several are of IPv6.
static bool strip(struct span *text)
{
	const struct span whole = *text;
	if (whole.len > 0 && whole.at[0] == '[') {
		const char *end = memchr(whole.at, ']', whole.len);
		if (!end)
			return false;
		*text = (struct span){whole.at + 1, (size_t)(end - whole.at) - 1};
		const struct span rest = span_from(whole, text->len + 2);
		return rest.len == 0 || (rest.at[0] == ':' && is_port(span_from(rest, 1)));
	}
	const char *colon = whole.len ? memchr(whole.at, ':', whole.len) : NULL;
	if (!colon || memrchr(whole.at, ':', whole.len) != colon)
		return true;
	text->len = (size_t)(colon - whole.at);
	return is_port(span_from(whole, text->len + 1));
}

static bool read_address(struct span text, uint8_t ip[16])
{
	char copy[INET6_ADDRSTRLEN] = {0};
	uint8_t v4[4];
	if (!strip(&text) || text.len == 0 || text.len >= sizeof(copy) ||
		memchr(text.at, '\0', text.len))
		return false;
	memcpy(copy, text.at, text.len);
	if (inet_pton(AF_INET, copy, v4) == 1) {
		ip_map(ip, v4);
		return true;
	}
	return inet_pton(AF_INET6, copy, ip) == 1;
}

bool forwarded_before(struct forwarded *from, uint8_t ip[16])
{
	struct span element;
	return take_last(from, &element) && read_address(element, ip);
}
