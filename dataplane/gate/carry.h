// Carrying: how visitors bring their tokens, and how they are rid of those that are no use.
//
// A token comes as a cookie (`sluice-t-ROOM`, `sluice-p-ROOM`), a header (`Sluice-Ticket`,
// `Sluice-Pass`) or, a ticket only, once as the query parameter `sluice_ticket`. Browsers keep
// cookies of rooms long gone and send them with each request, until the head is too large; so each
// answer may expire some.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/rooms.h"
#include "dataplane/gate/token.h"
#include "drivers/span.h"

struct http_head;

#define CARRY_TOKENS_MAX (GATE_COOKIES_MAX + 3) // cookies, two headers, one query parameter
#define CARRY_STALE_MAX 32u // cookies expired in one answer; the rest with the next
#define CARRY_COOKIES_SEEN_MAX 128u // sluice cookies weighed in one request; more are not looked at
#define CARRY_REDIRECT_EXTRA 2u // a redirect is at most this much longer than the target

enum carrier {
	CARRY_COOKIE,
	CARRY_HEADER,
	CARRY_QUERY,
};

// A token as it came, unread. The text points into the head.
struct carried {
	struct span text; // without quotes
	uint8_t carrier; // enum carrier
	uint8_t kind; // enum token_kind: what the carrier says it is
};

// Find all that is carried for `room`, in this order: header, query, cookies as they stand.
//   found  CARRY_TOKENS_MAX of them; cookies beyond GATE_COOKIES_MAX are not looked at
// Returns how many. Pure; any thread.
uint32_t carry_collect(
	const struct http_head *head, const struct gate_room *room, struct carried *found);

// The target without any `sluice_ticket`, safe as the value of Location on the same host: it begins
// with one slash only, so that nobody takes it for another authority.
//   out  target.len + CARRY_REDIRECT_EXTRA bytes
// Returns the span written, within `out`. Pure; any thread.
struct span carry_redirect(struct span target, char *out);

// Names of cookies to expire. They point into the head.
struct carry_stale {
	uint32_t count;
	struct span names[CARRY_STALE_MAX];
};

// Find the sluice cookies that are no use: of unknown rooms, not tokens at all, of a pass that has
// run out or a ticket that has lapsed; and of the others the oldest, if more than GATE_COOKIES_MAX
// would be left. Those of `room` (may be NULL) count but are never listed: its answer deals with
// them.
//   adds  sluice cookies that the answer will set and the request did not bring
// Pure but for the lines' floors; any worker.
void carry_stale(const struct gate_map *map, const struct http_head *head,
	const struct gate_room *room, uint32_t adds, uint64_t now_s, struct carry_stale *stale);

// The same for a head that was too large to be parsed (431): looks for Cookie lines in the raw
// bytes, whole cookies only.
void carry_stale_raw(
	const struct gate_map *map, struct span bytes, uint64_t now_s, struct carry_stale *stale);

// The site that the Host line in these raw bytes names, for the cookies' Domain, or NULL.
//   scratch  as for gate_map_site()
const struct gate_site *carry_site_raw(
	const struct gate_map *map, struct span bytes, char *scratch);
