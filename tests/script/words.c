// Words. A segment is read by one table of words; what the script leaves out is what a peer that
// knows the flow would send: the next sequence number, all acknowledged, its clock as timestamp.

#include "tests/script/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64240u // that peers have if a script does not say

void words_split(struct words *w, const char *line)
{
	*w = (struct words){0};
	snprintf(w->text, sizeof(w->text), "%s", line);
	char *comment = strstr(w->text, "//");
	if (comment)
		*comment = '\0';
	char *at = w->text;
	for (char *word; (word = strsep(&at, " \t\r\n")) != NULL;)
		if (*word && w->count < WORDS_MAX)
			w->word[w->count++] = word;
}

const char *words_next(struct words *w)
{
	return w->at < w->count ? w->word[w->at++] : NULL;
}

bool words_take(struct words *w, const char *word)
{
	if (w->at == w->count || strcmp(w->word[w->at], word) != 0)
		return false;
	w->at++;
	return true;
}

int64_t words_number(struct play *p, struct words *w)
{
	const char *word = words_next(w);
	char *end = NULL;
	const int64_t number = word ? strtoll(word, &end, 0) : 0;
	if (!word || *end)
		play_fail(p, "a number is wanted, not \"%s\"", word ? word : "nothing");
	return number;
}

uint64_t words_time(struct play *p, const char *word)
{
	char *unit;
	const double number = strtod(word, &unit);
	const double scale = strcmp(unit, "us") == 0   ? 1
			     : strcmp(unit, "ms") == 0 ? 1e3
			     : strcmp(unit, "s") == 0  ? 1e6
						       : 0;
	if (unit == word || scale == 0)
		play_fail(p, "\"%s\" is no time", word);
	return (uint64_t)(number * scale + 0.5);
}

// --- segments

// What is being read: bases of the numbers, and the words that were said.
struct reading {
	struct play *p;
	struct words *words;
	struct words_segment *s;
	uint32_t seq_base, ack_base;
	bool has_seq, has_ack, has_ts, has_no_ts;
	uint32_t window;
	size_t len;
};

static void read_sacks(struct reading *r)
{
	struct wire *wire = &r->s->wire;
	for (int from, to, end; r->words->at < r->words->count; r->words->at++) {
		const char *word = r->words->word[r->words->at];
		if (sscanf(word, "%d-%d%n", &from, &to, &end) < 2 || word[end])
			return;
		if (wire->sack_count == TCP_SACK_MAX)
			play_fail(r->p, "too many SACK blocks");
		wire->sacks[wire->sack_count++] =
			(struct tcp_sack){r->ack_base + (uint32_t)from, r->ack_base + (uint32_t)to};
	}
}

static void read_raw(struct reading *r)
{
	static char bytes[TCP_OPTIONS_MAX];
	size_t len = 0;
	for (unsigned byte; r->words->at < r->words->count && len < sizeof(bytes) &&
			    sscanf(r->words->word[r->words->at], "%x", &byte) == 1;
		r->words->at++)
		bytes[len++] = (char)byte;
	r->s->wire.raw = (struct span){bytes, len};
}

static bool read_flag(struct wire *wire, const char *word)
{
	static const char *const names[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG"};
	for (unsigned bit = 0; bit < 6; bit++)
		if (strcmp(word, names[bit]) == 0) {
			wire->flags |= (uint8_t)(1 << bit);
			wire->is_urgent |= bit == 5;
			return true;
		}
	return false;
}

static void read_window(struct reading *r)
{
	r->s->is_any_window = false;
	r->s->is_open_window = words_take(r->words, "open");
	if (!r->s->is_open_window)
		r->window = (uint32_t)words_number(r->p, r->words);
}

static uint32_t number(struct reading *r)
{
	return (uint32_t)words_number(r->p, r->words);
}

static bool read_number(struct reading *r, const char *word)
{
	struct wire *wire = &r->s->wire;
	if (strcmp(word, "seq") == 0) {
		r->has_seq = true;
		wire->seq = r->seq_base + number(r);
	} else if (strcmp(word, "ack") == 0) {
		r->has_ack = true;
		wire->ack = r->ack_base + number(r);
	} else if (strcmp(word, "len") == 0) {
		r->len = number(r);
	} else if (strcmp(word, "mss") == 0) {
		wire->has_mss = true;
		wire->mss = (uint16_t)number(r);
	} else if (strcmp(word, "wscale") == 0) {
		wire->has_scale = true;
		wire->scale = (uint8_t)number(r);
	} else if (strcmp(word, "ts") == 0) {
		r->has_ts = true;
		wire->ts_value = number(r);
	} else if (strcmp(word, "echo") == 0) {
		r->s->has_echo = true;
		wire->ts_echo = number(r);
	} else {
		return false;
	}
	return true;
}

static void read_word(struct reading *r, const char *word)
{
	struct wire *wire = &r->s->wire;
	if (read_flag(wire, word) || read_number(r, word))
		return;
	if (strcmp(word, "win") == 0)
		read_window(r);
	else if (strcmp(word, "sackok") == 0)
		wire->has_sack_permitted = true;
	else if (strcmp(word, "nots") == 0)
		r->has_no_ts = true;
	else if (strcmp(word, "sack") == 0)
		read_sacks(r);
	else if (strcmp(word, "raw") == 0)
		read_raw(r);
	else if (strcmp(word, "newer") == 0)
		r->s->is_newer = true;
	else if (word[0] == 'x' && word[1])
		r->s->count = (unsigned)strtoul(word + 1, NULL, 10);
	else
		play_fail(r->p, "\"%s\" is no word of a segment", word);
}

static void read_words(struct reading *r)
{
	*r->s = (struct words_segment){.is_any_window = true, .count = 1};
	for (const char *word; (word = words_next(r->words)) != NULL;)
		read_word(r, word);
	if (!r->has_ack && r->s->wire.flags & TCP_SYN && !(r->s->wire.flags & TCP_ACK))
		r->has_ack = true; // none
	r->s->wire.has_timestamp = r->has_ts;
}

static uint32_t scaled(uint32_t window, uint8_t scale)
{
	window >>= scale;
	return window > UINT16_MAX ? UINT16_MAX : window;
}

void words_of_peer(struct play *p, struct words *w, struct words_segment *s)
{
	static char bytes[WIRE_BYTES_MAX];
	struct play_flow *f = p->flow;
	if (words_take(w, "isn")) { // a connection begins: `isn` is said first
		f->peer_isn = (uint32_t)words_number(p, w);
		f->peer_next = 0;
	}
	struct reading r = {.p = p,
		.words = w,
		.s = s,
		.seq_base = f->peer_isn,
		.ack_base = f->our_isn,
		.window = WINDOW};
	read_words(&r);
	const bool is_syn = s->wire.flags & TCP_SYN;
	if (!r.has_seq)
		s->wire.seq = f->peer_isn + (is_syn ? 0 : f->peer_next);
	if (!r.has_ack && s->wire.flags & TCP_ACK)
		s->wire.ack = f->our_isn + f->our_next;
	if (is_syn && r.has_ts) {
		f->ts_first = s->wire.ts_value;
		f->ts_first_us = p->now_us;
	} else if (!r.has_ts && f->has_timestamps && !is_syn && !r.has_no_ts) {
		s->wire.has_timestamp = true;
		s->wire.ts_value = f->ts_first + (uint32_t)((p->now_us - f->ts_first_us) / 1000);
	}
	if (s->wire.has_timestamp && !is_syn)
		s->wire.ts_echo = s->has_echo ? f->ts_base + s->wire.ts_echo : f->ts_ours;
	if (is_syn && s->wire.has_scale)
		f->peer_scale = s->wire.scale > 14 ? 14 : s->wire.scale;
	const bool is_scaled = f->is_scaled && !is_syn;
	s->wire.window = (uint16_t)scaled(r.window, is_scaled ? f->peer_scale : 0);
	const uint32_t offset = s->wire.seq - f->peer_isn - (is_syn ? 0 : 1);
	wire_fill(2, offset, bytes, r.len);
	s->wire.payload = (struct span){bytes, r.len};
}

void words_of_us(struct play *p, struct words *w, struct words_segment *s)
{
	struct play_flow *f = p->flow;
	struct reading r = {
		.p = p, .words = w, .s = s, .seq_base = f->our_isn, .ack_base = f->peer_isn};
	read_words(&r);
	const bool is_syn = s->wire.flags & TCP_SYN;
	if (!r.has_seq)
		s->wire.seq = f->our_isn + (is_syn ? 0 : f->our_next);
	if (!r.has_ack && s->wire.flags & TCP_ACK)
		s->wire.ack = f->peer_isn + f->peer_next;
	s->wire.has_timestamp = r.has_ts || (f->has_timestamps && !is_syn && !r.has_no_ts &&
						    !(s->wire.flags & TCP_RST));
	const bool is_scaled = f->is_scaled && !is_syn;
	s->wire.window = (uint16_t)scaled(r.window, is_scaled ? f->our_scale : 0);
	s->wire.payload = (struct span){"", r.len};
}
