// What was used: a table that grows by linear hashing (Litwin 1980). Each code that is entered
// splits one bucket in two, and memory is taken in chunks that stay where they are, so that no code
// ever pays for all others. A code whose use was given back stays, with none; so does what no list
// has any more. Sums are kept by line, so that whoever asks how things stand costs no walk through
// millions.

#include "controlplane/codes/codes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BITS 12u // so few that making one is nothing to wait for
#define CHUNK (1u << CHUNK_BITS) // places, and buckets
#define CHUNKS_MAX (CODES_USED_MAX >> CHUNK_BITS)
#define LINES_MORE 16u

struct place {
	struct code_digest digest;
	uint32_t line_id, used;
	uint32_t next; // in its bucket: index + 1; 0: last
};
static_assert(sizeof(struct place) + sizeof(uint32_t) <= CODES_USED_BYTES, "with its bucket");

// The sums of a line. Lines are few.
struct line {
	uint32_t line_id;
	struct codes_view view;
};

struct codes {
	uint32_t count;
	uint32_t bucket_count, half; // half: the largest power of two that is no more
	uint32_t *buckets[CHUNKS_MAX]; // index + 1 of the first place; 0: none
	struct place *places[CHUNKS_MAX];
	uint32_t line_count, line_max;
	struct line *lines;
};

static struct place *place_at(const struct codes *codes, uint32_t index)
{
	return &codes->places[index >> CHUNK_BITS][index & (CHUNK - 1)];
}

static uint32_t *bucket_at(const struct codes *codes, uint32_t bucket)
{
	return &codes->buckets[bucket >> CHUNK_BITS][bucket & (CHUNK - 1)];
}

// Digests are uniform.
static uint32_t hash_of(uint32_t line_id, const struct code_digest *digest)
{
	return (uint32_t)digest->words[1] ^ line_id;
}

// Buckets that were not split yet are those of half as many.
static uint32_t bucket_of(const struct codes *codes, uint32_t hash)
{
	const uint32_t bucket = hash & (2 * codes->half - 1);
	return bucket < codes->bucket_count ? bucket : bucket - codes->half;
}

// The place of a code, or NULL.
static struct place *find(
	const struct codes *codes, uint32_t line_id, const struct code_digest *digest)
{
	if (codes->count == 0)
		return NULL;
	uint32_t next = *bucket_at(codes, bucket_of(codes, hash_of(line_id, digest)));
	while (next != 0) {
		struct place *place = place_at(codes, next - 1);
		if (place->line_id == line_id && code_is_equal(&place->digest, digest))
			return place;
		next = place->next;
	}
	return NULL;
}

// Split the next bucket: those of its codes whose hash has one bit more go to a new one.
static void split(struct codes *codes)
{
	const uint32_t fresh = codes->bucket_count++;
	uint32_t *from = bucket_at(codes, fresh - codes->half), *to = bucket_at(codes, fresh);
	while (*from != 0) {
		struct place *place = place_at(codes, *from - 1);
		const uint32_t hash = hash_of(place->line_id, &place->digest);
		if ((hash & (2 * codes->half - 1)) != fresh) {
			from = &place->next;
			continue;
		}
		*to = *from;
		to = &place->next;
		*from = place->next;
		*to = 0;
	}
	if (codes->bucket_count == 2 * codes->half)
		codes->half *= 2;
}

// Room for one more, and a bucket for it. Returns false if there is none.
static bool grow(struct codes *codes)
{
	const uint32_t chunk = codes->count >> CHUNK_BITS;
	if (codes->count == CODES_USED_MAX)
		return false;
	if (!codes->places[chunk])
		codes->places[chunk] = calloc(CHUNK, sizeof(*codes->places[chunk]));
	if (!codes->buckets[chunk])
		codes->buckets[chunk] = calloc(CHUNK, sizeof(*codes->buckets[chunk]));
	if (!codes->places[chunk] || !codes->buckets[chunk])
		return false;
	if (codes->bucket_count == 0)
		codes->bucket_count = codes->half = 1;
	else if (codes->bucket_count <= codes->count)
		split(codes);
	return true;
}

static struct line *find_line(const struct codes *codes, uint32_t line_id)
{
	for (uint32_t i = 0; i < codes->line_count; i++)
		if (codes->lines[i].line_id == line_id)
			return &codes->lines[i];
	return NULL;
}

// Have the line's sums. Returns false if there is no room for them.
static bool enter_line(struct codes *codes, uint32_t line_id)
{
	if (find_line(codes, line_id))
		return true;
	if (codes->line_count == codes->line_max) {
		const uint32_t max = codes->line_max + LINES_MORE;
		struct line *more = realloc(codes->lines, max * sizeof(*more));
		if (!more)
			return false;
		codes->lines = more;
		codes->line_max = max;
	}
	codes->lines[codes->line_count++] = (struct line){.line_id = line_id};
	return true;
}

// How often a code was used is something else now.
static void set_used(struct codes *codes, struct place *place, uint32_t used)
{
	struct codes_view *view = &find_line(codes, place->line_id)->view;
	view->codes += used > 0;
	view->codes -= place->used > 0;
	view->uses += (uint64_t)used - place->used;
	place->used = used;
}

// The place of a code, made if need be; NULL: there is no room.
static struct place *enter(struct codes *codes, uint32_t line_id, const struct code_digest *digest)
{
	struct place *place = find(codes, line_id, digest);
	if (place)
		return place;
	if (!enter_line(codes, line_id) || !grow(codes))
		return NULL;
	place = place_at(codes, codes->count++);
	uint32_t *bucket = bucket_at(codes, bucket_of(codes, hash_of(line_id, digest)));
	*place = (struct place){*digest, line_id, 0, *bucket};
	*bucket = codes->count;
	return place;
}

static void take_over(void *context, const struct store_record *record)
{
	const struct store_code *code = &record->code;
	const struct code_digest digest = {{code->digest[0], code->digest[1]}};
	struct place *place = enter(context, code->line_id, &digest);
	if (place)
		set_used(context, place, code->used);
}

int codes_create(struct store *store, struct codes **codes)
{
	struct codes *made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	int ret = store_load(store, STORE_CODE, CODES_USED_MAX, take_over, made);
	if (ret < 0) {
		codes_destroy(made);
		return ret;
	}
	*codes = made;
	return 0;
}

void codes_destroy(struct codes *codes)
{
	if (!codes)
		return;
	for (uint32_t i = 0; i < CHUNKS_MAX; i++) {
		free(codes->places[i]);
		free(codes->buckets[i]);
	}
	free(codes->lines);
	free(codes);
}

uint32_t codes_used(const struct codes *codes, uint32_t line_id, const struct code_digest *digest)
{
	const struct place *place = find(codes, line_id, digest);
	return place ? place->used : 0;
}

struct codes_view codes_look(const struct codes *codes, uint32_t line_id)
{
	const struct line *line = find_line(codes, line_id);
	return line ? line->view : (struct codes_view){0};
}

uint32_t codes_next(
	const struct codes *codes, uint32_t *next, uint32_t *line_id, struct code_digest *digest)
{
	while (*next < codes->count) {
		const struct place *place = place_at(codes, (*next)++);
		*line_id = place->line_id;
		*digest = place->digest;
		if (place->used > 0)
			return place->used;
	}
	return 0;
}

static struct store_code record_of(const struct place *place)
{
	return (struct store_code){.line_id = place->line_id,
		.digest = {place->digest.words[0], place->digest.words[1]},
		.used = place->used};
}

enum claim_verdict codes_use(struct codes *codes, uint32_t line_id, uint32_t uses,
	const struct code_digest *digest, struct store_code *record)
{
	struct place *place = enter(codes, line_id, digest);
	if (!place)
		return CLAIM_REFUSED;
	if (place->used >= uses)
		return CLAIM_SPENT;
	set_used(codes, place, place->used + 1);
	*record = record_of(place);
	return CLAIM_HONOURED;
}

bool codes_give_back(struct codes *codes, uint32_t line_id, const struct code_digest *digest,
	struct store_code *record)
{
	struct place *place = find(codes, line_id, digest);
	if (!place || place->used == 0)
		return false;
	set_used(codes, place, place->used - 1);
	*record = record_of(place);
	return true;
}
