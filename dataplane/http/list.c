// Cutting lists. The elements' own grammar is their reader's business; all that matters here is
// that a separator inside quotes separates nothing, and that a quote after a backslash ends
// nothing.

#include "dataplane/http/list.h"

#include "dataplane/http/octet.h"

static size_t element_end(struct span s, char separator)
{
	bool in_quotes = false;
	for (size_t at = 0; at < s.len; at++) {
		if (s.at[at] == '"')
			in_quotes = !in_quotes;
		else if (s.at[at] == '\\' && in_quotes)
			at++;
		else if (s.at[at] == separator && !in_quotes)
			return at;
	}
	return s.len;
}

bool list_next(struct span *rest, char separator, struct span *element)
{
	while (rest->len > 0) {
		size_t end = element_end(*rest, separator);
		*element = octet_trim((struct span){rest->at, end});
		*rest = span_from(*rest, end < rest->len ? end + 1 : end);
		if (element->len > 0)
			return true;
	}
	return false;
}
