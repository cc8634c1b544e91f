// Panels stand below each other over one axis of time. Each has a scale with round steps, at most
// four lines, told apart by colour and by dashes, and a legend beside its heading. Colours come
// from the style sheet in the file, which asks for the reader's preference; they keep their
// contrast for the colour-blind.

#include "controlplane/simulate/plot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 960.0
#define LEFT 84.0
#define RIGHT 24.0
#define HEAD 74.0 // above the first panel
#define PANEL 190.0 // height of a panel, with its heading and the space below
#define PLOT 128.0 // of its area
#define FOOT 40.0 // below the last, for the axis of time
#define LINES_MAX 6u // of a panel

enum unit {
	UNIT_COUNT,
	UNIT_TIME, // s
};

struct line {
	const char *name;
	const struct result_rows *rows;
	double (*value)(const struct result_row *row);
};

struct panel {
	const char *heading;
	enum unit unit;
	uint32_t line_count;
	struct line lines[LINES_MAX];
};

struct plot {
	const struct result *result;
	const struct play *play;
	struct result_rows all, rooms[LINES_MAX];
	double seconds; // that the axis is long
	double top; // of the panel's area
	FILE *out;
};

static const char style[] =
	"<style>\n"
	"svg{--ink:#1c2430;--soft:#5b6675;--grid:#dde2e8;--paper:#fff;"
	"--c0:#0a5fb4;--c1:#b8500a;--c2:#0c7a5b;--c3:#86459c;--c4:#a3243b;--c5:#5f6b00}\n"
	"@media (prefers-color-scheme:dark){svg{--ink:#e8ecf1;--soft:#a3adba;--grid:#333c48;"
	"--paper:#14191f;--c0:#6cb2ff;--c1:#ffac5f;--c2:#4ed3a6;--c3:#d6a2ee;--c4:#ff8a9b;"
	"--c5:#cdd65a}}\n"
	"svg{background:var(--paper)}\n"
	"text{font:12px system-ui,sans-serif;fill:var(--soft);font-variant-numeric:tabular-nums}\n"
	".title{font-size:19px;font-weight:600;fill:var(--ink)}\n"
	".heading{font-size:13px;font-weight:600;fill:var(--ink)}\n"
	".right{text-anchor:end}.middle{text-anchor:middle}\n"
	".grid{stroke:var(--grid)}.axis{stroke:var(--soft)}\n"
	".door{stroke:var(--soft);stroke-dasharray:2 4}\n"
	".halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px}\n"
	".line{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
	".c0{stroke:var(--c0)}.c1{stroke:var(--c1);stroke-dasharray:9 4}"
	".c2{stroke:var(--c2);stroke-dasharray:3 4}.c3{stroke:var(--c3);stroke-dasharray:12 4 2 4}"
	".c4{stroke:var(--c4)}.c5{stroke:var(--c5);stroke-dasharray:6 3}\n"
	"</style>\n";

static void escape(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

// --- scales

static double x_of(const struct plot *g, double seconds)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * seconds / g->seconds;
}

static double y_of(const struct plot *g, double value, double most)
{
	return g->top + PLOT * (1 - value / most);
}

// The least round step of which `count` reach `most`.
static double round_step(double most, enum unit unit, double count)
{
	static const double times[] = {1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600,
		7200, 10800, 21600, 43200, 86400};
	static const double digits[] = {1, 2, 2.5, 5, 10};
	for (size_t i = 0; unit == UNIT_TIME && i < sizeof(times) / sizeof(times[0]); i++)
		if (times[i] * count >= most)
			return times[i];
	const double least = most / count;
	const double power = pow(10, floor(log10(least)));
	for (size_t i = 0;; i++)
		if (digits[i] * power >= least * (1 - 1e-9))
			return digits[i] * power;
}

static void print_value(double value, enum unit unit, FILE *out)
{
	const uint32_t whole = (uint32_t)value;
	if (value == 0)
		fputc('0', out);
	else if (unit == UNIT_TIME && whole >= 3600)
		fprintf(out, whole % 3600 ? "%u:%02u h" : "%u h", whole / 3600, whole / 60 % 60);
	else if (unit == UNIT_TIME && whole >= 60)
		fprintf(out, "%g min", value / 60);
	else if (unit == UNIT_TIME)
		fprintf(out, "%g s", value);
	else if (value >= 1e6)
		fprintf(out, "%g M", value / 1e6);
	else if (value >= 1e3)
		fprintf(out, "%g k", value / 1e3);
	else
		fprintf(out, "%g", value);
}

static double most_of(const struct panel *panel)
{
	double most = 0;
	for (uint32_t i = 0; i < panel->line_count; i++) {
		const struct line *line = &panel->lines[i];
		for (uint32_t j = 0; j < line->rows->count; j++)
			most = fmax(most, line->value(&line->rows->at[j]));
	}
	return most > 0 ? most : 1;
}

// --- a panel

static void draw_grid(const struct plot *g, double most, double step, enum unit unit)
{
	for (double value = 0; value <= most * (1 + 1e-9); value += step) {
		const double y = y_of(g, value, most);
		fprintf(g->out,
			"<path class=\"%s\" d=\"M%.1f %.1fH%.1f\"/>"
			"<text class=\"right\" x=\"%.1f\" y=\"%.1f\">",
			value == 0 ? "axis" : "grid", LEFT, y, WIDTH - RIGHT, LEFT - 8, y + 4);
		print_value(value, unit, g->out);
		fputs("</text>\n", g->out);
	}
}

static void draw_doors(const struct plot *g, bool is_labelled)
{
	for (uint32_t i = 0; i < g->play->room_count; i++) {
		const double opens_s = g->play->rooms[i].opens_ms / 1000.0;
		if (opens_s == 0 || opens_s > g->seconds)
			continue;
		fprintf(g->out, "<path class=\"door\" d=\"M%.1f %.1fv%.1f\"/>\n", x_of(g, opens_s),
			g->top, PLOT);
		if (!is_labelled)
			continue;
		// Of several rooms one above the other.
		fprintf(g->out, "<text class=\"halo\" x=\"%.1f\" y=\"%.1f\">", x_of(g, opens_s) + 6,
			g->top + PLOT - 8 - 16 * (i % 6));
		if (g->play->room_count > 1)
			escape(g->result->rooms[i].name, g->out);
		fprintf(g->out, "%s</text>\n", g->play->room_count > 1 ? ": open" : "doors open");
	}
}

// A stretch's value stands at its middle; where there is none the line is broken.
static void draw_line(const struct plot *g, const struct line *line, uint32_t colour, double most)
{
	bool is_down = false;
	fprintf(g->out, "<path class=\"line c%u\" d=\"", colour);
	for (uint32_t i = 0; i < line->rows->count; i++) {
		const struct result_row *row = &line->rows->at[i];
		const double value = line->value(row);
		const double middle = row->from_s + row->length_s / 2.0;
		if (!isnan(value))
			fprintf(g->out, "%c%.1f %.1f", is_down ? 'L' : 'M', x_of(g, middle),
				y_of(g, value, most));
		is_down = !isnan(value);
	}
	fputs("\"/>\n", g->out);
}

static void draw_legend(const struct plot *g, const struct panel *panel)
{
	double x = WIDTH - RIGHT;
	if (panel->line_count == 1)
		return; // the heading says it
	for (uint32_t i = panel->line_count; i-- > 0;) {
		const char *name = panel->lines[i].name;
		x -= 7.0 * (double)strlen(name);
		fprintf(g->out, "<text x=\"%.1f\" y=\"%.1f\">", x, g->top - 12);
		escape(name, g->out);
		fprintf(g->out, "</text><path class=\"line c%u\" d=\"M%.1f %.1fh26\"/>\n", i,
			x - 32, g->top - 16);
		x -= 52;
	}
}

static void draw_panel(struct plot *g, const struct panel *panel, uint32_t index)
{
	const double peak = most_of(panel), step = round_step(peak, panel->unit, 4);
	const double most = step * ceil(peak / step);
	g->top = HEAD + PANEL * index + 24;
	fprintf(g->out, "<text class=\"heading\" x=\"%.1f\" y=\"%.1f\">", LEFT, g->top - 12);
	escape(panel->heading, g->out);
	fputs("</text>\n", g->out);
	draw_legend(g, panel);
	draw_grid(g, most, step, panel->unit);
	for (uint32_t i = 0; i < panel->line_count; i++)
		draw_line(g, &panel->lines[i], i, most);
	draw_doors(g, panel->unit == UNIT_TIME);
}

// --- what the panels show

static double waiting(const struct result_row *row)
{
	return row->waiting;
}

static double inside(const struct result_row *row)
{
	return row->inside;
}

static double came(const struct result_row *row)
{
	return (double)row->came / row->length_s;
}

static double admitted(const struct result_row *row)
{
	return (double)row->admitted / row->length_s;
}

static double polls(const struct result_row *row)
{
	return row->polls;
}

static double mbit(const struct result_row *row)
{
	return row->mbit;
}

static double p50(const struct result_row *row)
{
	return row->wait.p50;
}

static double p90(const struct result_row *row)
{
	return row->wait.p90;
}

static double p99(const struct result_row *row)
{
	return row->wait.p99;
}

static uint32_t rooms_shown(const struct plot *g)
{
	return g->play->room_count < LINES_MAX ? g->play->room_count : LINES_MAX;
}

// The same of every room.
static struct panel of_rooms(const struct plot *g, const char *heading, enum unit unit,
	double (*value)(const struct result_row *row))
{
	struct panel panel = {heading, unit, rooms_shown(g), {{0}}};
	for (uint32_t i = 0; i < panel.line_count; i++)
		panel.lines[i] = (struct line){g->result->rooms[i].name, &g->rooms[i], value};
	return panel;
}

static void draw_panels(struct plot *g)
{
	const struct result_rows *all = &g->all;
	const bool is_one = g->play->room_count == 1;
	const struct panel panels[] = {
		is_one ? (struct panel){"People", UNIT_COUNT, 2,
				 {{"waiting", all, waiting}, {"inside", all, inside}}}
		       : of_rooms(g, "People waiting", UNIT_COUNT, waiting),
		is_one ? (struct panel){"Wait of those who come at this time", UNIT_TIME, 3,
				 {{"99 of 100, up to", all, p99}, {"90 of 100", all, p90},
					 {"half", all, p50}}}
		       : of_rooms(g, "Wait of those who come at this time: half, up to", UNIT_TIME,
				 p50),
		{"People a second", UNIT_COUNT, 2,
			{{"come", all, came}, {"admitted", all, admitted}}},
		{"Polls and queue pages a second", UNIT_COUNT, 1, {{"requests", all, polls}}},
		{"Sent, Mbit/s", UNIT_COUNT, 1, {{"Mbit/s", all, mbit}}},
	};
	for (uint32_t i = 0; i < sizeof(panels) / sizeof(panels[0]); i++)
		draw_panel(g, &panels[i], i);
}

#define PANELS 5

static void draw_times(const struct plot *g)
{
	const double step = round_step(g->seconds, UNIT_TIME, 12);
	for (double at = 0; at <= g->seconds; at += step) {
		fprintf(g->out, "<text class=\"middle\" x=\"%.1f\" y=\"%.1f\">%u:%02u%s",
			x_of(g, at), g->top + PLOT + 20, (uint32_t)at / 3600,
			(uint32_t)at / 60 % 60, step < 60 ? "" : "</text>\n");
		if (step < 60)
			fprintf(g->out, ":%02u</text>\n", (uint32_t)at % 60);
	}
}

static void draw_title(const struct plot *g)
{
	const struct result *r = g->result;
	char text[RESULT_TEXT_BYTES];
	uint64_t people = 0;
	for (uint32_t i = 0; i < r->room_count; i++)
		people += r->rooms[i].people;
	fprintf(g->out, "<text class=\"title\" x=\"%.1f\" y=\"34\">", LEFT);
	escape(r->plan->title, g->out);
	fprintf(g->out,
		"</text>\n<text x=\"%.1f\" y=\"56\">%s people come; %u appliance%s needed, %lu to "
		"spare; hours and minutes from the plan's beginning; seed %lu</text>\n",
		LEFT, result_number((double)people, text), r->needed, r->needed == 1 ? "" : "s",
		r->plan->appliance->spare, r->seed);
}

static int gather_rows(struct plot *g)
{
	int ret = result_rows(g->result, g->play, -1, RESULT_ROWS_MAX, &g->all);
	for (uint32_t i = 0; ret == 0 && i < rooms_shown(g); i++)
		ret = result_rows(g->result, g->play, (int)i, RESULT_ROWS_MAX, &g->rooms[i]);
	return ret;
}

int plot_write(const struct result *r, const struct play *p, FILE *out)
{
	struct plot g = {.result = r, .play = p, .out = out, .seconds = r->lasted_s};
	int ret = gather_rows(&g);
	if (ret == 0) {
		const double height = HEAD + PANELS * PANEL + FOOT - 20;
		fprintf(out,
			"<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
			"width=\"%.0f\" height=\"%.0f\" role=\"img\">\n<title>",
			WIDTH, height, WIDTH, height);
		escape(r->plan->title, out);
		fprintf(out, "</title>\n%s", style);
		draw_title(&g);
		draw_panels(&g);
		draw_times(&g);
		fputs("</svg>\n", out);
	}
	free(g.all.at);
	for (uint32_t i = 0; i < LINES_MAX; i++)
		free(g.rooms[i].at);
	return ret;
}
