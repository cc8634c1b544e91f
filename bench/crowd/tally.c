// Counts and histograms are added, lists appended.

#include "bench/crowd/tally.h"

#include <stdlib.h>

#define ROOM_FIRST 1024u

void tally_fini(struct tally *tally)
{
	free(tally->admissions);
	free(tally->presences);
	free(tally->places);
}

// Make room for one more. Returns false when memory is short.
static bool make_room(void **list, uint32_t count, uint32_t *room, size_t bytes)
{
	if (count < *room)
		return true;
	const uint32_t wanted = *room ? 2 * *room : ROOM_FIRST;
	void *grown = realloc(*list, wanted * bytes);
	if (!grown)
		return false;
	*list = grown;
	*room = wanted;
	return true;
}

uint32_t tally_admit(struct tally *tally, const struct tally_admission *admission)
{
	if (!make_room((void **)&tally->admissions, tally->admission_count, &tally->admission_room,
		    sizeof(*admission))) {
		tally->unrecorded++;
		return UINT32_MAX;
	}
	tally->admissions[tally->admission_count] = *admission;
	return tally->admission_count++;
}

void tally_presence(struct tally *tally, const struct tally_presence *presence)
{
	if (!make_room((void **)&tally->presences, tally->presence_count, &tally->presence_room,
		    sizeof(*presence))) {
		tally->unrecorded++;
		return;
	}
	tally->presences[tally->presence_count++] = *presence;
}

void tally_place(struct tally *tally, const struct tally_place *place)
{
	if (!make_room((void **)&tally->places, tally->place_count, &tally->place_room,
		    sizeof(*place))) {
		tally->unrecorded++;
		return;
	}
	tally->places[tally->place_count++] = *place;
}

static bool write_list(const void *list, uint32_t count, size_t bytes, FILE *file)
{
	return count == 0 || fwrite(list, bytes, count, file) == count;
}

bool tally_write(const struct tally *tally, FILE *file)
{
	return fwrite(tally, sizeof(*tally), 1, file) == 1 &&
	       write_list(tally->admissions, tally->admission_count, sizeof(*tally->admissions),
		       file) &&
	       write_list(
		       tally->presences, tally->presence_count, sizeof(*tally->presences), file) &&
	       write_list(tally->places, tally->place_count, sizeof(*tally->places), file) &&
	       fflush(file) == 0;
}

static void add_counts(struct tally *tally, const struct tally *other)
{
#define X(name, text) tally->name += other->name;
	TALLY_COUNTS(X)
#undef X
#define X(name, text) histogram_merge(&tally->name##_us, &other->name##_us);
	TALLY_TIMES(X)
#undef X
}

static bool add_lists(struct tally *tally, const struct tally *other, FILE *file)
{
	for (uint32_t i = 0; i < other->admission_count; i++) {
		struct tally_admission admission;
		if (fread(&admission, sizeof(admission), 1, file) != 1)
			return false;
		tally_admit(tally, &admission);
	}
	for (uint32_t i = 0; i < other->presence_count; i++) {
		struct tally_presence presence;
		if (fread(&presence, sizeof(presence), 1, file) != 1)
			return false;
		tally_presence(tally, &presence);
	}
	for (uint32_t i = 0; i < other->place_count; i++) {
		struct tally_place place;
		if (fread(&place, sizeof(place), 1, file) != 1)
			return false;
		tally_place(tally, &place);
	}
	return true;
}

bool tally_add_file(struct tally *tally, FILE *file)
{
	static struct tally
		other; // too large for a stack; its lists are another process's pointers
	rewind(file);
	if (fread(&other, sizeof(other), 1, file) != 1)
		return false;
	add_counts(tally, &other);
	return add_lists(tally, &other, file);
}
