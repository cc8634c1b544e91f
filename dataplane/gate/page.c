// Rendering the queue page: copy a piece, fill a slot, and so on to the end.
//
// The static text was encoded when the page was compiled; only gzip needs something of the whole
// answer, its CRC-32, which is put together from those of the pieces and of the slots as filled.
// The wait in words must agree with wait() of controlplane/pages/queue.js, which goes on where the
// page was rendered.

#include "dataplane/gate/page.h"

#include "dataplane/gate/rooms.h"
#include "dataplane/gate/writer.h"

#include <zlib.h>

#define DAY_S 86400u
#define PROGRESS_MAX 1000u
#define GZIP_TRAILER_BYTES 8u // CRC-32 and length, little-endian

static void fill_slot(struct writer *w, enum page_slot slot, const struct page_phrases *phrases,
	const struct status *status, const struct gate_room *room);

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

uint32_t page_body_bytes(
	const struct page *page, enum accept_language language, enum accept_encoding encoding)
{
	assert(language < PAGE_LANGUAGES);
	assert(encoding < PAGE_ENCODINGS);
	return page->texts[language].variants[encoding].body_bytes;
}

static void put_little_endian(struct writer *w, uint32_t n)
{
	for (unsigned shift = 0; shift < 32; shift += 8)
		writer_char(w, (char)(n >> shift));
}

size_t page_render(const struct page *page, enum accept_language language,
	enum accept_encoding encoding, const struct status *status, const struct gate_room *room,
	char *out)
{
	struct writer w = {out, out + page_body_bytes(page, language, encoding)};
	const struct page_text *text = &page->texts[language];
	const struct page_variant *variant = &text->variants[encoding];
	uint32_t crc = 0;
	for (uint32_t i = 0; i < variant->piece_count; i++) {
		const struct page_piece *piece = &variant->pieces[i];
		writer_span(&w, (struct span){piece->bytes, piece->bytes_len});
		struct writer slot = {w.at, w.at + page_slot_width(piece->slot)};
		assert(slot.end <= w.end);
		fill_slot(&slot, piece->slot, text->phrases, status, room);
		writer_pad(&slot);
		if (encoding == ACCEPT_GZIP) {
			crc = (uint32_t)crc32_combine_op(crc, piece->crc, piece->crc_op);
			crc = (uint32_t)crc32_z(
				crc, (const Bytef *)w.at, (size_t)(slot.end - w.at));
		}
		w.at = slot.end;
	}
	if (encoding == ACCEPT_GZIP) {
		put_little_endian(&w, crc);
		put_little_endian(&w, variant->identity_bytes);
	}
	assert(w.at == w.end);
	return (size_t)(w.at - out);
}

static void put_or_dash(struct writer *w, uint64_t n)
{
	if (n == STATUS_UNKNOWN)
		writer_span(w, SPAN("–"));
	else
		writer_grouped(w, n, 3);
}

static void put_title(
	struct writer *w, const struct page_phrases *phrases, const struct status *status)
{
	if (status->state == STATUS_waiting) {
		put_or_dash(w, status->position);
		writer_span(w, SPAN(" · "));
	}
	writer_span(w, phrases->titles[status->state]);
}

// `number` halves, as in 1.5.
static void put_halves(struct writer *w, uint64_t number)
{
	writer_number(w, number / 2);
	if (number % 2 != 0)
		writer_span(w, SPAN(".5"));
}

static void put_pattern(
	struct writer *w, struct span pattern, uint64_t low, uint64_t high, bool halves)
{
	uint64_t number = low;
	for (size_t i = 0; i < pattern.len; i++) {
		if (pattern.at[i] != '#') {
			writer_char(w, pattern.at[i]);
			continue;
		}
		if (halves)
			put_halves(w, number);
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
	put_pattern(w, pattern, low, high > low ? high : low + 1, unit_s == 1800);
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

static void fill_slot(struct writer *w, enum page_slot slot, const struct page_phrases *phrases,
	const struct status *status, const struct gate_room *room)
{
	switch (slot) {
	case PAGE_SLOT_title:
		return put_title(w, phrases, status);
	case PAGE_SLOT_refresh:
	case PAGE_SLOT_poll:
		return writer_number(w, status->poll_after);
	case PAGE_SLOT_state:
		return writer_span(w, status_word(status->state));
	case PAGE_SLOT_room:
		return writer_span(w, room->name);
	case PAGE_SLOT_place:
		return put_or_dash(w, status->position);
	case PAGE_SLOT_progress:
		assert(status->progress <= PROGRESS_MAX);
		return writer_number(w, status->progress);
	case PAGE_SLOT_ahead:
		return put_or_dash(w, status->ahead);
	case PAGE_SLOT_wait:
		return put_wait(w, phrases, status->eta_low, status->eta_high);
	case PAGE_SLOT_note:
		return writer_span(w, room->message_html.len > 0 ? SPAN("") : SPAN("hidden"));
	case PAGE_SLOT_message:
		return writer_span(w, room->message_html);
	case PAGE_SLOT_time:
		return put_time(w, status->now);
	case PAGE_SLOT_opens:
		return writer_number(w, status->opens);
	case PAGE_SLOT_now:
		return writer_number(w, (uint32_t)status->now); // 32 bits in tokens too
	case PAGE_SLOT_countdown:
		return put_countdown(w, status);
	case PAGE_SLOT_NONE:
	case PAGE_SLOT_COUNT:
		return;
	}
}
