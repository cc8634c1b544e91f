// Sites and rooms as workers see them: an immutable map, built by control from the configuration,
// published in the snapshot and freed when no worker can hold it any more.
//
// What moves while people wait (threshold, floor, open) is not here but in the room's line
// (place.h).
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drivers/span.h"

struct gather;
struct gate_lane;
struct place_line;
struct page_set;

#define GATE_NAME_MAX 63 // bytes of a room's or site's name: letters, digits, '-', '_', '.'
#define GATE_MAP_ROOMS_MAX 1024 // rooms in a configuration, with their lanes
#define GATE_COOKIES_MAX 16 // sluice cookies looked at in one request

enum gate_mode {
	GATE_MODE_AUTO, // direct while nobody waits and there is a slot
	GATE_MODE_ALWAYS, // everyone draws a place
	GATE_MODE_OFF, // forwarded, counted
	GATE_MODE_REJECT, // takes nobody now
	GATE_MODE_PEAK, // direct while nobody waits and the minute's inflow is not used up
};

enum gate_room_state {
	GATE_OPEN,
	GATE_PAUSED, // nobody is called or admitted; tickets are drawn and kept
	GATE_CLOSED, // the event is over; passes go on until they expire
	GATE_BEFORE, // the doors are not open yet; people may gather
};

enum gate_same_site {
	GATE_SAME_SITE_LAX,
	GATE_SAME_SITE_STRICT,
	GATE_SAME_SITE_NONE,
};

struct gate_room {
	struct span name; // also in cookie names
	struct span path; // plain string prefix, as configured
	uint32_t line_id; // low 32 bits of XXH3-64 of the name
	uint16_t index; // in the map; lanes are numbered behind all rooms
	uint16_t site; // in the map
	uint16_t lane_count;
	uint16_t queue_status; // 200, 202, 429 or 503
	uint8_t mode; // enum gate_mode
	uint8_t state; // enum gate_room_state
	bool takes_codes; // a lane of it has a list of them (code.h); of a lane false
	bool has_salt; // the next draw, a public one
	bool sliding; // a pass is renewed in the second half of its life
	uint32_t session_s; // how long a pass lasts
	uint32_t ticket_ttl_s; // how long the cookie of a ticket lasts, and its secret after
			       // rotation
	uint64_t line_max; // tickets waiting beyond which the room is full; UINT64_MAX: none
	struct span
		message_json; // the operator's message as a JSON value: quoted and escaped, or null
	struct span message_html; // the same, escaped for HTML text; empty if none
	uint32_t opens_s; // unix s, while the doors are closed; 0: they are open
	uint32_t gathers_s; // when people may gather before them; opens_s: not at all
	struct place_line *line;
	struct gather *gather; // NULL: nobody gathers here
	const struct page_set *pages; // never NULL
	const struct gate_lane *lanes; // lane.h; of a lane none
};

struct gate_site {
	struct span name;
	struct span cookie_domain; // empty: none
	bool case_sensitive;
	uint8_t pass_same_site; // enum gate_same_site; of a pass over TLS
	uint16_t https_port; // visitors of plain listeners are sent there; 0: they are not
	uint32_t hsts_s; // told over TLS: how long to use https alone; 0: nothing is told
	uint32_t preflight_rate; // CORS pre-flights that pass in a second
	uint16_t index;
	uint16_t origin; // index of the origin in the snapshot
	uint16_t room_count;
	const struct page_set *pages; // of what lies outside its rooms; never NULL
	const struct gate_room **rooms; // longest path first
};

// A file that pages show, in memory: GET /.sluice/assets/NAME. Its name has a hash of its bytes, so
// it never changes.
struct gate_asset {
	struct span name;
	struct span type; // value of Content-Type
	struct span bytes;
};

// A host name that a site answers to. Names are lower case, without port or trailing dot.
struct gate_host {
	struct span name; // "*.example.com" is stored as ".example.com"
	bool is_wildcard;
	const struct gate_site *site;
};

// Names are sorted by their bytes, for binary search; match_map_is_sorted() says whether they are.
struct gate_map {
	uint32_t site_count, room_count, host_count;
	struct gate_site *sites;
	struct gate_room *rooms; // by name
	struct gate_host *hosts; // all exact ones, then all wildcards; each by name
	uint32_t asset_count;
	struct gate_asset *assets; // by name
};

// The site of a Host value or authority as sent: lower-cased, port and one trailing dot dropped; an
// exact name before the longest wildcard.
//   scratch  256 bytes
//   matched  the host as it was compared, for the Host that the origin gets; in the scratch
// Returns NULL if no site names it (421), also for a malformed one. Pure; any thread.
const struct gate_site *gate_map_site(
	const struct gate_map *map, struct span host, char *scratch, struct span *matched);

// The asset named `name`, or NULL. Pure; any thread.
const struct gate_asset *gate_map_asset(const struct gate_map *map, struct span name);

// The room named `name`, or NULL. Pure; any thread.
const struct gate_room *gate_map_room(const struct gate_map *map, struct span name);
