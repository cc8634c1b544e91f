// Rendering a page: copy a piece, fill a slot, and so on to the end.
//
// The static text was encoded when the page was compiled; only gzip needs something of the whole
// answer, its CRC-32, which is put together from those of the pieces and of the slots as filled.
// The wait in words must agree with wait() of controlplane/pages/queue.js, which goes on where the
// page was rendered.

#include "dataplane/gate/page.h"

#include "dataplane/gate/code.h"
#include "dataplane/gate/rooms.h"
#include "dataplane/gate/writer.h"

#include <zlib.h>

#define DAY_S 86400u
#define PROGRESS_MAX 1000u
#define GZIP_TRAILER_BYTES 8u // CRC-32 and length, little-endian

static void fill_slot(struct writer *w, enum page_slot slot, const struct page_phrases *phrases,
	const struct page_view *view);

static const uint16_t widths[] = {
#define X(name, width, text) [PAGE_SLOT_##name] = width,
	PAGE_SLOTS(X)
#undef X
};

uint32_t page_slot_width(enum page_slot slot)
{
	assert(slot < PAGE_SLOT_COUNT);
	return widths[slot];
}

struct span page_kind_word(enum page_kind kind)
{
	static const struct span more[] = {
#define X(name) [PAGE_##name - STATUS_STATE_COUNT] = {#name, sizeof(#name) - 1},
		PAGE_MORE_KINDS(X)
#undef X
	};
	assert(kind < PAGE_KIND_COUNT);
	return kind <= PAGE_LAST_STATE ? status_word((enum status_state)kind)
				       : more[kind - STATUS_STATE_COUNT];
}

// What was wrong with a code, as a bit; what no page of ours can send is wrong in the same way.
static uint32_t condition_of_code(uint8_t outcome)
{
	static const uint32_t conditions[CODE_OUTCOME_COUNT] = {
		[CODE_invalid] = 1u << PAGE_HAS_code_invalid,
		[CODE_long] = 1u << PAGE_HAS_code_invalid,
		[CODE_unsized] = 1u << PAGE_HAS_code_invalid,
		[CODE_unknown] = 1u << PAGE_HAS_code_unknown,
		[CODE_spent] = 1u << PAGE_HAS_code_spent,
		[CODE_guarded] = 1u << PAGE_HAS_code_guarded};
	assert(outcome < CODE_OUTCOME_COUNT);
	return conditions[outcome];
}

// The conditions that hold, a bit each.
static uint32_t conditions_of(const struct page_view *view)
{
	const struct status *status = view->status;
	const uint32_t one = 1;
	return one << view->kind |
	       (status->position != STATUS_UNKNOWN) * (one << PAGE_HAS_position) |
	       (status->ahead != STATUS_UNKNOWN) * (one << PAGE_HAS_ahead) |
	       (status->eta_high != STATUS_UNKNOWN) * (one << PAGE_HAS_wait) |
	       status->exact * (one << PAGE_HAS_exact) |
	       (view->room && view->room->message_html.len > 0) * (one << PAGE_HAS_message) |
	       (status->opens != 0) * (one << PAGE_HAS_opens) |
	       (status->expires != 0) * (one << PAGE_HAS_expires) |
	       (view->room && view->room->takes_codes) * (one << PAGE_HAS_codes) |
	       condition_of_code(view->outcome) |
	       (status->opens != 0 && view->room && !view->room->has_salt) *
		       (one << PAGE_HAS_unsalted);
}

static bool is_shown(const struct page_piece *blank, uint32_t conditions)
{
	return ((conditions & blank->condition) != 0) != blank->is_inverse;
}

uint32_t page_body_bytes(
	const struct page *page, enum accept_encoding encoding, const struct page_view *view)
{
	assert(encoding < PAGE_ENCODINGS);
	const struct page_piece *pieces = page->pieces[encoding];
	const uint32_t conditions = conditions_of(view);
	uint32_t bytes = encoding == ACCEPT_GZIP ? GZIP_TRAILER_BYTES : 0;
	for (uint32_t i = 0, next; i < page->piece_count; i = next) {
		next = i + 1;
		if (pieces[i].condition != 0 && is_shown(&pieces[i], conditions))
			continue;
		bytes += pieces[i].bytes_len + page_slot_width(pieces[i].slot);
		if (pieces[i].condition != 0)
			next = pieces[i].next;
	}
	return bytes;
}

static void put_little_endian(struct writer *w, uint32_t n)
{
	for (unsigned shift = 0; shift < 32; shift += 8)
		writer_char(w, (char)(n >> shift));
}

// Fill a slot up. A browser shows a space for many, but nothing for a comment.
static void pad(struct writer *slot, bool is_text)
{
	const struct span begin = SPAN("<!--"), end = SPAN("-->");
	const size_t left = (size_t)(slot->end - slot->at);
	if (!is_text || left < begin.len + end.len) {
		writer_pad(slot);
		return;
	}
	writer_span(slot, begin);
	memset(slot->at, ' ', left - begin.len - end.len);
	slot->at += left - begin.len - end.len;
	writer_span(slot, end);
}

// Append a piece and the slot after it. Returns the CRC-32 of all so far, of gzip.
static uint32_t put_piece(struct writer *w, const struct page *page, const struct page_piece *piece,
	const struct page_view *view, bool has_crc, uint32_t crc)
{
	writer_span(w, (struct span){piece->bytes, piece->bytes_len});
	struct writer slot = {w->at, w->at + page_slot_width(piece->slot)};
	assert(slot.end <= w->end);
	fill_slot(&slot, piece->slot, page->phrases, view);
	pad(&slot, piece->is_text);
	if (has_crc) {
		crc = (uint32_t)crc32_combine_op(crc, piece->crc, piece->crc_op);
		crc = (uint32_t)crc32_z(crc, (const Bytef *)w->at, (size_t)(slot.end - w->at));
	}
	w->at = slot.end;
	return crc;
}

size_t page_render(const struct page *page, enum accept_encoding encoding,
	const struct page_view *view, char *out)
{
	struct writer w = {out, out + page_body_bytes(page, encoding, view)};
	const struct page_piece *pieces = page->pieces[encoding];
	const uint32_t conditions = conditions_of(view);
	uint32_t crc = 0;
	for (uint32_t i = 0, next; i < page->piece_count; i = next) {
		next = i + 1;
		if (pieces[i].condition != 0 && is_shown(&pieces[i], conditions))
			continue;
		crc = put_piece(&w, page, &pieces[i], view, encoding == ACCEPT_GZIP, crc);
		if (pieces[i].condition != 0)
			next = pieces[i].next;
	}
	if (encoding == ACCEPT_GZIP) {
		put_little_endian(&w, crc);
		put_little_endian(&w, page->identity_bytes);
	}
	assert(w.at == w.end);
	return (size_t)(w.at - out);
}

static void put_or_dash(struct writer *w, const struct page_phrases *phrases, uint64_t n)
{
	if (n == STATUS_UNKNOWN)
		writer_span(w, SPAN("–"));
	else
		writer_grouped(w, n, phrases->group);
}

static void put_title(
	struct writer *w, const struct page_phrases *phrases, const struct page_view *view)
{
	if (view->kind == STATUS_waiting) {
		put_or_dash(w, phrases, view->status->position);
		writer_span(w, SPAN(" · "));
	}
	writer_span(w, phrases->titles[view->kind]);
}

// `number` halves, as in 1.5.
static void put_halves(struct writer *w, struct span point, uint64_t number)
{
	writer_number(w, number / 2);
	if (number % 2 != 0) {
		writer_span(w, point);
		writer_char(w, '5');
	}
}

// `point`: low and high are halves; NULL: they are whole.
static void put_pattern(struct writer *w, struct span pattern, uint64_t low, uint64_t high,
	const struct span *point)
{
	uint64_t number = low;
	for (size_t i = 0; i < pattern.len; i++) {
		if (pattern.at[i] != '#') {
			writer_char(w, pattern.at[i]);
			continue;
		}
		if (point)
			put_halves(w, *point, number);
		else
			writer_number(w, number);
		number = high;
	}
}

// A range in the unit that fits its end: minutes up to an hour and a half, half hours up to a day
// and a half, days. The range is never empty: an estimate is not a promise.
static void put_wait(
	struct writer *w, const struct page_phrases *phrases, uint64_t low_s, uint64_t high_s)
{
	if (high_s == STATUS_UNKNOWN) {
		writer_span(w, phrases->wait_unknown);
		return;
	}
	if (high_s < 60) {
		writer_span(w, phrases->wait_soon);
		return;
	}
	struct span pattern = phrases->wait_days;
	uint64_t unit_s = DAY_S;
	if (high_s <= 5400) {
		pattern = phrases->wait_minutes;
		unit_s = 60;
	} else if (high_s <= DAY_S * 3 / 2) {
		pattern = phrases->wait_hours;
		unit_s = 1800;
	}
	uint64_t low = low_s < unit_s ? 1 : low_s / unit_s;
	uint64_t high = high_s / unit_s + (high_s % unit_s != 0);
	put_pattern(w, pattern, low, high > low ? high : low + 1,
		unit_s == 1800 ? &phrases->point : NULL);
}

static void put_two_digits(struct writer *w, uint64_t n)
{
	writer_char(w, (char)('0' + n / 10));
	writer_char(w, (char)('0' + n % 10));
}

static void put_time(struct writer *w, uint64_t now)
{
	uint64_t second = now % DAY_S;
	put_two_digits(w, second / 3600);
	writer_char(w, ':');
	put_two_digits(w, second / 60 % 60);
	writer_char(w, ':');
	put_two_digits(w, second % 60);
	writer_span(w, SPAN(" UTC"));
}

// Hours, minutes and seconds, as countdown() of queue.js has them; a week is far away enough.
static void put_countdown(struct writer *w, const struct status *status)
{
	uint64_t left = status->opens > status->now ? status->opens - status->now : 0;
	writer_number(w, left / 3600);
	writer_char(w, ':');
	put_two_digits(w, left / 60 % 60);
	writer_char(w, ':');
	put_two_digits(w, left % 60);
}

static void put_unless_unknown(struct writer *w, uint64_t n)
{
	if (n != STATUS_UNKNOWN)
		writer_number(w, n);
}

static void fill_slot(struct writer *w, enum page_slot slot, const struct page_phrases *phrases,
	const struct page_view *view)
{
	const struct status *status = view->status;
	switch (slot) {
	case PAGE_SLOT_title:
		return put_title(w, phrases, view);
	case PAGE_SLOT_state:
		return writer_span(w, page_kind_word(view->kind));
	case PAGE_SLOT_room:
		return writer_span(w, view->room ? view->room->name : SPAN(""));
	case PAGE_SLOT_site:
		return writer_span(w, view->site ? view->site->name : SPAN(""));
	case PAGE_SLOT_position:
		return put_or_dash(w, phrases, status->position);
	case PAGE_SLOT_ahead:
		return put_or_dash(w, phrases, status->ahead);
	case PAGE_SLOT_wait:
		return put_wait(w, phrases, status->eta_low, status->eta_high);
	case PAGE_SLOT_eta_low:
		return put_unless_unknown(w, status->eta_low);
	case PAGE_SLOT_eta_high:
		return put_unless_unknown(w, status->eta_high);
	case PAGE_SLOT_progress:
		assert(status->progress <= PROGRESS_MAX);
		return writer_number(w, status->progress);
	case PAGE_SLOT_poll_after:
		return writer_number(w, status->poll_after);
	case PAGE_SLOT_message:
		return writer_span(w, view->room ? view->room->message_html : SPAN(""));
	case PAGE_SLOT_time:
		return put_time(w, status->now);
	case PAGE_SLOT_opens:
		return writer_number(w, status->opens);
	case PAGE_SLOT_expires:
		return writer_number(w, status->expires);
	case PAGE_SLOT_now:
		return writer_number(w, (uint32_t)status->now); // 32 bits in tokens too
	case PAGE_SLOT_countdown:
		return put_countdown(w, status);
	case PAGE_SLOT_code:
		return writer_number(w, view->code);
	case PAGE_SLOT_once:
		return writer_hex16(w, view->once);
	case PAGE_SLOT_NONE:
	case PAGE_SLOT_COUNT:
		return;
	}
}
