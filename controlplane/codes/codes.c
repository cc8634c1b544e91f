// What was used: an open-addressed table that doubles when it is three quarters full. A code whose
// use was given back stays, with none; so does what no list has any more. Sums are kept by line, so
// that whoever asks how things stand costs no walk through millions.

#include "controlplane/codes/codes.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PLACES_MIN 1024u
#define LINES_MORE 16u

struct place {
	struct code_digest digest; // all 0: free
	uint32_t line_id, used;
};

// The sums of a line. Lines are few.
struct line {
	uint32_t line_id;
	struct codes_view view;
};

struct codes {
	uint32_t count, place_count; // a power of two
	struct place *places;
	uint32_t line_count, line_max;
	struct line *lines;
};

static bool is_free(const struct place *place)
{
	return (place->digest.words[0] | place->digest.words[1]) == 0;
}

// The place of a code, or the free one where it would go.
static struct place *find(
	const struct codes *codes, uint32_t line_id, const struct code_digest *digest)
{
	uint32_t at = (uint32_t)(digest->words[1] ^ line_id) & (codes->place_count - 1);
	struct place *place = &codes->places[at];
	while (!is_free(place) &&
		(place->line_id != line_id || !code_is_equal(&place->digest, digest))) {
		at = (at + 1) & (codes->place_count - 1);
		place = &codes->places[at];
	}
	return place;
}

// Room for one more. Returns false if there is none.
static bool grow(struct codes *codes)
{
	if (codes->count == CODES_USED_MAX)
		return false;
	if (codes->count < codes->place_count / 4 * 3)
		return true;
	struct codes larger = *codes;
	larger.place_count = 2 * codes->place_count;
	larger.places = calloc(larger.place_count, sizeof(*larger.places));
	if (!larger.places)
		return false;
	for (uint32_t i = 0; i < codes->place_count; i++) {
		const struct place *place = &codes->places[i];
		if (!is_free(place))
			*find(&larger, place->line_id, &place->digest) = *place;
	}
	free(codes->places);
	*codes = larger;
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
	if (!is_free(place))
		return place;
	if (!enter_line(codes, line_id) || !grow(codes))
		return NULL;
	place = find(codes, line_id, digest);
	*place = (struct place){*digest, line_id, 0};
	codes->count++;
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
	made->place_count = PLACES_MIN;
	made->places = calloc(made->place_count, sizeof(*made->places));
	int ret = made->places ? store_load(store, STORE_CODE, CODES_USED_MAX, take_over, made)
			       : -ENOMEM;
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
	free(codes->places);
	free(codes->lines);
	free(codes);
}

uint32_t codes_used(const struct codes *codes, uint32_t line_id, const struct code_digest *digest)
{
	return find(codes, line_id, digest)->used;
}

struct codes_view codes_look(const struct codes *codes, uint32_t line_id)
{
	const struct line *line = find_line(codes, line_id);
	return line ? line->view : (struct codes_view){0};
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
	if (place->used == 0)
		return false;
	set_used(codes, place, place->used - 1);
	*record = record_of(place);
	return true;
}
