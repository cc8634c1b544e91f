// Replies: what the ledger answered, line by line.
//
// A reply that breaks a rule here is none: the caller sends its batch again, and says so. Nothing
// in it is trusted to be within bounds because our own script wrote it; somebody else may have
// written to that Redis.

#include "controlplane/cluster/ledger_wire.h"

#include <string.h>

#include "controlplane/cluster/ledger_field.h"

#define NUMBER_MAX LEDGER_FIELD_NUMBER_MAX

static bool read8(struct ledger_wire_reader *r, uint64_t max, uint8_t *value)
{
	uint64_t wide;
	if (!ledger_field_number(r, max, &wide))
		return false;
	*value = (uint8_t)wide;
	return true;
}

static bool read_number(struct ledger_wire_reader *r, uint64_t *value)
{
	return ledger_field_number(r, NUMBER_MAX, value);
}

static bool read_name(struct ledger_wire_reader *r, char name[LEDGER_NAME_MAX + 1])
{
	const char *text;
	size_t len;
	if (!ledger_field_text(r, &text, &len) || len == 0 || len > LEDGER_NAME_MAX)
		return false;
	memcpy(name, text, len);
	name[len] = '\0';
	const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	return strspn(name, letters) == len;
}

// Lines that are still to come, at most what a batch can ask for.
static bool read_counts(struct ledger_wire_reader *r, struct ledger_reply *reply)
{
	return ledger_field_number32(r, &reply->answer_count) &&
	       reply->answer_count <= LEDGER_ENTRIES_MAX &&
	       ledger_field_number32(r, &reply->member_count) &&
	       reply->member_count <= LEDGER_MEMBERS_MAX &&
	       ledger_field_number32(r, &reply->news_count) &&
	       reply->news_count <= LEDGER_NEWS_REPLY_MAX + LEDGER_READS_MAX * LEDGER_PAGE_MAX;
}

bool ledger_wire_reply(struct ledger_wire_reader *reader, const char *bytes, size_t len,
	struct ledger_reply *reply)
{
	*reader = (struct ledger_wire_reader){bytes, bytes + len};
	*reply = (struct ledger_reply){0};
	uint64_t version;
	return ledger_field_number(reader, NUMBER_MAX, &version) && version == LEDGER_VERSION &&
	       read8(reader, LEDGER_BATCH_VERDICTS - 1, &reply->verdict) && reply->verdict > 0 &&
	       ledger_field_flag(reader, &reply->is_skewed) &&
	       ledger_field_flag(reader, &reply->is_recovering) &&
	       ledger_field_flag(reader, &reply->is_resync) &&
	       read8(reader, LEDGER_MEMBERS_MAX, &reply->number) &&
	       read8(reader, LEDGER_MEMBERS_MAX, &reply->conductor) &&
	       read_number(reader, &reply->fence) && read_number(reader, &reply->epoch) &&
	       read_number(reader, &reply->writes) && read_number(reader, &reply->cursor) &&
	       read_number(reader, &reply->newest) && read_number(reader, &reply->time_ms) &&
	       read_number(reader, &reply->raw_ms) &&
	       ledger_field_signed(reader, &reply->correction_ms) &&
	       read_number(reader, &reply->final) && read_counts(reader, reply) &&
	       ledger_field_end(reader);
}

static bool read_words(struct ledger_wire_reader *r, struct ledger_words *words)
{
	return ledger_field_hex16(r, &words->wait_low) &&
	       ledger_field_hex16(r, &words->wait_high) &&
	       ledger_field_number32(r, &words->next_poll_after) &&
	       ledger_field_number32(r, &words->door_wait_ms) &&
	       ledger_field_number32(r, &words->open_count) && read_number(r, &words->at_ms) &&
	       ledger_field_number32(r, &words->called) && ledger_field_number32(r, &words->came) &&
	       ledger_field_number32(r, &words->expect_ms) &&
	       ledger_field_number32(r, &words->yield);
}

// A field of 16 digits for each of `count` words, at most `max`.
static bool read_hex16s(
	struct ledger_wire_reader *r, uint32_t max, uint64_t *words, uint32_t *count)
{
	const char *text;
	size_t len;
	if (!ledger_field_text(r, &text, &len) || len % 16 != 0 || len / 16 > max)
		return false;
	*count = (uint32_t)(len / 16);
	for (uint32_t i = 0; i < *count; i++) {
		struct ledger_wire_reader one = {text + 16 * i, text + 16 * i + 16};
		if (!ledger_field_hex16(&one, &words[i]))
			return false;
	}
	return true;
}

static bool read_view(struct ledger_wire_reader *r, struct ledger_view *view)
{
	return ledger_field_hex16(r, &view->threshold) && ledger_field_hex16(r, &view->floor) &&
	       ledger_field_hex16(r, &view->first_present) && read_number(r, &view->floor_rank) &&
	       read_number(r, &view->total) && ledger_field_number32(r, &view->present) &&
	       ledger_field_number32(r, &view->taken) && ledger_field_number32(r, &view->ending) &&
	       ledger_field_number32(r, &view->settled) && read_number(r, &view->came_total) &&
	       read_number(r, &view->admitted_total) && read_number(r, &view->direct_total) &&
	       read_number(r, &view->undone_total) && read_number(r, &view->ended_total) &&
	       read_number(r, &view->expired_total) && read_number(r, &view->lost) &&
	       ledger_field_number32(r, &view->people) && ledger_field_flag(r, &view->is_open) &&
	       ledger_field_flag(r, &view->is_conflict) && read_number(r, &view->threshold_rank) &&
	       ledger_field_hex16(r, &view->otherwise) && read_words(r, &view->words) &&
	       ledger_field_hex16(r, &view->first_held) &&
	       ledger_field_flag(r, &view->is_crowded) && ledger_field_number32(r, &view->rated) &&
	       ledger_field_number32(r, &view->all_left) &&
	       ledger_field_number32(r, &view->direct_left) &&
	       read_hex16s(r, LEDGER_CAME_MAX, view->came, &view->came_count);
}

static bool read_place(struct ledger_wire_reader *r, struct ledger_place *place)
{
	return ledger_field_hex16(r, &place->visitor) && ledger_field_hex16(r, &place->key) &&
	       ledger_field_flag(r, &place->is_gathered);
}

// What follows the verdict.
static bool read_verdict(struct ledger_wire_reader *r, struct ledger_answer *a)
{
	switch (a->verdict) {
	case LEDGER_GRANTED:
		if (a->kind == LEDGER_CODE)
			return read_place(r, &a->place);
		return (a->kind == LEDGER_CALLED || a->kind == LEDGER_DIRECT) &&
		       ledger_field_hex16(r, &a->session) && ledger_field_number32(r, &a->expires);
	case LEDGER_RENEWED:
		return a->kind == LEDGER_RENEW && ledger_field_hex16(r, &a->session) &&
		       ledger_field_number32(r, &a->expires);
	case LEDGER_NEXT:
		return a->kind == LEDGER_CALLED && ledger_field_number32(r, &a->poll_after) &&
		       a->poll_after > 0 && a->poll_after <= LEDGER_NEXT_MAX_S;
	case LEDGER_DONE:
		if (a->kind == LEDGER_VIEW)
			return read_view(r, &a->view);
		return a->kind != LEDGER_READ ||
		       (read_number(r, &a->next) && read_number(r, &a->total));
	default:
		return true;
	}
}

bool ledger_wire_answer(struct ledger_wire_reader *reader, struct ledger_answer *answer)
{
	*answer = (struct ledger_answer){0};
	return read8(reader, LEDGER_KINDS - 1, &answer->kind) && answer->kind > 0 &&
	       read8(reader, LEDGER_VERDICTS - 1, &answer->verdict) && answer->verdict > 0 &&
	       read_verdict(reader, answer) && ledger_field_end(reader);
}

bool ledger_wire_member(struct ledger_wire_reader *reader, struct ledger_member *member)
{
	*member = (struct ledger_member){0};
	return read8(reader, LEDGER_MEMBERS_MAX - 1, &member->number) &&
	       read_name(reader, member->name) && ledger_field_flag(reader, &member->is_live) &&
	       ledger_field_flag(reader, &member->is_restored) &&
	       read_number(reader, &member->closed) &&
	       ledger_field_flag(reader, &member->has_left) &&
	       read_number(reader, &member->applied) && ledger_field_end(reader);
}

// --- news

static bool read_ended(struct ledger_wire_reader *r, struct ledger_news *n)
{
	return ledger_field_hex8(r, &n->line) && ledger_field_hex16(r, &n->session) &&
	       ledger_field_number32(r, &n->expires);
}

static bool read_left(struct ledger_wire_reader *r, struct ledger_news *n)
{
	return ledger_field_hex8(r, &n->line) && ledger_field_hex16(r, &n->key) &&
	       ledger_field_hex16(r, &n->visitor);
}

static bool read_threshold(struct ledger_wire_reader *r, struct ledger_news *n)
{
	return ledger_field_hex8(r, &n->line) && ledger_field_hex16(r, &n->threshold) &&
	       ledger_field_hex16(r, &n->floor) && read_number(r, &n->floor_rank) &&
	       ledger_field_flag(r, &n->is_open) && read_number(r, &n->threshold_rank) &&
	       read_words(r, &n->words);
}

static bool read_slots(struct ledger_wire_reader *r, struct ledger_news *n)
{
	return ledger_field_hex8(r, &n->line) && read8(r, LEDGER_MEMBERS_MAX - 1, &n->member) &&
	       read_number(r, &n->total) && read_hex16s(r, LEDGER_SLOTS_MAX, n->held, &n->count);
}

static bool read_member(struct ledger_wire_reader *r, struct ledger_news *n)
{
	char name[LEDGER_NAME_MAX + 1];
	return read8(r, LEDGER_MEMBERS_MAX - 1, &n->member) && ledger_field_flag(r, &n->is_open) &&
	       read_name(r, name);
}

static bool read_conductor(struct ledger_wire_reader *r, struct ledger_news *n)
{
	return read8(r, LEDGER_MEMBERS_MAX - 1, &n->member) && read_number(r, &n->fence);
}

static bool read_record(struct ledger_wire_reader *r, struct ledger_news *n)
{
	const char *hex;
	size_t len;
	if (!read8(r, 15, &n->type) || !ledger_field_hex8(r, &n->id) ||
		!ledger_field_text(r, &hex, &len) || len > 2 * LEDGER_BLOB_MAX)
		return false;
	n->count = (uint32_t)(len / 2);
	return ledger_field_bytes(hex, len, n->bytes);
}

static bool read_gathered(struct ledger_wire_reader *r, struct ledger_news *n)
{
	return ledger_field_hex8(r, &n->line) && read_number(r, &n->gathering) &&
	       read_number(r, &n->from) && ledger_field_hex16(r, &n->whole) &&
	       read_hex16s(r, LEDGER_IDS_MAX, n->held, &n->count);
}

bool ledger_wire_news(struct ledger_wire_reader *reader, struct ledger_news *news)
{
	static bool (*const by_kind[])(struct ledger_wire_reader *, struct ledger_news *) = {
		[LEDGER_NEWS_ENDED] = read_ended,
		[LEDGER_NEWS_LEFT] = read_left,
		[LEDGER_NEWS_THRESHOLD] = read_threshold,
		[LEDGER_NEWS_SLOTS] = read_slots,
		[LEDGER_NEWS_MEMBER] = read_member,
		[LEDGER_NEWS_CONDUCTOR] = read_conductor,
		[LEDGER_NEWS_RECORD] = read_record,
		[LEDGER_NEWS_GATHERED] = read_gathered,
	};
	*news = (struct ledger_news){0};
	if (!read_number(reader, &news->number) || !read8(reader, UINT8_MAX, &news->kind) ||
		news->kind == 0)
		return false;
	if (news->kind >= LEDGER_NEWS_KINDS) {
		ledger_field_skip(reader);
		return ledger_field_end(reader);
	}
	if (!by_kind[news->kind](reader, news))
		return false;
	ledger_field_skip(reader); // fields of a newer version
	return ledger_field_end(reader);
}
