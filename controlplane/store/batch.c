// A pool of entries, found by what they are about through chains of a hash table. Entries keep
// their index; a removed one goes to a free list and is used again. History is about nothing but
// itself: it is in no chain.
//
// Merging is "the last one holds", but for a session that began since the batch was cleared. Its
// record is whole, and takes in that it was renewed or is over; when it is forgotten, it goes:
// the store never knew it (or, if a failed commit reached the disk after all, knows a slot that
// stays taken until its end, which is safe). That makes the bound hold.

#include "controlplane/store/batch.h"

#include <xxhash.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct entry {
	struct store_record record; // kind 0: free
	uint32_t next; // in its chain, or in the free list
	bool is_new; // a session of a visitor the store never heard of
};

struct batch {
	uint32_t max, used, count, history, until;
	uint32_t free; // head of the list of removed entries below `used`
	uint32_t mask;
	uint32_t *chains;
	struct entry *entries;
};

// What a record is about.
struct subject {
	uint64_t kind; // the first kind of its family
	uint64_t a, b;
};

static struct subject subject_of(const struct store_record *r)
{
	switch ((enum store_kind)r->kind) {
	case STORE_GRANTED:
	case STORE_RENEWED:
	case STORE_OVER:
	case STORE_FORGOTTEN:
		return (struct subject){STORE_GRANTED, r->session.line_id, r->session.visitor};
	case STORE_ENDED:
		return (struct subject){STORE_ENDED, r->ended.session, 0};
	case STORE_LINE:
		return (struct subject){STORE_LINE, r->line.line_id, 0};
	case STORE_ROOM:
		return (struct subject){STORE_ROOM, r->room.line_id, 0};
	case STORE_SECRET:
	case STORE_SECRET_FORGOTTEN:
		return (struct subject){STORE_SECRET, r->secret.id, 0};
	case STORE_TICKET:
	case STORE_TICKET_FORGOTTEN:
		return (struct subject){STORE_TICKET, r->ticket.epoch, 0};
	case STORE_DRAW:
	case STORE_DRAW_FORGOTTEN:
		return (struct subject){STORE_DRAW, r->draw.line_id, r->draw.number};
	case STORE_DOORS:
		return (struct subject){STORE_DOORS, r->doors.line_id, 0};
	case STORE_CODE:
		return (struct subject){STORE_CODE | (uint64_t)r->code.line_id << 32,
			r->code.digest[0], r->code.digest[1]};
	case STORE_MOVE:
		return (struct subject){STORE_MOVE, r->move.number % STORE_MOVES_MAX, 0};
	case STORE_CLOCK:
		return (struct subject){STORE_CLOCK, 0, 0};
	case STORE_CONFIG:
	case STORE_AUDIT:
		break;
	}
	assert(!"history, or a record of no kind");
	abort();
}

static bool is_history(const struct store_record *r)
{
	return r->kind == STORE_CONFIG || r->kind == STORE_AUDIT;
}

// Where the record keeps its text, or NULL if its kind has none.
static const char **text_of(struct store_record *r)
{
	if (r->kind == STORE_ROOM)
		return &r->room.message;
	return r->kind == STORE_AUDIT ? &r->audit.text : NULL;
}

// Take a copy of the record, text and all.
static bool record_copy(struct store_record *to, const struct store_record *from)
{
	*to = *from;
	const char **text = text_of(to);
	if (!text)
		return true;
	if (!*text)
		*text = "";
	if (strnlen(*text, STORE_TEXT_MAX + 1) > STORE_TEXT_MAX)
		return false;
	*text = strdup(*text);
	return *text != NULL;
}

static void record_wipe(struct store_record *r)
{
	const char **text = text_of(r);
	if (text)
		free((char *)*text);
	explicit_bzero(r, sizeof(*r));
}

struct batch *batch_create(uint32_t records_max)
{
	assert(records_max >= BATCH_RECORDS_MIN && records_max < 1u << 30);
	struct batch *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->max = records_max;
	for (b->mask = 63; b->mask < records_max; b->mask = b->mask * 2 + 1)
		;
	b->free = NONE;
	b->entries = calloc(records_max, sizeof(*b->entries));
	b->chains = malloc(((size_t)b->mask + 1) * sizeof(*b->chains));
	if (!b->entries || !b->chains) {
		batch_destroy(b);
		return NULL;
	}
	memset(b->chains, 0xff, ((size_t)b->mask + 1) * sizeof(*b->chains));
	return b;
}

void batch_destroy(struct batch *b)
{
	if (!b)
		return;
	if (b->entries && b->chains)
		batch_clear(b);
	free(b->entries);
	free(b->chains);
	free(b);
}

static uint32_t *chain_of(struct batch *b, const struct subject *subject)
{
	return &b->chains[XXH3_64bits(subject, sizeof(*subject)) & b->mask];
}

// The link that points to the entry of this subject, or to NONE at the end of its chain.
static uint32_t *link_of(struct batch *b, const struct subject *subject)
{
	uint32_t *link = chain_of(b, subject);
	while (*link != NONE) {
		struct entry *entry = &b->entries[*link];
		struct subject other = subject_of(&entry->record);
		if (memcmp(&other, subject, sizeof(other)) == 0)
			break;
		link = &entry->next;
	}
	return link;
}

static bool has_room(const struct batch *b, const struct store_record *record)
{
	if (is_history(record) && b->history == STORE_HISTORY_MAX)
		return false;
	uint32_t reserve = record->kind == STORE_GRANTED ? 0 : b->max / 4;
	return batch_free_count(b) > reserve;
}

static void note_until(struct batch *b, const struct store_record *r)
{
	bool is_pass = r->kind == STORE_GRANTED || r->kind == STORE_RENEWED;
	if (is_pass && r->session.expires > b->until)
		b->until = r->session.expires;
}

static void entry_remove(struct batch *b, uint32_t *link)
{
	uint32_t index = *link;
	struct entry *entry = &b->entries[index];
	*link = entry->next;
	record_wipe(&entry->record);
	entry->next = b->free;
	b->free = index;
	b->count--;
}

// A new entry with a copy of the record. Returns its index, or NONE if there is no room for it.
static uint32_t entry_add(struct batch *b, const struct store_record *record)
{
	struct store_record copy;
	if (!has_room(b, record) || !record_copy(&copy, record))
		return NONE;
	uint32_t index = b->free;
	if (index == NONE)
		index = b->used++;
	else
		b->free = b->entries[index].next;
	assert(index < b->max);
	b->entries[index] = (struct entry){copy, NONE, record->kind == STORE_GRANTED};
	b->count++;
	return index;
}

// A session that began since the batch was cleared goes on. Returns false if that is not the case.
static bool merge_session(struct batch *b, uint32_t *link, const struct store_record *record)
{
	struct store_record *known = &b->entries[*link].record;
	bool is_new = b->entries[*link].is_new;
	if (known->kind != STORE_GRANTED || record->kind == STORE_GRANTED)
		return false;
	if (record->kind == STORE_FORGOTTEN && !is_new)
		return false;
	if (record->kind == STORE_FORGOTTEN)
		entry_remove(b, link);
	else if (record->kind == STORE_OVER)
		known->session.is_over = true;
	else
		known->session.expires = record->session.expires;
	return true;
}

static bool put_again(struct batch *b, uint32_t *link, const struct store_record *record)
{
	if (merge_session(b, link, record))
		return true;
	struct store_record *known = &b->entries[*link].record, copy;
	if (!record_copy(&copy, record))
		return false;
	record_wipe(known);
	*known = copy;
	return true;
}

bool batch_put(struct batch *b, const struct store_record *record)
{
	if (is_history(record)) {
		bool is_added = entry_add(b, record) != NONE;
		b->history += is_added;
		return is_added;
	}
	note_until(b, record);
	struct subject subject = subject_of(record);
	uint32_t *link = link_of(b, &subject);
	if (*link != NONE)
		return put_again(b, link, record);
	*link = entry_add(b, record);
	return *link != NONE;
}

const struct store_record *batch_next(const struct batch *b, uint32_t *at)
{
	while (*at < b->used) {
		const struct store_record *record = &b->entries[(*at)++].record;
		if (record->kind != 0)
			return record;
	}
	return NULL;
}

uint32_t batch_count(const struct batch *b)
{
	return b->count;
}

uint32_t batch_free_count(const struct batch *b)
{
	return b->max - b->count;
}

uint32_t batch_until(const struct batch *b)
{
	return b->until;
}

void batch_clear(struct batch *b)
{
	for (uint32_t i = 0; i < b->used; i++) {
		struct store_record *record = &b->entries[i].record;
		if (record->kind != 0 && !is_history(record)) {
			struct subject subject = subject_of(record);
			*chain_of(b, &subject) = NONE;
		}
		if (record->kind != 0)
			record_wipe(record);
	}
	b->used = b->count = b->history = b->until = 0;
	b->free = NONE;
}
