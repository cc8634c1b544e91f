// Any target on any site: the first byte chooses the site. What plainly lies in a room is never
// outside, and neither is what lies there when it is written in escapes.

#include "dataplane/gate/match.h"
#include "tests/unit/gate/town.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool holds(const char *at, size_t len, struct span s)
{
	return s.at >= at && s.at + s.len <= at + len;
}

static struct match match(const struct gate_site *site, const char *target, size_t len)
{
	size_t bytes = MATCH_SCRATCH_BYTES(len);
	char *scratch = malloc(bytes + 1); // never NULL
	struct match match = match_path(site, (struct span){target, len}, scratch);
	assert(!match.endpoint.at || match.kind == MATCH_SLUICE);
	assert(!match.endpoint.at || holds(target, len, match.endpoint) ||
		holds(scratch, bytes, match.endpoint));
	free(scratch);
	return match;
}

// The same with all of the path but its first slash in escapes.
static struct match match_escaped(const struct gate_site *site, const char *target, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	char *escaped = malloc(3 * len), *end = escaped;
	*end++ = target[0];
	for (size_t i = 1; i < len; i++) {
		*end++ = '%';
		*end++ = digits[(uint8_t)target[i] >> 4];
		*end++ = digits[(uint8_t)target[i] & 15];
	}
	struct match found = match(site, escaped, end - escaped);
	free(escaped);
	return found;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	assert(match_map_is_sorted(&town));
	if (len == 0)
		return 0;
	const struct gate_site *site = &town.sites[data[0] % town.site_count];
	const char *target = (const char *)data + 1;
	struct match plain = match(site, target, --len);
	assert((plain.kind == MATCH_ROOM) == (plain.room != NULL));
	for (uint32_t i = 0; i < site->room_count; i++) {
		struct span path = site->rooms[i]->path;
		if (len >= path.len && memcmp(target, path.at, path.len) == 0)
			assert(plain.kind != MATCH_NONE);
	}
	bool is_plain = len > 0 && target[0] == '/' && !memchr(target, '%', len) &&
			!memchr(target, '?', len);
	if (is_plain && plain.kind != MATCH_NONE)
		assert(match_escaped(site, target, len).kind != MATCH_NONE);
	return 0;
}
