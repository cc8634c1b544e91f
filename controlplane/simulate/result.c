// People stand in the order in which they came, so those of a row are neighbours; their waits are
// sorted by the sort of the draw.

#include "controlplane/simulate/result.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static_assert(sizeof(((struct result *)0)->rooms) / sizeof(struct result_room) == 16,
	"as many as rooms in plan.def");

// --- waits

struct waits {
	uint64_t *ms, *scratch;
	uint64_t count;
};

static int waits_init(struct waits *w, uint64_t people)
{
	*w = (struct waits){.ms = malloc((people + 1) * sizeof(*w->ms)),
		.scratch = malloc((people + 1) * sizeof(*w->scratch))};
	return w->ms && w->scratch ? 0 : -ENOMEM;
}

static void waits_fini(struct waits *w)
{
	free(w->ms);
	free(w->scratch);
}

static bool was_admitted(const struct play_person *person)
{
	return person->admitted_ms != PLAY_NEVER;
}

static void waits_add(struct waits *w, const struct play *p, const struct play_person *person)
{
	const uint32_t opens_ms = p->rooms[person->room].opens_ms;
	const uint32_t from_ms = person->came_ms > opens_ms ? person->came_ms : opens_ms;
	if (was_admitted(person))
		w->ms[w->count++] =
			person->admitted_ms > from_ms ? person->admitted_ms - from_ms : 0;
}

// The least that `share` of them do not exceed.
static double waits_at(const struct waits *w, double share)
{
	const uint64_t rank = (uint64_t)ceil(share * (double)w->count);
	return (double)w->ms[rank > 0 ? rank - 1 : 0] / 1000;
}

static struct result_wait waits_sum(struct waits *w)
{
	if (w->count == 0)
		return (struct result_wait){NAN, NAN, NAN, NAN};
	draw_sort(w->ms, w->scratch, w->count);
	return (struct result_wait){
		waits_at(w, 0.5), waits_at(w, 0.9), waits_at(w, 0.99), waits_at(w, 1)};
}

static int sum_room(struct result_room *r, const struct play *p, uint32_t index)
{
	const struct play_room *room = &p->rooms[index];
	struct waits waits;
	uint32_t first_ms = PLAY_NEVER;
	*r = (struct result_room){.name = room->plan->name,
		.tickets = room->tickets,
		.direct = room->direct,
		.no_shows = room->no_shows,
		.lapsed = room->lapsed,
		.unserved = room->waiting,
		.waiting_max = room->waiting_max,
		.inside_max = room->inside_max};
	int ret = waits_init(&waits, p->people_count);
	for (uint32_t i = 0; ret == 0 && i < p->people_count; i++) {
		const struct play_person *person = &p->people[i];
		if (person->room != index)
			continue;
		r->people++;
		waits_add(&waits, p, person);
		if (!was_admitted(person))
			continue;
		r->admitted++;
		if (person->admitted_ms < first_ms)
			first_ms = person->admitted_ms;
		if (person->admitted_ms > r->last_ms)
			r->last_ms = person->admitted_ms;
	}
	if (ret == 0)
		r->wait = waits_sum(&waits);
	waits_fini(&waits);
	const uint32_t ms = r->admitted ? r->last_ms - first_ms : 0;
	r->rate = ms > 0 ? (double)r->admitted * 1000 / ms : 0;
	return ret;
}

// --- traffic

static double mbit_of(const struct result *r, const struct play_room *room, uint32_t second)
{
	const struct play_second *s = &room->seconds[second];
	const double views = (double)s->inside / (double)room->plan->view_every_s;
	const double bytes = s->polls * r->sizes.poll_wire + s->pages * r->sizes.page_wire +
			     s->fresh * r->sizes.connection_wire + views * r->sizes.view_wire;
	return bytes * 8 / 1e6;
}

static double load_of(
	const struct result *r, const struct play *p, enum result_load load, uint32_t second)
{
	double sum = 0;
	for (uint32_t i = 0; i < p->room_count; i++) {
		const struct play_second *s = &p->rooms[i].seconds[second];
		sum += load == RESULT_POLLS         ? s->polls + s->pages
		       : load == RESULT_HANDSHAKES  ? (r->plan->traffic->tls ? s->fresh : 0)
		       : load == RESULT_CONNECTIONS ? s->open
						    : mbit_of(r, &p->rooms[i], second);
	}
	return sum;
}

static void sum_needs(struct result *r, const struct play *p)
{
	const struct plan_appliance *each = r->plan->appliance;
	const struct result_need needs[] = {
		[RESULT_POLLS] = {"polls and pages", "/s", .each = (double)each->polls},
		[RESULT_HANDSHAKES] = {"TLS handshakes", "/s", .each = (double)each->handshakes},
		[RESULT_CONNECTIONS] = {"connections", "", .each = (double)each->connections},
		[RESULT_BANDWIDTH] = {"sent", " Mbit/s", .each = (double)each->bandwidth},
	};
	r->needed = 1;
	for (uint32_t load = 0; load < RESULT_LOAD_COUNT; load++) {
		struct result_need *need = &r->needs[load];
		*need = needs[load];
		for (uint32_t second = 0; second < p->second_count; second++) {
			const double now = load_of(r, p, load, second);
			if (now > need->peak)
				need->peak = now, need->at_s = second;
		}
		need->appliances = (uint32_t)ceil(need->peak / need->each);
		if (need->appliances > r->needed)
			r->needed = need->appliances;
	}
	r->with_spare = r->needed + (uint32_t)each->spare;
	r->is_enough = each->count == 0 || each->count >= r->with_spare;
}

int result_sum(struct result *r, const struct play *p, const struct sizes *sizes, uint64_t seed)
{
	*r = (struct result){.plan = p->plan,
		.seed = seed,
		.sizes = *sizes,
		.lasted_s = p->second_count,
		.room_count = p->room_count};
	for (uint32_t i = 0; i < p->room_count; i++) {
		int ret = sum_room(&r->rooms[i], p, i);
		if (ret < 0)
			return ret;
		r->is_cut |= r->rooms[i].unserved > 0;
	}
	sum_needs(r, p);
	return 0;
}

// --- rows

static uint32_t step_of(uint32_t seconds, uint32_t rows_max)
{
	static const uint32_t steps[] = {1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1200,
		1800, 3600, 7200, 10800, 14400, 21600};
	const uint32_t count = sizeof(steps) / sizeof(steps[0]);
	for (uint32_t i = 0; i < count; i++)
		if ((uint64_t)steps[i] * rows_max >= seconds)
			return steps[i];
	return 86400;
}

static void add_second(struct result_row *row, const struct result *r, const struct play_room *room,
	uint32_t second)
{
	const struct play_second *s = &room->seconds[second];
	row->came += s->came;
	row->admitted += s->admitted;
	row->polls += (s->polls + s->pages) / row->length_s;
	row->mbit += mbit_of(r, room, second) / row->length_s;
}

static void fill_row(struct result_row *row, const struct result *r, const struct play *p, int only,
	uint32_t step_s)
{
	const uint32_t end =
		row->from_s + step_s < p->second_count ? row->from_s + step_s : p->second_count;
	row->length_s = end - row->from_s;
	for (uint32_t second = row->from_s; second < end; second++) {
		double polls = 0;
		for (uint32_t i = 0; i < p->room_count; i++) {
			const struct play_second *s = &p->rooms[i].seconds[second];
			if (only >= 0 && i != (uint32_t)only)
				continue;
			add_second(row, r, &p->rooms[i], second);
			polls += s->polls + s->pages;
			row->waiting += second + 1 == end ? s->waiting : 0;
			row->inside += second + 1 == end ? s->inside : 0;
		}
		row->polls_max = fmax(row->polls_max, polls);
	}
}

// The waits of those who came in a row, of whom the first is *who; *who is then the first of the
// next.
static void fill_wait(struct result_row *row, const struct play *p, int only, uint32_t end_s,
	struct waits *waits, uint32_t *who)
{
	waits->count = 0;
	for (; *who < p->people_count && p->people[*who].came_ms / 1000 < end_s; ++*who) {
		const struct play_person *person = &p->people[*who];
		if (only >= 0 && person->room != only)
			continue;
		row->unserved += !was_admitted(person) && person->shows;
		waits_add(waits, p, person);
	}
	row->wait = waits_sum(waits);
}

int result_rows(const struct result *r, const struct play *p, int room, uint32_t rows_max,
	struct result_rows *rows)
{
	struct waits waits;
	uint32_t who = 0;
	rows->step_s = step_of(p->second_count, rows_max);
	rows->count = (p->second_count + rows->step_s - 1) / rows->step_s;
	rows->at = calloc(rows->count + 1, sizeof(*rows->at));
	int ret = waits_init(&waits, p->people_count);
	if (!rows->at)
		ret = -ENOMEM;
	for (uint32_t i = 0; ret == 0 && i < rows->count; i++) {
		struct result_row *row = &rows->at[i];
		row->from_s = i * rows->step_s;
		fill_row(row, r, p, room, rows->step_s);
		// Who came at the very end of the last second is of it.
		const uint32_t end_s =
			i + 1 < rows->count ? row->from_s + rows->step_s : UINT32_MAX;
		fill_wait(row, p, room, end_s, &waits, &who);
	}
	waits_fini(&waits);
	return ret;
}

const char *result_time(double seconds, char text[RESULT_TEXT_BYTES])
{
	const uint32_t whole = isnan(seconds) ? 0 : (uint32_t)(seconds + 0.5);
	if (isnan(seconds))
		snprintf(text, RESULT_TEXT_BYTES, "-");
	else if (seconds < 10)
		snprintf(text, RESULT_TEXT_BYTES, "%.1f s", seconds);
	else if (whole < 120)
		snprintf(text, RESULT_TEXT_BYTES, "%u s", whole);
	else if (whole < 7200)
		snprintf(text, RESULT_TEXT_BYTES, "%u min", (whole + 30) / 60);
	else
		snprintf(text, RESULT_TEXT_BYTES, "%u h %02u", whole / 3600, whole % 3600 / 60);
	return text;
}

const char *result_number(double number, char text[RESULT_TEXT_BYTES])
{
	char digits[RESULT_TEXT_BYTES / 2];
	const int len = snprintf(digits, sizeof(digits), "%.0f", number);
	char *to = text;
	for (int i = 0; i < len; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return text;
}
