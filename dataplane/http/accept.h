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

enum accept_language {
	ACCEPT_EN,
	ACCEPT_JA,
};

// The better of English and Japanese by Accept-Language. `ja-JP` is Japanese; at equal q the one
// listed first, as is usual (RFC 9110 12.5.4); English where nothing is said.
enum accept_language accept_language(const struct http_head *head);

enum accept_encoding {
	ACCEPT_IDENTITY,
	ACCEPT_GZIP,
	ACCEPT_BR,
};

// The content coding by Accept-Encoding: of those with the highest q brotli, then gzip. Identity
// where nothing is said, neither is acceptable, or it has a higher q.
enum accept_encoding accept_encoding(const struct http_head *head);
