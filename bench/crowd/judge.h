// Judge: whether a crowd was served in order, at the rate, and within the capacity, as far as the
// crowd itself can tell.
//
// Inversion. Visitor A was granted a slot while so many visitors of smaller keys were present that
// A cannot have held a reservation. In the words of the design: the smallest present keys hold
// reservations, as many as slots are free, and under a rate no more than it serves while they poll
// twice (its burst + 2 + 2 seconds of it); who holds one may take a slot before another holder,
// anybody else may not. So A overtook
//
//   each B of a smaller key that had been told `next` before A's granted request was sent, had sent
//   no request since when A's grant arrived, and had at that moment not let twice its poll_after
//   pass since it sent the request that was answered `next`
//
// and that is an inversion if there are as many of them as could hold a reservation at the most:
//
//   burst + 2 + 2 rate (if there is a rate), and capacity - sessions held (if there is a capacity)
//
// Everything about B is known for certain, whatever the network did; so an inversion counted here
// is one, and those that fall into the time between sending and receiving are not seen.
//
// Held. A session is held for certain from when the pass arrived until the request that ends it is
// sent.
//
// Order of arrival. Of two visitors, one asked for a place more than JUDGE_APART_US after the other
// had got one, and was given the smaller key: the latter has been overtaken. Two of one key, or of
// one position, are one too many.
//
// Windows. Sessions of one length end as many seconds later as they began, so the ends of passes
// say by sluice's own clock how many began in each second, and in each 60 on end.
//
// Rate. Ticket holders let in, over the time in which at least one visitor who came when called
// held a ticket and was not yet let in.
#pragma once

#include <stdint.h>

#include "bench/crowd/tally.h"

#define JUDGE_APART_US 50000 // appliances may differ by a slot and by their clocks
#define JUDGE_WINDOW_S 60u

struct judge_limits {
	double rate, burst; // people a second, people; rate 0: no limit
	uint32_t capacity; // 0: no limit
};

struct judge_finding {
	uint64_t inversions;
	uint64_t overtakes; // grants that overtook anybody, holders of reservations included
	uint64_t overtaken_max; // by one grant
	uint64_t held_max; // sessions at once
	double waiting_s; // in which somebody waited
	uint64_t waiting_admitted; // called, in that time
	uint64_t arrivals_overtaken; // visitors whom a later arrival stands before
	uint64_t places_double; // keys, or positions, that somebody else has too
	uint64_t second_max, window_max; // sessions begun in a second, and in JUDGE_WINDOW_S
};

// Judge a whole run. Sorts the lists of the tally. Returns false when memory is short.
bool judge_run(
	struct tally *tally, const struct judge_limits *limits, struct judge_finding *finding);
