// Each list is read once. For every offer we keep the range that decides about it: the most
// specific one that matches (RFC 9110 12.5.1), of several alike the one with the highest q.
//
// Parameters of media ranges other than q are checked but do not narrow the range: sluice offers
// one form of HTML and one of JSON, and `application/json;charset=utf-8` asks for the latter.

#include "dataplane/http/accept.h"

#include "dataplane/http/list.h"
#include "dataplane/http/octet.h"

#include <assert.h>

#define Q_ONE 1000 // q is counted in thousandths

// How specific a range is.
enum level {
	LEVEL_NONE, // nothing matches
	LEVEL_ANY, // "*", "*/*"
	LEVEL_KIND, // "text/*"
	LEVEL_NAMED,
};

// An element of a list: what is named, and how much it is wanted.
struct wish {
	struct span name;
	unsigned q;
};

// A walk over the elements of all fields of one name.
struct walk {
	const struct http_head *head;
	const struct http_field *field;
	struct span rest;
};

// What is known about something we could send.
struct offer {
	enum level level; // of the range that decides
	unsigned q;
	unsigned number; // of that range in the list
};

static bool wish_parse(struct span element, struct wish *wish);

static struct walk walk_begin(const struct http_head *head, enum http_field_id id)
{
	const struct http_field *field = http_field_first(head, id);
	return (struct walk){
		head, field, field ? http_field_value(head, field) : (struct span){NULL, 0}};
}

// The next well-formed element; false after the last.
static bool walk_next(struct walk *walk, struct wish *wish)
{
	while (walk->field) {
		struct span element;
		while (list_next(&walk->rest, ',', &element))
			if (wish_parse(element, wish))
				return true;
		walk->field = http_field_next(walk->head, walk->field);
		if (walk->field)
			walk->rest = http_field_value(walk->head, walk->field);
	}
	return false;
}

// weight (RFC 9110 12.4.2): 0, 1, or a fraction with up to three digits. Returns false for others.
static bool q_parse(struct span s, unsigned *q)
{
	if (s.len == 0 || s.len > 5 || (s.at[0] != '0' && s.at[0] != '1'))
		return false;
	if (s.len > 1 && s.at[1] != '.')
		return false;
	*q = (s.at[0] - '0') * Q_ONE;
	unsigned scale = Q_ONE;
	for (size_t i = 2; i < s.len; i++) {
		if (!octet_is_digit(s.at[i]))
			return false;
		*q += (s.at[i] - '0') * (scale /= 10);
	}
	return *q <= Q_ONE;
}

static bool is_quoted(struct span s)
{
	return s.len >= 2 && s.at[0] == '"' && s.at[s.len - 1] == '"';
}

// name *( OWS ";" OWS [ parameter ] ), one of the parameters `q`.
static bool wish_parse(struct span element, struct wish *wish)
{
	struct span parameter;
	if (!list_next(&element, ';', &wish->name))
		return false;
	wish->q = Q_ONE;
	while (list_next(&element, ';', &parameter)) {
		size_t equals = octet_scan(parameter, 0, OCTET_TOKEN);
		if (equals == 0 || equals == parameter.len || parameter.at[equals] != '=')
			return false;
		struct span value = span_from(parameter, equals + 1);
		if (equals == 1 && octet_lower(parameter.at[0]) == 'q') {
			if (!q_parse(value, &wish->q))
				return false;
		} else if (!octet_is_token(value) && !is_quoted(value)) {
			return false;
		}
	}
	return true;
}

// Take a range into account that matches the offer.
static void offer_match(struct offer *offer, enum level level, unsigned q, unsigned number)
{
	if (level > offer->level || (level == offer->level && q > offer->q))
		*offer = (struct offer){level, q, number};
}

struct accept_types accept_types(const struct http_head *head)
{
	const struct http_field *first = http_field_first(head, HTTP_FIELD_accept);
	struct accept_types types = {.is_absent = !first};
	types.is_any =
		first && !first->next && span_is_equal(http_field_value(head, first), SPAN("*/*"));
	struct offer html = {0}, json = {0};
	struct walk walk = walk_begin(head, HTTP_FIELD_accept);
	for (struct wish wish; walk_next(&walk, &wish);) {
		if (span_is_equal_caseless(wish.name, SPAN("text/html")))
			offer_match(&html, LEVEL_NAMED, wish.q, 0);
		else if (span_is_equal_caseless(wish.name, SPAN("application/json")))
			offer_match(&json, LEVEL_NAMED, wish.q, 0);
		else if (span_is_equal_caseless(wish.name, SPAN("text/*")))
			offer_match(&html, LEVEL_KIND, wish.q, 0);
		else if (span_is_equal_caseless(wish.name, SPAN("application/*")))
			offer_match(&json, LEVEL_KIND, wish.q, 0);
		else if (span_is_equal(wish.name, SPAN("*/*"))) {
			offer_match(&html, LEVEL_ANY, wish.q, 0);
			offer_match(&json, LEVEL_ANY, wish.q, 0);
		}
	}
	types.names_html_or_json = (html.level == LEVEL_NAMED && html.q > 0) ||
				   (json.level == LEVEL_NAMED && json.q > 0);
	types.ranks_json_first =
		json.q > html.q || (json.q == html.q && json.q > 0 && json.level > html.level);
	return types;
}

// Whether one of the two is the other, or the beginning of it in whole subtags.
static bool is_language(struct span range, struct span language)
{
	if (range.len > language.len && range.at[language.len] == '-')
		range.len = language.len;
	else if (range.len < language.len && language.at[range.len] == '-')
		language.len = range.len;
	return range.len > 0 && span_is_equal_caseless(range, language);
}

static bool is_better_language(const struct offer *offer, const struct offer *than)
{
	return offer->q > than->q ||
	       (offer->q == than->q && offer->q > 0 && offer->number < than->number);
}

unsigned accept_language(const struct http_head *head, const struct span *languages, unsigned count)
{
	struct offer offers[ACCEPT_LANGUAGES_MAX] = {0};
	unsigned number = 0, best = 0;
	assert(count <= ACCEPT_LANGUAGES_MAX);
	struct walk walk = walk_begin(head, HTTP_FIELD_accept_language);
	for (struct wish wish; walk_next(&walk, &wish); number++) {
		bool is_any = span_is_equal(wish.name, SPAN("*"));
		for (unsigned i = 0; i < count; i++) {
			if (is_any)
				offer_match(&offers[i], LEVEL_ANY, wish.q, number);
			else if (is_language(wish.name, languages[i]))
				offer_match(&offers[i], LEVEL_NAMED, wish.q, number);
		}
	}
	for (unsigned i = 1; i < count; i++) {
		if (is_better_language(&offers[i], &offers[best]))
			best = i;
	}
	return best;
}

enum accept_encoding accept_encoding(const struct http_head *head)
{
	struct offer br = {0}, gzip = {0}, identity = {0};
	struct walk walk = walk_begin(head, HTTP_FIELD_accept_encoding);
	for (struct wish wish; walk_next(&walk, &wish);) {
		if (span_is_equal_caseless(wish.name, SPAN("br")))
			offer_match(&br, LEVEL_NAMED, wish.q, 0);
		else if (span_is_equal_caseless(wish.name, SPAN("gzip")) ||
			 span_is_equal_caseless(wish.name, SPAN("x-gzip"))) // RFC 9110 8.4.1.3
			offer_match(&gzip, LEVEL_NAMED, wish.q, 0);
		else if (span_is_equal_caseless(wish.name, SPAN("identity")))
			offer_match(&identity, LEVEL_NAMED, wish.q, 0);
		else if (span_is_equal(wish.name, SPAN("*"))) {
			offer_match(&br, LEVEL_ANY, wish.q, 0);
			offer_match(&gzip, LEVEL_ANY, wish.q, 0);
		}
	}
	struct offer *best = br.q >= gzip.q ? &br : &gzip;
	if (best->q == 0 || identity.q > best->q)
		return ACCEPT_IDENTITY;
	return best == &br ? ACCEPT_BR : ACCEPT_GZIP;
}
