// A map to test against: three sites, six rooms, and hosts of all kinds.
//
//   shop    shop.example, 127.0.0.1, [::1], *.shop.example
//           derby /derby, vip /derby/vip, xy /x/y, annex /annex;v=1
//   strict  strict.example, *.deep.shop.example; compares paths with case
//           exact /Exact
//   whole   whole.example
//           all /
#pragma once

#include "dataplane/gate/match.h"
#include "dataplane/gate/place.h"

#define TEXT(literal) \
	{ \
		literal, sizeof(literal) - 1 \
	}

enum {
	TOWN_ALL,
	TOWN_ANNEX,
	TOWN_DERBY,
	TOWN_EXACT,
	TOWN_VIP,
	TOWN_XY,
	TOWN_ROOMS,
};

enum {
	TOWN_SHOP,
	TOWN_STRICT,
	TOWN_WHOLE,
	TOWN_SITES,
};

static struct place_line town_line; // derby's

static struct gate_room town_rooms[TOWN_ROOMS] = {
	{.name = TEXT("all"), .path = TEXT("/"), .line_id = 11, .index = 0, .site = TOWN_WHOLE},
	{.name = TEXT("annex"),
		.path = TEXT("/annex;v=1"),
		.line_id = 12,
		.index = 1,
		.site = TOWN_SHOP},
	{.name = TEXT("derby"),
		.path = TEXT("/derby"),
		.line_id = 13,
		.index = 2,
		.site = TOWN_SHOP,
		.line = &town_line},
	{.name = TEXT("exact"),
		.path = TEXT("/Exact"),
		.line_id = 14,
		.index = 3,
		.site = TOWN_STRICT},
	{.name = TEXT("vip"),
		.path = TEXT("/derby/vip"),
		.line_id = 15,
		.index = 4,
		.site = TOWN_SHOP},
	{.name = TEXT("xy"), .path = TEXT("/x/y"), .line_id = 16, .index = 5, .site = TOWN_SHOP},
};

static const struct gate_room *town_shop_rooms[] = {&town_rooms[TOWN_ANNEX], &town_rooms[TOWN_VIP],
	&town_rooms[TOWN_DERBY], &town_rooms[TOWN_XY]};
static const struct gate_room *town_strict_rooms[] = {&town_rooms[TOWN_EXACT]};
static const struct gate_room *town_whole_rooms[] = {&town_rooms[TOWN_ALL]};

static struct gate_site town_sites[TOWN_SITES] = {
	{.name = TEXT("shop"), .index = TOWN_SHOP, .room_count = 4, .rooms = town_shop_rooms},
	{.name = TEXT("strict"),
		.index = TOWN_STRICT,
		.case_sensitive = true,
		.room_count = 1,
		.rooms = town_strict_rooms},
	{.name = TEXT("whole"), .index = TOWN_WHOLE, .room_count = 1, .rooms = town_whole_rooms},
};

static struct gate_host town_hosts[] = {
	{TEXT("127.0.0.1"), false, &town_sites[TOWN_SHOP]},
	{TEXT("[::1]"), false, &town_sites[TOWN_SHOP]},
	{TEXT("shop.example"), false, &town_sites[TOWN_SHOP]},
	{TEXT("strict.example"), false, &town_sites[TOWN_STRICT]},
	{TEXT("whole.example"), false, &town_sites[TOWN_WHOLE]},
	{TEXT(".deep.shop.example"), true, &town_sites[TOWN_STRICT]},
	{TEXT(".shop.example"), true, &town_sites[TOWN_SHOP]},
};

static const struct gate_map town = {
	.site_count = TOWN_SITES,
	.room_count = TOWN_ROOMS,
	.host_count = sizeof(town_hosts) / sizeof(town_hosts[0]),
	.sites = town_sites,
	.rooms = town_rooms,
	.hosts = town_hosts,
};
