// Which site a host names, which room a name: binary search over sorted tables.
//
// Names in a map are lower case already, so a host is folded once and compared as bytes; one that
// is in the map as it was sent, as most are, needs no folding. Wildcards are tried from the longest
// suffix to the shortest, one look-up a label.

#include "dataplane/gate/match.h"

#include "dataplane/http/host.h"
#include "dataplane/http/octet.h"

#include <stdint.h>

static bool is_host_letter(char c)
{
	return (c >= 'a' && c <= 'z') || octet_is_digit(c) || c == '-' || c == '_' || c == '.';
}

// Whether a folded name is one that a map could hold: labels of letters, or an IPv6 literal.
static bool is_name(struct span name)
{
	if (name.len == 0 || name.len > MATCH_HOST_BYTES_MAX)
		return false;
	if (name.at[0] == '[')
		return true;
	for (size_t i = 0; i < name.len; i++) {
		bool is_label_empty = name.at[i] == '.' && (i == 0 || name.at[i - 1] == '.');
		if (!is_host_letter(name.at[i]) || is_label_empty)
			return false;
	}
	return true;
}

struct span match_host(struct span host, char *scratch)
{
	struct span port, none = {NULL, 0};
	if (!host_is_valid(host, &port))
		return none;
	if (port.at)
		host.len = port.at - 1 - host.at;
	if (host.len > 0 && host.at[host.len - 1] == '.')
		host.len--;
	if (host.len > MATCH_HOST_BYTES_MAX)
		return none;
	for (size_t i = 0; i < host.len; i++)
		scratch[i] = octet_lower(host.at[i]);
	struct span name = {scratch, host.len};
	return is_name(name) ? name : none;
}

static int order_of_names(struct span a, struct span b)
{
	int order = memcmp(a.at, b.at, a.len < b.len ? a.len : b.len);
	return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int order_of_hosts(bool is_wildcard, struct span name, const struct gate_host *host)
{
	if (is_wildcard != host->is_wildcard)
		return is_wildcard ? 1 : -1;
	return order_of_names(name, host->name);
}

static const struct gate_site *site_of(
	const struct gate_map *map, bool is_wildcard, struct span name)
{
	uint32_t low = 0, high = map->host_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = order_of_hosts(is_wildcard, name, &map->hosts[middle]);
		if (order == 0)
			return map->hosts[middle].site;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct gate_site *gate_map_site(
	const struct gate_map *map, struct span host, char *scratch, struct span *matched)
{
	const struct gate_site *site = NULL;
	if (host.len > 0 && host.len <= MATCH_HOST_BYTES_MAX)
		site = site_of(map, false, host);
	if (site) { // what is in the map is valid
		*matched = (struct span){memcpy(scratch, host.at, host.len), host.len};
		return site;
	}
	struct span name = match_host(host, scratch);
	if (!name.at)
		return NULL;
	*matched = name;
	site = site_of(map, false, name);
	// `*` stands for at least one label, so the first dot that can begin a suffix is behind
	// one.
	for (size_t i = 1; !site && i < name.len; i++)
		if (name.at[i] == '.')
			site = site_of(map, true, span_from(name, i));
	return site;
}

const struct gate_room *gate_map_room(const struct gate_map *map, struct span name)
{
	uint32_t low = 0, high = map->room_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = order_of_names(name, map->rooms[middle].name);
		if (order == 0)
			return &map->rooms[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

const struct gate_asset *gate_map_asset(const struct gate_map *map, struct span name)
{
	uint32_t low = 0, high = map->asset_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = order_of_names(name, map->assets[middle].name);
		if (order == 0)
			return &map->assets[middle];
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

bool match_map_is_sorted(const struct gate_map *map)
{
	for (uint32_t i = 1; i < map->host_count; i++) {
		const struct gate_host *host = &map->hosts[i - 1];
		if (order_of_hosts(host->is_wildcard, host->name, host + 1) >= 0)
			return false;
	}
	for (uint32_t i = 0; i < map->room_count; i++) {
		const struct gate_room *room = &map->rooms[i];
		if (room->index != i || (i > 0 && order_of_names(room[-1].name, room->name) >= 0))
			return false;
	}
	for (uint32_t i = 0; i < map->site_count; i++)
		for (uint32_t j = 1; j < map->sites[i].room_count; j++)
			if (map->sites[i].rooms[j - 1]->path.len < map->sites[i].rooms[j]->path.len)
				return false;
	return true;
}
