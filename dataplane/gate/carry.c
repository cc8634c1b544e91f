// How tokens are carried: cookies, headers, a query parameter.
//
// Collecting walks the cookies once and keeps the spans of one room's. Housekeeping is a walk of
// its own, because it is wanted only with answers that may set cookies, and weighs all rooms'. A
// name that comes twice (other Path or Domain) is one cookie here, as good as its best value: an
// answer cannot expire one of the two without the other.
//
// Names that no room could have (other letters, too long) were never set by sluice and are left
// alone: what is echoed into Set-Cookie is a name of harmless letters.

#include "dataplane/gate/carry.h"

#include "dataplane/gate/lane.h"
#include "dataplane/gate/place.h"
#include "dataplane/http/cookie.h"
#include "dataplane/http/head.h"
#include "dataplane/http/octet.h"

static const struct span ticket_parameter = {"sluice_ticket", 13};
static const struct span lane_parameter = {"sluice_lane", 11};

static bool begins_with(struct span s, struct span start)
{
	return s.len >= start.len && memcmp(s.at, start.at, start.len) == 0;
}

// Take a sluice cookie's name apart. Returns its kind, or 0 if it is none of ours.
static uint8_t kind_of_cookie(struct span name, struct span *room)
{
	const struct span ticket = SPAN("sluice-t-"), pass = SPAN("sluice-p-");
	uint8_t kind = begins_with(name, ticket) ? TOKEN_TICKET
		       : begins_with(name, pass) ? TOKEN_PASS
						 : 0;
	if (kind)
		*room = span_from(name, ticket.len);
	return kind;
}

static uint32_t collect_field(const struct http_head *head, enum http_field_id id,
	enum token_kind kind, struct carried *found)
{
	const struct http_field *field = http_field_first(head, id);
	if (!field)
		return 0;
	*found = (struct carried){http_field_value(head, field), CARRY_HEADER, kind};
	return 1;
}

// What follows the first `?`; at == NULL if there is none.
static struct span query_of(struct span target)
{
	const char *mark = memchr(target.at, '?', target.len);
	return mark ? span_from(target, mark + 1 - target.at) : (struct span){NULL, 0};
}

// Take the next parameter off a query, whose at becomes NULL with the last.
static struct span parameter_take(struct span *query)
{
	struct span taken = *query;
	const char *end = memchr(taken.at, '&', taken.len);
	taken.len = end ? (size_t)(end - taken.at) : taken.len;
	*query = end ? span_from(*query, taken.len + 1) : (struct span){NULL, 0};
	return taken;
}

// Whether a parameter of a query has that name, with or without a value.
static bool is_named(struct span taken, struct span name)
{
	return begins_with(taken, name) && (taken.len == name.len || taken.at[name.len] == '=');
}

// The first value of a parameter.
static uint32_t collect_query(
	struct span query, struct span name, enum token_kind kind, struct carried *found)
{
	while (query.at) {
		struct span taken = parameter_take(&query);
		if (!is_named(taken, name) || taken.len == name.len)
			continue;
		struct span text = span_from(taken, name.len + 1);
		*found = (struct carried){text, CARRY_QUERY, kind};
		return 1;
	}
	return 0;
}

uint32_t carry_collect(const struct http_head *head, const struct gate_room *room,
	struct carried *found, bool *has_others)
{
	uint32_t count = 0;
	count += collect_field(head, HTTP_FIELD_sluice_ticket, TOKEN_TICKET, found + count);
	count += collect_field(head, HTTP_FIELD_sluice_pass, TOKEN_PASS, found + count);
	const struct span query = query_of(head->target);
	if (query.at)
		count += collect_query(query, ticket_parameter, TOKEN_TICKET, found + count);
	if (query.at && room->lane_count > 0)
		count += collect_query(query, lane_parameter, TOKEN_INVITATION, found + count);
	uint32_t end = count + GATE_COOKIES_MAX;
	struct cookie_walk walk = cookie_walk(head);
	struct cookie cookie;
	*has_others = false;
	while (count < end && cookie_next(&walk, &cookie)) {
		struct span of;
		uint8_t kind = kind_of_cookie(cookie.name, &of);
		if (kind && span_is_equal(of, room->name))
			found[count++] = (struct carried){cookie.value, CARRY_COOKIE, kind};
		else if (kind)
			*has_others = true;
	}
	*has_others = *has_others || count == end; // what was not looked at
	return count;
}

struct span carry_redirect(struct span target, char *out)
{
	struct span query = query_of(target), path = target;
	if (query.at)
		path.len = query.at - 1 - path.at;
	while (path.len > 0 && (path.at[0] == '/' || path.at[0] == '\\'))
		path = span_from(path, 1); // browsers take `//host` and `/\host` for another host
	size_t len = 0;
	out[len++] = '/';
	memcpy(out + len, path.at, path.len);
	len += path.len;
	for (char separator = '?'; query.at;) {
		struct span taken = parameter_take(&query);
		if (is_named(taken, ticket_parameter))
			continue;
		out[len++] = separator;
		memcpy(out + len, taken.at, taken.len);
		len += taken.len;
		separator = '&';
	}
	return (struct span){out, len};
}

// A sluice cookie on the scales.
struct weighed {
	struct span name;
	uint32_t issued; // unix s
	bool is_own; // of the request's room
	bool is_stale;
};

// Whether a cookie of ours is no use any more, as far as can be told without its MAC.
static bool is_stale(const struct gate_room *room, uint8_t kind, uint64_t now_s, struct span text,
	uint32_t *issued)
{
	struct token_wire wire;
	struct token token;
	if (!room || !token_decode(text, &wire, &token))
		return true;
	*issued = token.issued;
	room = lane_of_line(room, token.line_id);
	if (token.kind != kind || !room || token_is_dated_ahead(&token, now_s))
		return true;
	if (kind == TOKEN_PASS)
		return token.expires <= now_s;
	return room->line &&
	       token.key < atomic_load_explicit(&room->line->floor, memory_order_relaxed);
}

static bool is_room_name(struct span name)
{
	if (name.len == 0 || name.len > GATE_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++) {
		char c = octet_lower(name.at[i]);
		if (!(c >= 'a' && c <= 'z') && !octet_is_digit(c) && c != '-' && c != '_' &&
			c != '.')
			return false;
	}
	return true;
}

// Weigh one cookie; one of a name that was there before is as good as the better of them.
static uint32_t weigh(struct weighed *all, uint32_t count, struct weighed one)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!span_is_equal(all[i].name, one.name))
			continue;
		all[i].is_stale = all[i].is_stale && one.is_stale;
		all[i].issued = one.issued > all[i].issued ? one.issued : all[i].issued;
		return count;
	}
	if (count < CARRY_NAMES_MAX)
		all[count++] = one;
	return count;
}

static uint32_t weigh_all(const struct gate_map *map, const struct http_head *head,
	const struct gate_room *room, uint64_t now_s, struct weighed *all)
{
	uint32_t count = 0;
	struct cookie_walk walk = cookie_walk(head);
	struct cookie cookie;
	while (cookie_next(&walk, &cookie)) {
		struct weighed one = {.name = cookie.name};
		struct span name;
		uint8_t kind = kind_of_cookie(cookie.name, &name);
		if (!kind || !is_room_name(name))
			continue;
		const struct gate_room *of = gate_map_room(map, name);
		one.is_own = of && room && span_is_equal(of->name, room->name); // or its lane
		one.is_stale = !one.is_own && is_stale(of, kind, now_s, cookie.value, &one.issued);
		count = weigh(all, count, one);
	}
	return count;
}

// The oldest of those that may go, or NULL.
static struct weighed *oldest(struct weighed *all, uint32_t count)
{
	struct weighed *found = NULL;
	for (uint32_t i = 0; i < count; i++)
		if (!all[i].is_own && !all[i].is_stale && (!found || all[i].issued < found->issued))
			found = &all[i];
	return found;
}

void carry_stale_find(const struct gate_map *map, const struct http_head *head,
	const struct gate_room *room, uint32_t adds, uint64_t now_s, struct carry_stale *stale)
{
	struct weighed all[CARRY_NAMES_MAX], *old;
	uint32_t count = weigh_all(map, head, room, now_s, all), left = adds;
	for (uint32_t i = 0; i < count; i++)
		left += !all[i].is_stale;
	for (; left > GATE_COOKIES_MAX && (old = oldest(all, count)); left--)
		old->is_stale = true;
	stale->count = 0;
	for (uint32_t i = 0; i < count && stale->count < CARRY_STALE_MAX; i++)
		if (all[i].is_stale)
			stale->names[stale->count++] = all[i].name;
}

static void salvage_field(struct http_head *head, enum http_field_id id, struct span value)
{
	if (head->field_count == HTTP_FIELDS_MAX)
		return;
	uint16_t *link = &head->first[id];
	while (*link)
		link = &head->fields[*link - 1].next;
	head->fields[head->field_count++] = (struct http_field){
		.value_at = value.at - head->bytes, .value_len = value.len, .id = id};
	*link = head->field_count;
}

// One line, whole or cut off at the end of the bytes.
static void salvage_line(struct http_head *head, struct span line, bool is_whole)
{
	const struct span cookie = SPAN("cookie:"), host = SPAN("host:");
	if (line.len >= cookie.len &&
		span_is_equal_caseless((struct span){line.at, cookie.len}, cookie)) {
		struct span value = span_from(line, cookie.len);
		while (!is_whole && value.len > 0 && value.at[value.len - 1] != ';')
			value.len--;
		salvage_field(head, HTTP_FIELD_cookie, octet_trim(value));
	}
	if (is_whole && !head->host.at && line.len >= host.len &&
		span_is_equal_caseless((struct span){line.at, host.len}, host))
		head->host = octet_trim(span_from(line, host.len));
}

void carry_salvage(struct span bytes, struct http_head *head)
{
	*head = (struct http_head){.bytes = bytes.at};
	if (bytes.len > HTTP_HEAD_BYTES_MAX)
		bytes.len = HTTP_HEAD_BYTES_MAX;
	while (bytes.len > 0) {
		const char *end = memmem(bytes.at, bytes.len, "\r\n", 2);
		struct span line = {bytes.at, end ? (size_t)(end - bytes.at) : bytes.len};
		salvage_line(head, line, end != NULL);
		bytes = span_from(bytes, line.len + (end ? 2 : 0));
	}
}
