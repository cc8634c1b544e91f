// The decision: what becomes of a request. Pure: request, words of the line, time and fresh random
// numbers in; one decision out.
//
//   gate_request_settle() ─▶ decide() ─▶ FORWARD · CLAIM · ANSWER
//                              ▲            │
//                              └────────────┘ again, with control's answer to the claim
//
// decide() reads and changes the line's words (a direct claim takes one from `open`, a mint draws a
// key); nothing else outside its arguments.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/gate/claim.h"
#include "dataplane/gate/request.h"
#include "dataplane/gate/status.h"
#include "dataplane/gate/token.h"

#define DECIDE_LOCATION_BYTES_MAX \
	8192u // of a redirect; a longer target keeps its ticket, and is
	      // bad where it must go to https
#define DECIDE_REST_S 60u // the longest poll_after where nothing is to be expected soon

struct draw_list;
struct gather_proof;

enum decide_action {
	DECIDE_FORWARD, // to the origin of the site
	DECIDE_CLAIM, // park the request and send `claim`
	DECIDE_ANSWER, // ours: answer_render()
};

// Kinds of answers of ours.
enum decide_answer {
	DECIDE_PAGE, // queue page or its JSON, by the request's wants_json: queue_status
	DECIDE_STATUS, // status poll: 200, or 410 when expired
	DECIDE_UNKNOWN, // status poll without a token: 401
	DECIDE_LEFT, // leave: 204, with control's answer
	DECIDE_CROSS_SITE, // leave from another site: 403
	DECIDE_HTTPS, // the same URL by https: 308
	DECIDE_REDIRECT, // the ticket of the query becomes a cookie: 302 to the same URL without it
	DECIDE_UNAVAILABLE, // no pass, and not a request that draws; or leave, and control has not
			    // said that it is done: 503 with Retry-After
	DECIDE_NOT_FOUND, // 404
	DECIDE_METHOD, // 405 with Allow
	DECIDE_ASSET, // 200 with a file that pages show, to be kept for ever
	DECIDE_HEALTH, // 200, or 503 while draining or when a worker stands still
	DECIDE_SERVER, // OPTIONS *: 204 with Allow
	DECIDE_BAD_TARGET, // 400
	DECIDE_MISDIRECTED, // 421
	DECIDE_INVITATION, // the page that asks for a code, or what was wrong with one: `outcome`
	DECIDE_WELCOME, // the code was taken, or is not needed: 303 to the room, or 200 as JSON
	DECIDE_DRAW, // GET draw: 200 with `proof`
	DECIDE_DRAW_KEYS, // GET draw/keys: 200, and `list` as text, which may be longer than any
			  // answer
	DECIDE_DRAW_NONE, // GET draw of a room where nobody gathers, or draw/keys of one where
			  // nothing is drawn: 404 as JSON
};

struct decide_input {
	const struct gate_request *request; // settled
	const struct claim_answer *answer; // control's, if the request comes back from being parked
	bool answer_is_late; // it was parked and no answer came in time, or it could not be parked
	const struct ended *left; // visitors of tickets that were given back; NULL: none
	bool pass_has_ended; // request->pass is in the set of ended sessions
	uint32_t pass_renewed; // unix s: until when control has renewed its session by the origin's
			       // command; 0: not that this worker knows
	bool is_plain; // the visitor came neither over TLS nor, as a trusted proxy says, to one
		       // that did
	bool is_held; // control's heartbeat is old: claim nothing
	bool is_draining; // admit no newcomers
	bool is_unhealthy; // for the health answer
	uint8_t appliance; // for minted keys
	uint64_t now_ms; // cluster time
	uint32_t now_s; // the same in whole seconds
	uint64_t fresh_visitor; // random, another one for every call, also for one request: a claim
				// that went unanswered may still be granted. 0 for a status poll,
				// which draws nothing
	uint32_t random; // for jitter
};

struct decision {
	uint8_t action; // enum decide_action
	uint8_t answer; // enum decide_answer; DECIDE_ANSWER
	bool sets_ticket, sets_pass; // tokens that the answer carries, in `ticket` and `pass`
	bool clears_ticket, clears_pass; // cookies that it expires
	bool was_minted; // `ticket` was drawn just now
	bool fills_window; // and with it a window has as many as it may have: wake control
	bool is_preflight; // FORWARD: a CORS pre-flight; count it against the site's rate. Beyond
			   // that it is DECIDE_UNAVAILABLE, for which all is set
	bool is_uncounted; // FORWARD: a page view in mode off
	bool refuses_claim; // a called ticket could not claim (held, late): report claim.key and
			    // claim.poll_after as refused
	bool is_draining, is_unhealthy; // HEALTH
	uint8_t outcome; // INVITATION: enum code_outcome
	uint64_t once; // INVITATION: number of the page, of whoever types a code on it
	uint32_t lane_id; // WELCOME: line id of the lane that a code was honoured for; 0: none was
	struct token ticket, pass; // to set, or (pass) to forward with
	uint64_t session; // FORWARD: 0 if unguarded
	uint32_t ends_s; // FORWARD: unix s when the session ends; 0: never
	struct claim
		claim; // CLAIM: kind, room, line_id, key, visitor, session, expires, poll_after
	const struct gather_proof *proof; // DRAW
	struct draw_list *list; // DRAW_KEYS
	struct status status; // PAGE, STATUS; poll_after is Retry-After of UNAVAILABLE too
};

// Any worker. No allocation, no clock.
void decide(const struct decide_input *input, struct decision *decision);

// Write `now_s` as an IMF-fixdate (RFC 9110 5.6.7), 29 bytes and a NUL. Pure.
void decide_date(uint32_t now_s, char date[32]);
