// Builds snapshots. Everything a snapshot points to is allocated in one list of blocks that goes
// with it.

#include "controlplane/publish.h"

#include "controlplane/certificates.h"
#include "controlplane/folders.h"
#include "controlplane/pages/message.h"
#include "dataplane/gate/lane.h"
#include "dataplane/gate/match.h"

#include <rte_rcu_qsbr.h>

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// What a snapshot owns: itself, its blocks, its origin table.
struct owner {
	struct snapshot snapshot;
	struct block *blocks;
	struct folders *folders;
	void (*free_origins)(const struct origin_table *origins);
	uint64_t token; // of the barrier that must pass before it is freed
	struct owner *next_retired;
};

struct block {
	struct block *next;
	_Alignas(16) char bytes[];
};

static struct owner *retired;

static void *take(struct owner *owner, size_t bytes)
{
	struct block *block = calloc(1, sizeof(*block) + (bytes ? bytes : 1));
	if (!block)
		abort(); // control without memory for a few kB: nothing can go on
	block->next = owner->blocks;
	owner->blocks = block;
	return block->bytes;
}

static struct span copy(struct owner *owner, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	char *bytes = take(owner, len + 1);
	if (len > 0)
		memcpy(bytes, text, len);
	return (struct span){bytes, len};
}

static struct span copy_lowered(struct owner *owner, const char *text)
{
	const struct span span = copy(owner, text);
	for (char *c = (char *)(uintptr_t)span.at; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return span;
}

static void destroy(struct owner *owner)
{
	for (struct block *block = owner->blocks, *next; block; block = next) {
		next = block->next;
		free(block);
	}
	owner->free_origins(owner->snapshot.origins);
	folders_give(owner->folders);
	for (uint32_t i = 0; i < TLS_LISTENERS_MAX; i++)
		identity_give((struct identity *)(uintptr_t)owner->snapshot.identities[i]);
	explicit_bzero(&owner->snapshot.ticket_keys, sizeof(owner->snapshot.ticket_keys));
	explicit_bzero(&owner->snapshot.secrets, sizeof(owner->snapshot.secrets));
	munmap(owner, sizeof(*owner));
}

// Exact names before wildcards, each sorted by their bytes: what gate_map_site() searches.
static int compare_hosts(const void *a, const void *b)
{
	const struct gate_host *x = a, *y = b;
	if (x->is_wildcard != y->is_wildcard)
		return x->is_wildcard ? 1 : -1;
	size_t len = x->name.len < y->name.len ? x->name.len : y->name.len;
	int order = memcmp(x->name.at, y->name.at, len);
	return order ? order : (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static int compare_rooms(const void *a, const void *b)
{
	const struct gate_room *x = a, *y = b;
	return strcmp(x->name.at, y->name.at); // copies end with NUL
}

static int compare_paths(const void *a, const void *b)
{
	const struct gate_room *x = *(const struct gate_room *const *)a;
	const struct gate_room *y = *(const struct gate_room *const *)b;
	return (x->path.len < y->path.len) - (x->path.len > y->path.len);
}

// A message that cannot be shown was refused when it was set.
static void fill_message(struct owner *owner, struct gate_room *room, const char *text)
{
	struct message *message = take(owner, sizeof(*message));
	int ret = message_escape((struct span){text, text ? strlen(text) : 0}, message);
	assert(ret == 0);
	room->message_json = (struct span){message->json, message->json_len};
	room->message_html = (struct span){message->html, message->html_len};
	if (message->json_len == 0)
		room->message_json = SPAN("null");
}

static void fill_room(struct owner *owner, const struct publish_input *input,
	const struct config_site *site, const struct config_room *from, struct gate_room *room)
{
	struct publish_room now = input->room(input->context, from);
	room->name = copy(owner, from->name);
	room->path = copy(owner, from->path);
	room->line_id = from->line_id;
	from = now.config;
	room->queue_status = (uint16_t)from->queue_status;
	room->mode = now.mode;
	room->state = now.state;
	room->sliding = from->sliding;
	room->session_s = (uint32_t)from->session_s;
	room->ticket_ttl_s = (uint32_t)from->ticket_ttl_s;
	room->line_max = from->line_max ? from->line_max : UINT64_MAX;
	room->has_salt = now.has_salt;
	room->opens_s = now.opens_s;
	room->gathers_s = now.gathers_s;
	room->line = now.line;
	room->pages = folders_of(input->folders, site, from);
	room->gather = now.gather;
	for (uint32_t i = 0; i < from->lanes.count; i++)
		room->takes_codes |= from->lanes.at[i].codes != NULL;
	fill_message(owner, room, now.message);
}

static void fill_site(
	struct owner *owner, const struct config_site *from, uint16_t index, struct gate_site *site)
{
	site->name = copy(owner, from->name);
	site->cookie_domain = copy(owner, from->cookie_domain);
	site->case_sensitive = from->case_sensitive;
	site->pass_same_site = (uint8_t)from->pass_same_site;
	site->https_port = from->https == CONFIG_HTTPS_REDIRECT ? (uint16_t)from->https_port : 0;
	site->hsts_s = (uint32_t)from->hsts_s;
	uint64_t per_s = from->preflight_rate.count * 1000 / from->preflight_rate.period_ms;
	site->preflight_rate = per_s ? (uint32_t)per_s : 1;
	site->index = index;
	site->origin = index; // one origin a site
	site->rooms = take(owner, from->rooms.count * sizeof(*site->rooms));
}

static void fill_hosts(struct owner *owner, const struct config_site *from,
	const struct gate_site *site, struct gate_host *hosts)
{
	for (uint32_t i = 0; i < from->hosts.count; i++) {
		const char *name = from->hosts.at[i];
		bool wildcard = name[0] == '*';
		hosts[i] = (struct gate_host){copy(owner, name + wildcard), wildcard, site};
	}
}

static void count_all(const struct config *config, struct gate_map *map)
{
	map->site_count = config->sites.count;
	map->room_count = (uint32_t)config_room_count(config);
	for (uint32_t i = 0; i < config->sites.count; i++)
		map->host_count += config->sites.at[i].hosts.count;
}

// The number of a lane behind the rooms: in the order of their full names, as control has them.
static uint16_t number_of_lane(const struct config *config, const struct config_lane *lane)
{
	uint16_t number = 0;
	for (uint32_t i = 0; i < config->sites.count; i++)
		for (uint32_t j = 0; j < config->sites.at[i].rooms.count; j++) {
			const struct config_lanes *lanes = &config->sites.at[i].rooms.at[j].lanes;
			for (uint32_t k = 0; k < lanes->count; k++)
				number += strcmp(lanes->at[k].full_name, lane->full_name) < 0;
		}
	return number;
}

static void fill_lane(struct owner *owner, const struct publish_input *input,
	const struct config_lane *from, const struct gate_room *room, struct gate_lane *lane)
{
	struct lane_network *networks =
		take(owner, from->addresses.count * sizeof(*lane->networks));
	for (uint32_t i = 0; i < from->addresses.count; i++) {
		memcpy(networks[i].ip, from->addresses.at[i].ip, 16);
		networks[i].bits = from->addresses.at[i].bits;
	}
	lane->networks = networks;
	lane->network_count = from->addresses.count;
	lane->name = copy(owner, from->name);
	lane->header = copy_lowered(owner, from->header);
	lane->header_value = copy(owner, from->header_value);
	lane->room = *room;
	lane->room.lanes = NULL;
	lane->room.lane_count = 0;
	lane->room.takes_codes = false; // who is in it is asked for none
	lane->room.index =
		(uint16_t)(config_room_count(input->config) + number_of_lane(input->config, from));
	lane->room.line_id = from->line_id;
	lane->room.line = input->line(input->context, from->line_id);
	lane->room.gather = input->gather(input->context, from->line_id);
}

static void fill_lanes(struct owner *owner, const struct publish_input *input,
	const struct config_room *from, struct gate_room *room)
{
	struct gate_lane *lanes = take(owner, from->lanes.count * sizeof(*lanes));
	for (uint32_t i = 0; i < from->lanes.count; i++)
		fill_lane(owner, input, &from->lanes.at[i], room, &lanes[i]);
	room->lanes = lanes;
	room->lane_count = (uint16_t)from->lanes.count;
}

// Rooms are sorted by name, so each site's list is made after the sort.
static void link_rooms(struct gate_map *map)
{
	qsort(map->rooms, map->room_count, sizeof(*map->rooms), compare_rooms);
	for (uint32_t i = 0; i < map->room_count; i++) {
		struct gate_room *room = &map->rooms[i];
		struct gate_site *site = &map->sites[room->site];
		room->index = (uint16_t)i;
		site->rooms[site->room_count++] = room;
	}
	for (uint32_t i = 0; i < map->site_count; i++) {
		struct gate_site *site = &map->sites[i];
		qsort(site->rooms, site->room_count, sizeof(*site->rooms), compare_paths);
	}
}

static int compare_assets(const void *a, const void *b)
{
	const struct gate_asset *x = a, *y = b;
	return strcmp(x->name.at, y->name.at); // they end with NUL
}

static void fill_assets(struct owner *owner, const struct folders *folders)
{
	struct gate_map *map = &owner->snapshot.map;
	map->asset_count = folders_assets(folders, NULL);
	map->assets = take(owner, map->asset_count * sizeof(*map->assets));
	folders_assets(folders, map->assets);
	qsort(map->assets, map->asset_count, sizeof(*map->assets), compare_assets);
}

static void fill_map(struct owner *owner, const struct publish_input *input)
{
	struct gate_map *map = &owner->snapshot.map;
	count_all(input->config, map);
	map->sites = take(owner, map->site_count * sizeof(*map->sites));
	map->rooms = take(owner, map->room_count * sizeof(*map->rooms));
	map->hosts = take(owner, map->host_count * sizeof(*map->hosts));
	uint32_t room = 0, host = 0;
	for (uint32_t i = 0; i < map->site_count; i++) {
		const struct config_site *from = &input->config->sites.at[i];
		fill_site(owner, from, (uint16_t)i, &map->sites[i]);
		map->sites[i].pages = folders_of(input->folders, from, NULL);
		fill_hosts(owner, from, &map->sites[i], &map->hosts[host]);
		host += from->hosts.count;
		for (uint32_t j = 0; j < from->rooms.count; j++, room++) {
			fill_room(owner, input, from, &from->rooms.at[j], &map->rooms[room]);
			map->rooms[room].site = (uint16_t)i;
			fill_lanes(owner, input, &from->rooms.at[j], &map->rooms[room]);
		}
	}
	fill_assets(owner, input->folders);
	qsort(map->hosts, map->host_count, sizeof(*map->hosts), compare_hosts);
	link_rooms(map);
	assert(match_map_is_sorted(map));
}

static void fill_trusted(struct owner *owner, const struct config *config)
{
	uint32_t count = config->trusted_proxies.count;
	struct snapshot_network *networks = take(owner, count * sizeof(*networks));
	for (uint32_t i = 0; i < count; i++) {
		memcpy(networks[i].ip, config->trusted_proxies.at[i].ip, 16);
		networks[i].bits = config->trusted_proxies.at[i].bits;
	}
	owner->snapshot.trusted = networks;
	owner->snapshot.trusted_count = count;
}

static void fill_identities(struct owner *owner, const struct certificates *certificates)
{
	for (uint32_t i = 0; i < TLS_LISTENERS_MAX; i++) {
		struct identity *identity = certificates_of(certificates, i);
		owner->snapshot.identities[i] = identity ? identity_hold(identity) : NULL;
	}
}

struct snapshot *publish_build(const struct publish_input *input)
{
	static uint64_t version;
	struct owner *owner = mmap(
		NULL, sizeof(*owner), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (owner == MAP_FAILED)
		return NULL;
	madvise(owner, sizeof(*owner), MADV_DONTDUMP); // secrets are in it
	owner->snapshot.version = ++version;
	owner->snapshot.owner = owner;
	owner->snapshot.secrets = *input->secrets;
	owner->snapshot.ticket_keys = *input->ticket_keys;
	fill_identities(owner, input->certificates);
	owner->snapshot.origins = input->origins;
	owner->free_origins = input->free_origins;
	owner->folders = folders_hold(input->folders);
	fill_map(owner, input);
	fill_trusted(owner, input->config);
	owner->snapshot.code_attempts = (uint32_t)input->config->code_attempts;
	return &owner->snapshot;
}

void publish_swap(struct snapshot_words *words, struct snapshot *snapshot)
{
	const struct snapshot *before =
		atomic_exchange_explicit(&words->current, snapshot, memory_order_acq_rel);
	if (!before)
		return;
	struct owner *owner = before->owner;
	owner->token = rte_rcu_qsbr_start(words->quiescent);
	owner->next_retired = retired;
	retired = owner;
}

unsigned publish_collect(struct snapshot_words *words)
{
	unsigned waiting = 0;
	for (struct owner **at = &retired; *at;) {
		struct owner *owner = *at;
		if (rte_rcu_qsbr_check(words->quiescent, owner->token, false) == 1) {
			*at = owner->next_retired;
			destroy(owner);
		} else {
			at = &owner->next_retired;
			waiting++;
		}
	}
	return waiting;
}

void publish_end(struct snapshot_words *words)
{
	publish_collect(words);
	assert(!retired);
	const struct snapshot *last = atomic_exchange(&words->current, NULL);
	if (last)
		destroy(last->owner);
}
