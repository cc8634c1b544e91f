// A visitor's request, read once: everything the decision needs.
//
// Three steps, so that the tokens of a burst are verified together:
//
//   gate_request_read()    from the head: where it goes, what it may have, which tokens it carries
//   gate_request_tokens()  decode them and hand out one MAC job for each that could be valid
//   mac_burst()            over the jobs of all requests of the turn
//   gate_request_settle()  choose the pass and the ticket that count
//
// Whether a called ticket gets its slot, whether a pass's session has been ended: that is the
// decision's (decide.h), which knows lines and ended sessions.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/gate/carry.h"
#include "dataplane/gate/code.h"
#include "dataplane/gate/mac.h"
#include "dataplane/gate/match.h"
#include "dataplane/gate/rooms.h"
#include "dataplane/gate/token.h"
#include "drivers/span.h"

struct http_head;

// Scratch for gate_request_read(): host, readings of the path, a redirect.
#define GATE_REQUEST_SCRATCH_BYTES(target_bytes) \
	(MATCH_HOST_BYTES_MAX + 1 + MATCH_SCRATCH_BYTES(target_bytes) + (size_t)(target_bytes))

enum gate_route {
	GATE_ROUTE_BAD, // 400: path, or an absolute-form target for another host
	GATE_ROUTE_MISDIRECTED, // 421: no site answers to that host
	GATE_ROUTE_UNGUARDED, // straight to the origin of `site`
	GATE_ROUTE_GUARDED, // by `room`
	GATE_ROUTE_STATUS, // /.sluice/ROOM/status
	GATE_ROUTE_LEAVE, // /.sluice/ROOM/leave
	GATE_ROUTE_DRAW, // /.sluice/ROOM/draw, of a lane /.sluice/ROOM/LANE/draw
	GATE_ROUTE_DRAW_KEYS, // likewise draw/keys
	GATE_ROUTE_CODE, // /.sluice/ROOM/code, of a room that takes codes
	GATE_ROUTE_ASSET, // /.sluice/assets/NAME, of `asset`
	GATE_ROUTE_HEALTH, // /.sluice/health, on any host
	GATE_ROUTE_UNKNOWN, // 404: another path under /.sluice/, or no such room on this site
	GATE_ROUTE_SERVER, // OPTIONS *: about the server as a whole, which for the visitor is
			   // sluice. No path, so in no room; answered here, so no way past one
};

// How a newcomer came to a lane, or did not.
enum gate_entry {
	GATE_ENTRY_NONE,
	GATE_ENTRY_ADDRESS,
	GATE_ENTRY_HEADER,
	GATE_ENTRY_LINK,
	GATE_ENTRY_UNTRUSTED, // a header, but from nobody who is believed
	GATE_ENTRY_OVER, // a link whose time is over
};

enum gate_token_state {
	GATE_TOKEN_NONE, // no token, or one that counts as none
	GATE_TOKEN_PENDING, // waits for its MAC
	GATE_TOKEN_VALID, // signed, for this room, not dated ahead; a pass may have run out
};

// A token of the request.
struct gate_token {
	struct carried carried;
	uint8_t state; // enum gate_token_state
	struct token token; // decoded; meaningful unless NONE
	struct token_wire wire;
	uint64_t print; // likewise
	uint8_t tag[MAC_TAG_BYTES]; // computed by mac_burst()
};

// What a connection remembers: the ticket and the pass it last verified, by their prints. All zero:
// nothing (a print of 0 is as unlikely as any other). Owned by the connection, 16 bytes.
struct gate_remembered {
	uint64_t ticket, pass;
};

struct gate_request {
	// From the head.
	uint8_t route; // enum gate_route
	uint8_t method; // enum http_method
	uint8_t language; // of a page: index in the set of the room, else of the site
	uint8_t encoding; // enum accept_encoding, of a page
	bool wants_json; // Accept ranks JSON above HTML
	bool draws; // may draw a ticket, and claim without one
	bool is_prefetch; // draws and claims nothing
	bool is_preflight; // CORS: passes within the site's preflight_rate
	bool is_cross_site; // sent by a page of another site: may not leave, nor spend a code
	bool has_body;
	bool has_other_cookies; // perhaps sluice cookies that are not `room`'s: ask
				// carry_stale_find(); else it would find none
	const struct gate_site *site; // NULL if none answers to the host
	const struct gate_room *room; // GUARDED and the endpoints of a room; else NULL. Once
				      // settled perhaps a lane of it
	const struct gate_room *whole; // once settled: the room itself, also if `room` is a lane
	const struct gate_room *entry; // the lane that a newcomer enters (lane.h); NULL: none
	uint8_t entry_by; // enum gate_entry: how they came to `entry`, or by a link to `room`
	const struct gate_asset *asset; // ASSET
	struct code_digest code; // CODE: what code_read() found
	uint64_t once; // CODE: the number of the page that it was typed on; 0: none
	uint8_t code_outcome; // enum code_outcome: CODE_asked, or what is wrong with it
	uint16_t body_bytes; // CODE: of the body, which came with the head; else 0
	struct span host; // matched, normalised: the origin's Host; in the scratch
	struct span target; // as sent, from its path on
	struct span redirect; // the target without `sluice_ticket`, in the scratch; at == NULL if
			      // it carries none

	// Settled. They point into `tokens`.
	const struct gate_token *ticket; // valid, the smallest key; NULL: none
	const struct gate_token *pass; // valid and not run out, the latest end; NULL: none
	const struct gate_token *invitation; // into a lane, signed; NULL: none
	const struct gate_token *outranked; // valid ticket of another line than the invitation's,
					    // which it stays good for until that gave a place
	const struct gate_token *pass_over; // if there is no `pass`: valid but run out
	bool takes_query; // `ticket` came in the query of a GET: set its cookie, redirect

	// What is carried for `room`; nothing if there is none.
	uint32_t token_count;
	struct gate_token tokens[CARRY_TOKENS_MAX];
};

// Read a request.
//   head     parsed; spans of the request point into its bytes and die with them
//   scratch  GATE_REQUEST_SCRATCH_BYTES(target length); spans point into it too
// Pure; any thread.
void gate_request_read(const struct gate_map *map, const struct http_head *head, char *scratch,
	struct gate_request *request);

// What gate_request_read() finds in a head whatever its cookies are.
struct gate_request_kept {
	char found[offsetof(struct gate_request, ticket)]; // as it stands there
	uint16_t host_bytes;
	char host[MATCH_HOST_BYTES_MAX];
};

// Keep that of a request just read. Pure; any thread.
void gate_request_keep(const struct gate_request *request, struct gate_request_kept *kept);

// Read a request whose head differs from that of `kept` in the value of its Cookie field alone, and
// whose map is the same. Otherwise as gate_request_read().
void gate_request_again(const struct gate_request_kept *kept, const struct http_head *head,
	char *scratch, struct gate_request *request);

// Decode what is carried, and hand out the MACs to compute.
//   key         of prints; the same as long as anything is remembered
//   remembered  of the connection; may be NULL
//   jobs        room for CARRY_TOKENS_MAX
// Returns how many jobs were written; they point into the request and `secrets`. Pure; any thread.
uint32_t gate_request_tokens(struct gate_request *request, const struct token_secrets *secrets,
	const struct token_print_key *key, const struct gate_remembered *remembered, uint64_t now_s,
	struct mac_job *jobs);

// Choose, after the MACs were computed.
//   remembered  gets the chosen ticket and pass; may be NULL
//   now_s       cluster time, unix s
// Pure; any thread.
void gate_request_settle(
	struct gate_request *request, struct gate_remembered *remembered, uint64_t now_s);
