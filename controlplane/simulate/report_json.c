// The JSON: the same numbers, with names that say their unit.

#include "controlplane/simulate/report.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>

static json_t *number(double value)
{
	return isnan(value) ? json_null() : json_real(round(value * 1000) / 1000);
}

static json_t *wait_of(const struct result_wait *w)
{
	return json_pack("{s:o, s:o, s:o, s:o}", "p50", number(w->p50), "p90", number(w->p90),
		"p99", number(w->p99), "max", number(w->max));
}

static json_t *row_of(const struct result_row *row)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "from_s",
		(json_int_t)row->from_s, "came", (json_int_t)row->came, "admitted",
		(json_int_t)row->admitted, "waiting", (json_int_t)row->waiting, "inside",
		(json_int_t)row->inside, "unserved", (json_int_t)row->unserved, "polls_per_s",
		number(row->polls), "polls_per_s_max", number(row->polls_max), "mbit_per_s",
		number(row->mbit), "wait_s", wait_of(&row->wait));
}

// Rows of a room, or (-1) of all; NULL when memory is short.
static json_t *rows_of(const struct result *r, const struct play *p, int room, uint32_t *step_s)
{
	struct result_rows rows;
	json_t *list = NULL;
	if (result_rows(r, p, room, RESULT_ROWS_MAX, &rows) == 0)
		list = json_array();
	for (uint32_t i = 0; list && i < rows.count; i++)
		json_array_append_new(list, row_of(&rows.at[i]));
	*step_s = rows.step_s;
	free(rows.at);
	return list;
}

static json_t *room_of(const struct result *r, const struct play *p, uint32_t index)
{
	const struct result_room *room = &r->rooms[index];
	uint32_t step_s;
	return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}",
		"name", room->name, "people", (json_int_t)room->people, "tickets",
		(json_int_t)room->tickets, "no_shows", (json_int_t)room->no_shows, "lapsed",
		(json_int_t)room->lapsed, "admitted", (json_int_t)room->admitted, "direct",
		(json_int_t)room->direct, "unserved", (json_int_t)room->unserved, "waiting_max",
		(json_int_t)room->waiting_max, "inside_max", (json_int_t)room->inside_max,
		"admitted_per_s", number(room->rate), "last_admitted_s",
		number(room->last_ms / 1000.0), "wait_s", wait_of(&room->wait), "rows",
		rows_of(r, p, (int)index, &step_s));
}

static json_t *needs_of(const struct result *r)
{
	static const char *const names[] = {[RESULT_POLLS] = "polls_per_s",
		[RESULT_HANDSHAKES] = "handshakes_per_s",
		[RESULT_CONNECTIONS] = "connections",
		[RESULT_BANDWIDTH] = "mbit_per_s"};
	const struct plan_appliance *each = r->plan->appliance;
	json_t *needs = json_object();
	for (uint32_t i = 0; i < RESULT_LOAD_COUNT; i++) {
		const struct result_need *need = &r->needs[i];
		json_object_set_new(needs, names[i],
			json_pack("{s:o, s:I, s:o, s:I}", "peak", number(need->peak), "at_s",
				(json_int_t)need->at_s, "each", number(need->each), "appliances",
				(json_int_t)need->appliances));
	}
	return json_pack("{s:I, s:I, s:b, s:o}", "needed", (json_int_t)r->needed, "with_spare",
		(json_int_t)(r->needed + each->spare), "enough", r->is_enough, "loads", needs);
}

int report_json(const struct result *r, const struct play *p, FILE *out)
{
	uint32_t step_s = 0;
	json_t *rooms = json_array(), *rows = rows_of(r, p, -1, &step_s);
	for (uint32_t i = 0; i < r->room_count; i++)
		json_array_append_new(rooms, room_of(r, p, i));
	json_t *all = json_pack("{s:s, s:I, s:I, s:b, s:I, s:o, s:o, s:o, s:{s:I, s:I}}", "title",
		r->plan->title, "seed", (json_int_t)r->seed, "lasted_s", (json_int_t)r->lasted_s,
		"cut", r->is_cut, "step_s", (json_int_t)step_s, "rows", rows, "rooms", rooms,
		"appliances", needs_of(r), "bytes", "poll", (json_int_t)r->sizes.poll, "page",
		(json_int_t)r->sizes.page);
	if (!all)
		return -ENOMEM;
	json_dumpf(all, out, JSON_INDENT(2));
	fputc('\n', out);
	json_decref(all);
	return 0;
}
