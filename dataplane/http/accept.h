// Content negotiation (RFC 9110 12.5): what a visitor would rather have.
//
// Several field lines of one name count as one list. A list element that is against the grammar is
// ignored, the others stand. Work is linear in the head's length.
#pragma once

#include "dataplane/http/head.h"

// What the Accept fields say about the two things sluice can show: HTML and JSON.
struct accept_types {
	bool is_absent; // no Accept field
	bool is_any; // exactly */* and nothing else
	bool names_html_or_json; // text/html or application/json by name, q above 0
	// JSON is acceptable and preferred: a higher q, or at equal q a more specific range, as in
	// `application/json, */*`. Otherwise HTML it is.
	bool ranks_json_first;
};

// What all Accept fields say together.
struct accept_types accept_types(const struct http_head *head);

#define ACCEPT_LANGUAGES_MAX 8u

// The best of some languages by Accept-Language: `ja-JP` asks for `ja`, and `pt` is content with
// `pt-BR` (RFC 4647 3.4 and 3.3.1). At equal q the one listed first, as is usual (RFC 9110 12.5.4);
// the first on offer where nothing is said.
//   languages  lower case; at most ACCEPT_LANGUAGES_MAX
// Returns its index; 0 if there is none.
unsigned accept_language(
	const struct http_head *head, const struct span *languages, unsigned count);

enum accept_encoding {
	ACCEPT_IDENTITY,
	ACCEPT_GZIP,
	ACCEPT_BR,
};

// The content coding by Accept-Encoding: of those with the highest q brotli, then gzip. Identity
// where nothing is said, neither is acceptable, or it has a higher q.
enum accept_encoding accept_encoding(const struct http_head *head);
