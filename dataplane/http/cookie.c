// Cookies are cut at every `;`, quotes or not, as browsers cut them (RFC 6265 5.4): readers that
// let quotes hide a `;` and readers that do not can be made to see different cookies, and what is
// removed here must be gone for either.

#include "dataplane/http/cookie.h"

#include "dataplane/http/octet.h"

// Take the next piece off `rest`: up to a `;`, white space and all. After the last one rest->at is
// NULL, and there is no next.
static bool piece_next(struct span *rest, struct span *piece)
{
	if (!rest->at)
		return false;
	*piece = *rest;
	const char *semicolon = memchr(rest->at, ';', rest->len);
	if (semicolon)
		piece->len = semicolon - rest->at;
	*rest = semicolon ? span_from(*rest, piece->len + 1) : (struct span){NULL, 0};
	return true;
}

// The cookie in a piece; false if it has no `=` or no name.
static bool cookie_parse(struct span piece, struct cookie *cookie)
{
	const char *equals = memchr(piece.at, '=', piece.len);
	if (!equals)
		return false;
	size_t name_len = equals - piece.at;
	cookie->name = octet_trim((struct span){piece.at, name_len});
	cookie->value = octet_trim(span_from(piece, name_len + 1));
	size_t len = cookie->value.len;
	if (len >= 2 && cookie->value.at[0] == '"' && cookie->value.at[len - 1] == '"')
		cookie->value = (struct span){cookie->value.at + 1, len - 2};
	return cookie->name.len > 0;
}

static void enter_field(struct cookie_walk *walk, const struct http_field *field)
{
	walk->field = field;
	if (field)
		walk->rest = http_field_value(walk->head, field);
}

struct cookie_walk cookie_walk(const struct http_head *head)
{
	struct cookie_walk walk = {.head = head};
	enter_field(&walk, http_field_first(head, HTTP_FIELD_cookie));
	return walk;
}

bool cookie_next(struct cookie_walk *walk, struct cookie *cookie)
{
	while (walk->field) {
		struct span piece;
		while (piece_next(&walk->rest, &piece))
			if (cookie_parse(piece, cookie))
				return true;
		enter_field(walk, http_field_next(walk->head, walk->field));
	}
	return false;
}

size_t cookie_write_kept(struct span value, char *out,
	bool (*is_left_out)(struct span name, const void *arg), const void *arg)
{
	size_t written = 0;
	bool is_first = true, is_blank = true;
	struct cookie cookie;
	for (struct span piece; piece_next(&value, &piece);) {
		if (cookie_parse(piece, &cookie) && is_left_out(cookie.name, arg))
			continue;
		struct span trimmed = octet_trim(piece);
		if (is_first)
			piece = span_from(piece, trimmed.at - piece.at); // not its end
		else
			out[written++] = ';';
		memcpy(out + written, piece.at, piece.len);
		written += piece.len;
		is_first = false;
		is_blank &= trimmed.len == 0;
	}
	return is_blank ? 0 : written;
}
