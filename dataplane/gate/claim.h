// Claims: what workers ask of control about admission, and what control answers.
//
// A request that would be admitted is parked by its worker; its claim goes to control on the
// worker's claim ring and the answer comes back on the worker's answer ring. The other kinds are
// reports: nobody waits for them, and a worker re-sends them until they are taken.
#pragma once

#include <assert.h>
#include <stdint.h>

enum claim_kind {
	CLAIM_CALLED = 1, // a ticket with floor <= key < threshold polls: answered
	CLAIM_DIRECT, // a newcomer while nobody waits; `visitor` is fresh, `key` 0: answered
	CLAIM_RENEW, // a pass in the second half of its life, or the origin's `Sluice-Command:
		     // renew`: answered
	CLAIM_END, // the origin's `Sluice-Command: end`: report
	CLAIM_LEAVE, // leave with a ticket (key 0: none), a pass (session 0: none) or both:
		     // answered
	CLAIM_GONE, // an answer found its request gone: the grant in it was not delivered: report
	CLAIM_PASSED, // mode off: somebody was forwarded uncounted: report
	CLAIM_CODE, // a code, its digest in `key` and `session`: answered
	CLAIM_CODE_GONE, // a place of an answer to that reached nobody who could ask again: the use
			 // was not made: report
	CLAIM_MOVE, // the holder of a ticket follows a link into lane `line_id`; or, with a ticket
		    // that was given up, asks what for: answered
};

struct claim {
	uint8_t kind; // enum claim_kind
	uint8_t worker; // index of the sender
	uint16_t room; // index of the room in the snapshot the sender holds
	uint32_t request; // the sender's parked request; handed back in the answer
	uint32_t generation; // of that parked request, likewise
	uint32_t poll_after; // s; CLAIM_CALLED: what the visitor will be told if the answer is
			     // CLAIM_NEXT. CLAIM_CODE: 1 if the holder is known by the number of
			     // a page, 0 if by a ticket
	uint64_t key; // CLAIM_CALLED; CLAIM_LEAVE, with GATHER_NUMBER if it is none; CLAIM_CODE,
		      // CLAIM_CODE_GONE: of the digest
	uint64_t visitor; // all but CLAIM_PASSED; CLAIM_LEAVE: of the ticket, or if there is none
			  // of the pass. CLAIM_CODE, CLAIM_MOVE: the holder, who may ask again
			  // after a lost answer; 0: nobody will. CLAIM_CODE_GONE: of the place
	uint64_t session; // CLAIM_RENEW, CLAIM_END, CLAIM_LEAVE, CLAIM_GONE; as `key`
	uint32_t expires; // CLAIM_RENEW, CLAIM_END, CLAIM_LEAVE: of the pass presented, unix s;
			  // CLAIM_RENEW: 0 if the origin asks. CLAIM_CODE, CLAIM_MOVE: line id of
			  // the ticket that is held and good; 0: none. CLAIM_CODE_GONE: of the lane
	uint32_t line_id; // of the room, so that a claim that crosses a reload is never charged to
			  // another room
	uint64_t sent_ms; // cluster time
	uint64_t place; // CLAIM_CODE, CLAIM_MOVE: key of the ticket that is held, with
			// GATHER_NUMBER if it is none; 0: there is none. CLAIM_CODE_GONE: of the
			// place, likewise. CLAIM_LEAVE: visitor of the pass, if there is a ticket
			// of another besides; else 0
};
static_assert(sizeof(struct claim) == 64, "one cache line, one ring element");

enum claim_verdict {
	CLAIM_GRANTED = 1, // session and expires are set; the store knows it
	CLAIM_NEXT, // called, no slot yet: poll again after poll_after
	CLAIM_REFUSED, // direct: take a ticket; leave: the store takes nothing now
	CLAIM_LAPSED, // the turn is over, or the session it was used for is
	CLAIM_RENEWED, // the session lives, and expires is its end now
	CLAIM_CLOSED, // the room is closed
	CLAIM_LEFT, // given back; the store knows it
	CLAIM_HONOURED, // code, move: a place in lane `lane_id`: a ticket of `visitor` and `key`;
			// the store knows it
	CLAIM_KNOWN, // code: of the lane that the visitor is in already: nothing was spent
	CLAIM_UNKNOWN, // code: in no list of the room; move: the ticket was given up for nothing
	CLAIM_SPENT, // code: used as often as it may be
	CLAIM_FULL, // code, move: lane `lane_id` takes no more people; nothing was spent
	CLAIM_BEFORE, // code, move: nor does it yet
};

// Of a place, in `expires` of CLAIM_HONOURED.
#define CLAIM_PLACE_GATHERED 1u // `key` is the number of a gathering
#define CLAIM_PLACE_AGAIN 2u // it was drawn for an earlier claim of the same holder
#define CLAIM_PLACE_NOBODYS 4u // its holder cannot be known: undelivered, it was never drawn

struct claim_answer {
	uint8_t verdict; // enum claim_verdict
	uint8_t kind; // of the claim
	uint16_t room;
	uint32_t request;
	uint32_t generation;
	uint32_t poll_after; // s; CLAIM_NEXT
	uint64_t key; // of the claim; CLAIM_HONOURED: of the place
	uint64_t visitor;
	uint64_t session; // CLAIM_HONOURED: first word of the digest
	uint32_t expires; // unix s; CLAIM_HONOURED: CLAIM_PLACE_ bits
	uint32_t issued; // unix s, cluster time of the grant
	uint32_t line_id;
	uint32_t lane_id; // CLAIM_HONOURED, CLAIM_FULL, CLAIM_BEFORE: line id of the lane
	uint64_t digest; // CLAIM_HONOURED: the other word
};
static_assert(sizeof(struct claim_answer) == 64, "one cache line, one ring element");
