// One sweep in the order in which granted requests were sent, with the presences and the sessions
// that have begun by then, and have not ended: the number of steps is that of admissions times that
// of those present at once.

#include "bench/crowd/judge.h"

#include <stdlib.h>

// What has begun before the moment of the sweep and is not known to be over.
struct begun {
	const struct tally_presence **presences;
	const struct tally_admission **sessions;
	uint32_t presence_count, session_count;
	uint32_t presence_next, session_next; // of the sorted lists
};

static int compare(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int by_from(const void *a, const void *b)
{
	const struct tally_presence *x = a, *y = b;
	return compare(x->from_us, y->from_us);
}

static int by_asked(const void *a, const void *b)
{
	const struct tally_admission *const *x = a, *const *y = b;
	return compare((*x)->asked_us, (*y)->asked_us);
}

static int by_granted(const void *a, const void *b)
{
	const struct tally_admission *x = a, *y = b;
	return compare(x->granted_us, y->granted_us);
}

static int by_placed(const void *a, const void *b)
{
	const struct tally_admission *const *x = a, *const *y = b;
	return compare((*x)->placed_us, (*y)->placed_us);
}

static int by_end(const void *a, const void *b)
{
	const struct tally_admission *const *x = a, *const *y = b;
	return compare((*x)->pass_ends, (*y)->pass_ends);
}

static int by_key(const void *a, const void *b)
{
	const struct tally_place *x = a, *y = b;
	return (x->key > y->key) - (x->key < y->key);
}

static int by_position(const void *a, const void *b)
{
	const struct tally_place *x = a, *y = b;
	return compare(x->position, y->position);
}

static int by_time(const void *a, const void *b)
{
	return compare(*(const int64_t *)a, *(const int64_t *)b);
}

// Smaller keys that were present all through this request, as far as they are known.
static uint64_t overtaken_by(
	struct begun *begun, const struct tally *tally, const struct tally_admission *admission)
{
	for (; begun->presence_next < tally->presence_count; begun->presence_next++) {
		const struct tally_presence *next = &tally->presences[begun->presence_next];
		if (next->from_us >= admission->asked_us)
			break;
		begun->presences[begun->presence_count++] = next;
	}
	uint64_t overtaken = 0;
	for (uint32_t i = begun->presence_count; i-- > 0;) {
		const struct tally_presence *present = begun->presences[i];
		if (present->to_us <= admission->asked_us)
			begun->presences[i] = begun->presences[--begun->presence_count];
		else
			overtaken += present->key < admission->key &&
				     present->to_us > admission->granted_us;
	}
	return overtaken;
}

// Sessions that were held all through this request.
static uint64_t held_beside(
	struct begun *begun, const struct tally *tally, const struct tally_admission *admission)
{
	for (; begun->session_next < tally->admission_count; begun->session_next++) {
		const struct tally_admission *next = &tally->admissions[begun->session_next];
		if (next->granted_us >= admission->asked_us)
			break;
		begun->sessions[begun->session_count++] = next;
	}
	uint64_t held = 0;
	for (uint32_t i = begun->session_count; i-- > 0;) {
		if (begun->sessions[i]->ended_us <= admission->asked_us)
			begun->sessions[i] = begun->sessions[--begun->session_count];
		else
			held += begun->sessions[i]->ended_us > admission->granted_us;
	}
	return held;
}

// How many reservations there can have been.
static double reserved(const struct judge_limits *limits, uint64_t held)
{
	double most = 1e18;
	if (limits->rate > 0)
		most = (limits->burst > 0 ? limits->burst : limits->rate) + 2 + 2 * limits->rate;
	if (limits->capacity > 0 && most > (double)limits->capacity - (double)held)
		most = (double)limits->capacity - (double)held;
	return most;
}

// `order` has room for all admissions.
static void judge_order(const struct tally *tally, const struct judge_limits *limits,
	struct begun *begun, const struct tally_admission **order, struct judge_finding *finding)
{
	for (uint32_t i = 0; i < tally->admission_count; i++)
		order[i] = &tally->admissions[i];
	qsort(order, tally->admission_count, sizeof(*order), by_asked);
	for (uint32_t i = 0; i < tally->admission_count; i++) {
		if (order[i]->key == 0)
			continue; // direct: nobody was waiting, and there is nobody to compare with
		const uint64_t overtaken = overtaken_by(begun, tally, order[i]);
		const uint64_t held = held_beside(begun, tally, order[i]);
		finding->overtakes += overtaken > 0;
		finding->inversions += overtaken > 0 && overtaken >= reserved(limits, held);
		if (overtaken > finding->overtaken_max)
			finding->overtaken_max = overtaken;
	}
}

// The union of all the waits.
static void judge_rate(const struct tally *tally, const struct tally_admission **order,
	struct judge_finding *finding)
{
	int64_t until_us = 0, waiting_us = 0;
	qsort(order, tally->admission_count, sizeof(*order), by_placed);
	for (uint32_t i = 0; i < tally->admission_count; i++) {
		if (order[i]->key == 0)
			continue;
		int64_t from_us = order[i]->placed_us;
		from_us = from_us > until_us ? from_us : until_us;
		if (order[i]->granted_us > from_us) {
			waiting_us += order[i]->granted_us - from_us;
			until_us = order[i]->granted_us;
		}
		finding->waiting_admitted++;
	}
	finding->waiting_s = (double)waiting_us / 1e6;
}

// Admissions are sorted by when they were granted; `ends` has room for all of them.
static void judge_held(const struct tally *tally, int64_t *ends, struct judge_finding *finding)
{
	for (uint32_t i = 0; i < tally->admission_count; i++)
		ends[i] = tally->admissions[i].ended_us;
	qsort(ends, tally->admission_count, sizeof(*ends), by_time);
	for (uint32_t i = 0, ended = 0; i < tally->admission_count; i++) {
		while (ended <= i && ends[ended] <= tally->admissions[i].granted_us)
			ended++;
		if (i + 1 - ended > finding->held_max)
			finding->held_max = i + 1 - ended;
	}
}

// The most passes that end within `seconds` on end; they are sorted by their ends.
static uint64_t most_within(const struct tally_admission **order, uint32_t count, uint32_t seconds)
{
	uint64_t most = 0;
	for (uint32_t i = 0, first = 0; i < count; i++) {
		while (order[i]->pass_ends - order[first]->pass_ends >= seconds)
			first++;
		if (i + 1 - first > most)
			most = i + 1 - first;
	}
	return most;
}

static void judge_windows(const struct tally *tally, const struct tally_admission **order,
	struct judge_finding *finding)
{
	qsort(order, tally->admission_count, sizeof(*order), by_end);
	finding->second_max = most_within(order, tally->admission_count, 1);
	finding->window_max = most_within(order, tally->admission_count, JUDGE_WINDOW_S);
}

static uint64_t same_as_before(
	struct tally_place *places, uint32_t count, int (*order)(const void *, const void *))
{
	uint64_t same = 0;
	if (count > 0)
		qsort(places, count, sizeof(*places), order);
	for (uint32_t i = 1; i < count; i++)
		same += order(&places[i - 1], &places[i]) == 0;
	return same;
}

// Leaves the places in the order of their keys.
static void judge_places(struct tally *tally, struct judge_finding *finding)
{
	struct tally_place *places = tally->places;
	int64_t latest_us = INT64_MIN; // arrival of anybody with a smaller key
	finding->places_double = same_as_before(places, tally->place_count, by_position);
	finding->places_double += same_as_before(places, tally->place_count, by_key);
	for (uint32_t i = 0; i < tally->place_count; i++) {
		finding->arrivals_overtaken += latest_us > places[i].placed_us + JUDGE_APART_US;
		if (places[i].arrived_us > latest_us)
			latest_us = places[i].arrived_us;
	}
}

bool judge_run(
	struct tally *tally, const struct judge_limits *limits, struct judge_finding *finding)
{
	const size_t people = tally->admission_count + 1u;
	struct begun begun = {
		.presences = calloc(tally->presence_count + 1u, sizeof(void *)),
		.sessions = calloc(people, sizeof(void *)),
	};
	const struct tally_admission **order = calloc(people, sizeof(*order));
	int64_t *ends = calloc(people, sizeof(*ends));
	*finding = (struct judge_finding){0};
	const bool could = begun.presences && begun.sessions && order && ends;
	judge_places(tally, finding);
	if (could && tally->admission_count > 0) {
		if (tally->presence_count > 0)
			qsort(tally->presences, tally->presence_count, sizeof(*tally->presences),
				by_from);
		qsort(tally->admissions, tally->admission_count, sizeof(*tally->admissions),
			by_granted);
		judge_order(tally, limits, &begun, order, finding);
		judge_rate(tally, order, finding);
		judge_held(tally, ends, finding);
		judge_windows(tally, order, finding);
	}
	free(begun.presences);
	free(begun.sessions);
	free(order);
	free(ends);
	return could;
}
