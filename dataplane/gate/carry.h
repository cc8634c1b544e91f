// Carrying: how visitors bring their tokens, and how they are rid of those that are no use.
//
// A token comes as a cookie (`sluice-t-ROOM`, `sluice-p-ROOM`), a header (`Sluice-Ticket`,
// `Sluice-Pass`) or, a ticket only, once as the query parameter `sluice_ticket`; an invitation into
// a lane as `sluice_lane`. Browsers keep
// cookies of rooms long gone and send them with each request, until the head is too large; so each
// answer may expire some.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/rooms.h"
#include "dataplane/gate/token.h"
#include "drivers/span.h"

struct http_head;

#define CARRY_TOKENS_MAX (GATE_COOKIES_MAX + 4) // cookies, two headers, two query parameters
#define CARRY_NAMES_MAX 64u // sluice cookies weighed in one request; more are not looked at
#define CARRY_STALE_MAX 32u // cookies expired in one answer; the rest with the next

enum carrier {
	CARRY_COOKIE,
	CARRY_HEADER,
	CARRY_QUERY,
};

// A token as it came, unread.
struct carried {
	struct span text; // without quotes; in the head
	uint8_t carrier; // enum carrier
	uint8_t kind; // enum token_kind: what the carrier says it is
};

// Find all that is carried for `room`: headers, query, cookies as they stand.
//   found       CARRY_TOKENS_MAX of them; the first GATE_COOKIES_MAX cookies of this room are
//               looked at
//   has_others  whether there may be sluice cookies of other rooms too
// Returns how many. Pure; any thread.
uint32_t carry_collect(const struct http_head *head, const struct gate_room *room,
	struct carried *found, bool *has_others);

// The target without any `sluice_ticket`, as the value of Location on the same host: it begins with
// one slash only, so that nobody takes it for another authority.
//   target  origin-form
//   out     target.len bytes
// Returns the span written. Pure; any thread.
struct span carry_redirect(struct span target, char *out);

// Names of cookies to expire, each once. They point into the head.
struct carry_stale {
	uint32_t count;
	struct span names[CARRY_STALE_MAX];
};

// Find the sluice cookies that are no use: of unknown rooms, not tokens at all, a pass that has run
// out, a ticket that has lapsed; and of the others the oldest, while more than GATE_COOKIES_MAX
// would be left. Those of `room` (may be NULL) are counted but never listed: the answer deals with
// them.
//   adds  sluice cookies that the answer will set and the request did not bring
// MACs are not checked: whoever lies about a cookie loses it. Pure but for the floors of lines,
// which are read; any worker.
void carry_stale_find(const struct gate_map *map, const struct http_head *head,
	const struct gate_room *room, uint32_t adds, uint64_t now_s, struct carry_stale *stale);

// Make what can be made of the raw bytes of a head that was too large to be parsed (431): its Host
// and its Cookie fields, and nothing else, for gate_map_site() and carry_stale_find(). A cookie
// that is cut off is left out. Bytes beyond HTTP_HEAD_BYTES_MAX are not looked at.
//   head  its spans point into `bytes`
// Pure; any thread.
void carry_salvage(struct span bytes, struct http_head *head);
