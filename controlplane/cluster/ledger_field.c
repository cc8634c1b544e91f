// Fields: strict, so that every line has one spelling and a reply can be compared as text.

#include "controlplane/cluster/ledger_field.h"

#include <string.h>

// From here to the next blank or end of line; the blank goes with it.
static struct ledger_wire_reader take(struct ledger_wire_reader *r)
{
	struct ledger_wire_reader field = {r->at, r->at};
	while (field.end < r->end && *field.end != ' ' && *field.end != '\n')
		field.end++;
	r->at = field.end < r->end && *field.end == ' ' ? field.end + 1 : field.end;
	return field;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_hex(const char *at, size_t digits, uint64_t *value)
{
	*value = 0;
	for (size_t i = 0; i < digits; i++) {
		const int digit = hex_digit(at[i]);
		if (digit < 0)
			return false;
		*value = *value << 4 | (uint64_t)digit;
	}
	return true;
}

static bool parse_decimal(struct ledger_wire_reader field, uint64_t max, uint64_t *value)
{
	const size_t len = (size_t)(field.end - field.at);
	if (len == 0 || len > 20 || (len > 1 && *field.at == '0'))
		return false;
	*value = 0;
	for (; field.at < field.end; field.at++) {
		if (*field.at < '0' || *field.at > '9')
			return false;
		const uint64_t digit = (uint64_t)(*field.at - '0');
		if (*value > (max - digit) / 10 || digit > max)
			return false;
		*value = *value * 10 + digit;
	}
	return true;
}

bool ledger_field_number(struct ledger_wire_reader *r, uint64_t max, uint64_t *value)
{
	return parse_decimal(take(r), max, value);
}

bool ledger_field_number32(struct ledger_wire_reader *r, uint32_t *value)
{
	uint64_t wide;
	if (!ledger_field_number(r, UINT32_MAX, &wide))
		return false;
	*value = (uint32_t)wide;
	return true;
}

bool ledger_field_signed(struct ledger_wire_reader *r, int64_t *value)
{
	struct ledger_wire_reader field = take(r);
	uint64_t size;
	const bool is_negative = field.at < field.end && *field.at == '-';
	field.at += is_negative;
	if (!parse_decimal(field, LEDGER_FIELD_NUMBER_MAX, &size))
		return false;
	*value = is_negative ? -(int64_t)size : (int64_t)size;
	return true;
}

static bool take_hex(struct ledger_wire_reader *r, size_t digits, uint64_t *value)
{
	const struct ledger_wire_reader field = take(r);
	return (size_t)(field.end - field.at) == digits && parse_hex(field.at, digits, value);
}

bool ledger_field_hex16(struct ledger_wire_reader *r, uint64_t *value)
{
	return take_hex(r, 16, value);
}

bool ledger_field_hex8(struct ledger_wire_reader *r, uint32_t *value)
{
	uint64_t wide;
	if (!take_hex(r, 8, &wide))
		return false;
	*value = (uint32_t)wide;
	return true;
}

bool ledger_field_flag(struct ledger_wire_reader *r, bool *value)
{
	uint64_t wide;
	if (!ledger_field_number(r, 1, &wide))
		return false;
	*value = wide == 1;
	return true;
}

bool ledger_field_text(struct ledger_wire_reader *r, const char **text, size_t *len)
{
	const struct ledger_wire_reader field = take(r);
	*text = field.at;
	*len = (size_t)(field.end - field.at);
	return true;
}

bool ledger_field_bytes(const char *hex, size_t len, uint8_t *bytes)
{
	for (size_t i = 0; i + 1 < len; i += 2) {
		uint64_t byte;
		if (!parse_hex(hex + i, 2, &byte))
			return false;
		bytes[i / 2] = (uint8_t)byte;
	}
	return len % 2 == 0;
}

bool ledger_field_end(struct ledger_wire_reader *r)
{
	if (r->at < r->end) {
		if (*r->at != '\n')
			return false;
		r->at++;
	}
	return true;
}

void ledger_field_skip(struct ledger_wire_reader *r)
{
	const char *end = memchr(r->at, '\n', (size_t)(r->end - r->at));
	r->at = end ? end : r->end;
}
