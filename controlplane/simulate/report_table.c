// The table: one line says one thing, numbers stand to the right.

#include "controlplane/simulate/report.h"

#include <stdlib.h>
#include <string.h>

// Seconds of the plan as "1:02:03".
static const char *moment(uint32_t seconds, char text[RESULT_TEXT_BYTES])
{
	snprintf(text, RESULT_TEXT_BYTES, "%u:%02u:%02u", seconds / 3600, seconds / 60 % 60,
		seconds % 60);
	return text;
}

static void print_count(const char *name, double number, FILE *out)
{
	char text[RESULT_TEXT_BYTES];
	fprintf(out, "  %-18s %12s\n", name, result_number(number, text));
}

static void print_time(const char *name, double seconds, FILE *out)
{
	char text[RESULT_TEXT_BYTES];
	fprintf(out, "  %-18s %12s\n", name, result_time(seconds, text));
}

static void print_room(const struct result_room *room, FILE *out)
{
	char text[RESULT_TEXT_BYTES];
	fprintf(out, "\n%s\n", room->name);
	print_count("people came", room->people, out);
	print_count("drew a ticket", room->tickets, out);
	print_count("did not show", room->no_shows, out);
	print_count("admitted", room->admitted, out);
	print_count("without waiting", room->direct, out);
	if (room->unserved > 0)
		print_count("still waiting", room->unserved, out);
	print_count("waiting, at most", room->waiting_max, out);
	print_count("inside, at most", room->inside_max, out);
	fprintf(out, "  %-18s %12.1f\n", "admitted a second", room->rate);
	fprintf(out, "  %-18s %12s\n", "last admitted at", moment(room->last_ms / 1000, text));
	print_time("wait: half, up to", room->wait.p50, out);
	print_time("90 of 100, up to", room->wait.p90, out);
	print_time("99 of 100, up to", room->wait.p99, out);
	print_time("longest", room->wait.max, out);
}

static void print_row(const struct result_row *row, FILE *out)
{
	char from[RESULT_TEXT_BYTES], n[5][RESULT_TEXT_BYTES], w[3][RESULT_TEXT_BYTES];
	fprintf(out, "%8s %10s %10s %10s %10s %9s %8.1f  %9s %9s %9s%s\n",
		moment(row->from_s, from), result_number(row->came, n[0]),
		result_number(row->admitted, n[1]), result_number(row->waiting, n[2]),
		result_number(row->inside, n[3]), result_number(row->polls, n[4]), row->mbit,
		result_time(row->wait.p50, w[0]), result_time(row->wait.p90, w[1]),
		result_time(row->wait.p99, w[2]), row->unserved > 0 ? " *" : "");
}

static int print_rows(const struct result *r, const struct play *p, FILE *out)
{
	struct result_rows rows;
	bool has_unserved = false;
	int ret = result_rows(r, p, -1, RESULT_TABLE_ROWS_MAX, &rows);
	fprintf(out, "\n%8s %10s %10s %10s %10s %9s %8s  %9s %9s %9s\n", "from", "came", "admitted",
		"waiting", "inside", "polls/s", "Mbit/s", "wait p50", "p90", "p99");
	for (uint32_t i = 0; ret == 0 && i < rows.count; i++) {
		print_row(&rows.at[i], out);
		has_unserved |= rows.at[i].unserved > 0;
	}
	if (has_unserved)
		fputs("* some who came then were still waiting at the end: the others' waits\n",
			out);
	free(rows.at);
	return ret;
}

static void print_needs(const struct result *r, FILE *out)
{
	const struct plan_appliance *each = r->plan->appliance;
	char peak[RESULT_TEXT_BYTES], at[RESULT_TEXT_BYTES], carries[RESULT_TEXT_BYTES];
	fprintf(out, "\n%-16s %20s %10s %20s %11s\n", "load", "busiest second", "at", "one carries",
		"appliances");
	for (uint32_t i = 0; i < RESULT_LOAD_COUNT; i++) {
		const struct result_need *need = &r->needs[i];
		char with_unit[2][2 * RESULT_TEXT_BYTES];
		snprintf(with_unit[0], sizeof(with_unit[0]), "%s%s",
			result_number(need->peak, peak), need->unit);
		snprintf(with_unit[1], sizeof(with_unit[1]), "%s%s",
			result_number(need->each, carries), need->unit);
		fprintf(out, "%-16s %20s %10s %20s %11u\n", need->name, with_unit[0],
			moment(need->at_s, at), with_unit[1], need->appliances);
	}
	fprintf(out, "Appliances needed: %u, and %lu to spare: %u.", r->needed, each->spare,
		r->with_spare);
	if (each->count > 0)
		fprintf(out, " The plan has %lu: %s.", each->count,
			r->is_enough ? "enough" : "too few");
	fprintf(out, "\nAn answer to a poll has %u bytes, a queue page %u (HTTP).\n", r->sizes.poll,
		r->sizes.page);
}

int report_table(const struct result *r, const struct play *p, FILE *out)
{
	char text[RESULT_TEXT_BYTES];
	fprintf(out, "%s\n", r->plan->title);
	fprintf(out, "seed %lu; played %s\n", r->seed, moment(r->lasted_s, text));
	int ret = print_rows(r, p, out);
	for (uint32_t i = 0; i < r->room_count; i++)
		print_room(&r->rooms[i], out);
	print_needs(r, out);
	return ret;
}
