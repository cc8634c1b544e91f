// What a worker counts: one line here makes the counter, its name and its text.
//
// Written by the worker with plain relaxed stores, read by control at any time; no locks.
#pragma once

#include <stdatomic.h>
#include <stdint.h>

// What was done.
#define COUNTERS_DONE(X) \
	X(turns, "turns of the loop") \
	X(busy_turns, "of these, such that took something in, by a driver that polls") \
	X(busy_cycles, "cycles of the processor's time stamp counter that those took") \
	X(connections, "connections accepted") \
	X(requests, "request heads read") \
	X(recalled, "polls read by one before that was alike but for its cookies") \
	X(tokens, "tokens whose MAC was computed") \
	X(tokens_remembered, "tokens equal to one last verified on their connection") \
	X(tickets, "tickets drawn") \
	X(gathered, "of these, tickets of a gathering") \
	X(polls, "status polls answered") \
	X(pages, "queue pages sent, as HTML or JSON") \
	X(draws, "draws shown, or their lists") \
	X(assets, "files that pages show") \
	X(code_pages, "pages that ask for a code") \
	X(codes, "codes asked of control") \
	X(codes_honoured, "of these, codes that became a place in a lane") \
	X(codes_known, "of these, codes of those who are in their lane already") \
	X(peak_direct, "newcomers let in without a place, mode peak") \
	X(peak_queued, "newcomers given a place, mode peak") \
	X(lane_by_link, "newcomers to a lane by a signed link") \
	X(lane_by_header, "newcomers to a lane by a header") \
	X(lane_by_address, "newcomers to a lane by their address") \
	X(claims, "claims sent to control") \
	X(granted, "passes sent: issued, renewed or repeated") \
	X(forwarded, "requests forwarded to an origin") \
	X(preflights, "CORS pre-flights passed") \
	X(sent_to_https, "308: requests of plain listeners sent to https") \
	X(left, "visitors that gave back their places or sessions")

// What was refused or dropped, and why.
#define COUNTERS_DROPS(X) \
	X(bad_head, "400: head against the grammar") \
	X(bad_body, "400: body against the grammar, or cut short") \
	X(bad_target, "400: target that names two rooms or hosts, climbs, or is badly escaped") \
	X(head_too_large, "431 or 414: head over a limit") \
	X(bad_version, "505: not HTTP/1.x") \
	X(misdirected, "421: host that no site names") \
	X(bad_method, "501 or 405: method not served, or not by that endpoint") \
	X(not_found, "404: no such room or endpoint under /.sluice/") \
	X(cross_site, "403: asked to leave by a page of another site") \
	X(rejected, "told that nobody is let in, mode reject") \
	X(closed, "told that the room is closed") \
	X(full, "newcomers told that the room is full") \
	X(lane_link_over, "newcomers by a link whose time is over, to the room's own line") \
	X(lane_untrusted, "newcomers with a lane's header from nobody trusted, likewise") \
	X(code_invalid, "400: no text that could be a code") \
	X(code_long, "413: body longer than any with a code") \
	X(code_unsized, "411: code in a body without Content-Length") \
	X(code_unknown, "403: code in no list of the room") \
	X(code_spent, "403: code used as often as it may be") \
	X(code_guarded, "429: source with too many wrong codes in the minute") \
	X(code_unanswered, "503: code that control did not answer in time, or nothing is granted") \
	X(code_undone, "codes honoured for which there was no place: given back") \
	X(bad_token, "tokens that did not hold") \
	X(unknown, "401: status poll without a token that holds") \
	X(unguarded_method, "503: no pass, and no ticket for such a request") \
	X(leave_unanswered, "503: told to leave, and control did not say in time that it is done") \
	X(draining, "503: newcomer while draining") \
	X(table_full, "503: connection table full") \
	X(source_full, "503: source has its share of connections") \
	X(evicted, "idle connections closed to make room") \
	X(head_timeout, "408: head not complete in time") \
	X(idle_timeout, "idle connections closed") \
	X(slow_body, "408: body slower than the minimum rate, or not whole in time") \
	X(drain_timeout, "closed while discarding what nobody wanted: too late or too much") \
	X(buffers_exhausted, "503 or closed: no buffer left") \
	X(write_failed, "closed: the driver could not take the answer") \
	X(claim_ring_full, "claims not sent: ring full") \
	X(claim_timeout, "claims not answered within a second") \
	X(parked_full, "claims not sent: too many parked") \
	X(claim_gone, "grants that nobody took, given back") \
	X(reports_full, "reports to control lost: queue full") \
	X(held, "called, but not claimed: nothing is granted now") \
	X(origin_failed, "502: origin down or against the grammar") \
	X(origin_late, "504: origin did not answer in time") \
	X(exchanges_full, "503: no exchange left, or no buffer or stream for one") \
	X(preflight_limited, "503: pre-flights over their rate") \
	X(pipeline_full, "431 or closed: pipelined bytes beyond the buffer") \
	X(peer_gone, "peers that left while something was due to them")

#define COUNTERS(X) COUNTERS_DONE(X) COUNTERS_DROPS(X)

enum counter {
#define X(name, text) COUNTER_##name,
	COUNTERS(X)
#undef X
		COUNTER_COUNT,
};

struct counters {
	_Atomic uint64_t of[COUNTER_COUNT];
};

extern const char *const counters_names[COUNTER_COUNT];
extern const char *const counters_texts[COUNTER_COUNT];

// The worker only.
static inline void counters_add(struct counters *counters, enum counter which, uint64_t by)
{
	uint64_t value = atomic_load_explicit(&counters->of[which], memory_order_relaxed);
	atomic_store_explicit(&counters->of[which], value + by, memory_order_relaxed);
}

// Any thread, at any time.
static inline uint64_t counters_get(const struct counters *counters, enum counter which)
{
	return atomic_load_explicit(&counters->of[which], memory_order_relaxed);
}
