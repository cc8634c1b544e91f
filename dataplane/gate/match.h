// Matching: which site a host names, which room guards a path.
//
// The gate must not be passed by spelling. Servers read a path differently: some decode before they
// look, some resolve `..`, some do both twice. So the path is read in each of these ways, and who
// wants to be let through must be let through in all of them. gate_map_site() and gate_map_room()
// of rooms.h are implemented here too.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dataplane/gate/rooms.h"
#include "drivers/span.h"

#define MATCH_HOST_BYTES_MAX 255u // of a host name (RFC 1035 3.1); longer ones name no site
#define MATCH_CLIMB_BYTES_MAX 128u // of a path that climbs where servers differ; longer: 400

// Scratch for match_path(): a reading is never longer than the path.
#define MATCH_SCRATCH_BYTES(target_bytes) (3 * (size_t)(target_bytes))

enum match_kind {
	MATCH_BAD, // 400: bad escape, NUL, above the root, or read differently by different servers
	MATCH_NONE, // outside every room
	MATCH_ROOM, // guarded by `room`
	MATCH_SLUICE, // under /.sluice/: ours, never forwarded
};

struct match {
	enum match_kind kind;
	const struct gate_room *room; // MATCH_ROOM
	struct span endpoint; // MATCH_SLUICE: what follows /.sluice/, decoded and resolved, in the
			      // scratch or the target; at == NULL if only another reading lies
			      // there
};

// What a request target of `site` belongs to.
//   target   origin-form as sent; the query is ignored
//   scratch  MATCH_SCRATCH_BYTES(target.len)
// Pure; any thread.
struct match match_path(const struct gate_site *site, struct span target, char *scratch);

// A Host value or authority as it is compared: lower-cased, port and one trailing dot dropped.
//   scratch  MATCH_HOST_BYTES_MAX + 1 bytes
// Returns the name in the scratch, or at == NULL if it is malformed. Pure; any thread.
struct span match_host(struct span host, char *scratch);

// Whether a map is in the order that look-ups rely on: hosts exact ones first, then by name; rooms
// by name, with their index; a site's rooms longest path first. Names are compared as bytes. For
// whoever builds a map, to assert.
bool match_map_is_sorted(const struct gate_map *map);
