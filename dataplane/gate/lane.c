// Lanes: few in a room, so all searches are linear, in the order of the configuration.

#include "dataplane/gate/lane.h"

#include <string.h>

#include "dataplane/gate/request.h"
#include "dataplane/http/head.h"

const struct gate_room *lane_of_line(const struct gate_room *room, uint32_t line_id)
{
	if (line_id == room->line_id)
		return room;
	for (uint16_t i = 0; i < room->lane_count; i++)
		if (room->lanes[i].room.line_id == line_id)
			return &room->lanes[i].room;
	return NULL;
}

const struct gate_room *lane_of_name(const struct gate_room *room, struct span name)
{
	for (uint16_t i = 0; i < room->lane_count; i++)
		if (span_is_equal(room->lanes[i].name, name))
			return &room->lanes[i].room;
	return NULL;
}

static bool is_inside(const struct lane_network *network, const uint8_t ip[16])
{
	const unsigned whole = network->bits / 8, rest = network->bits % 8;
	if (memcmp(ip, network->ip, whole) != 0)
		return false;
	return rest == 0 || (ip[whole] ^ network->ip[whole]) >> (8 - rest) == 0;
}

static bool comes_from(const struct gate_lane *lane, const uint8_t ip[16])
{
	for (uint32_t i = 0; i < lane->network_count; i++)
		if (is_inside(&lane->networks[i], ip))
			return true;
	return false;
}

// One field of that name, with that value: of two that differ nobody knows which was meant.
static bool says(const struct http_head *head, const struct gate_lane *lane)
{
	bool is_said = false;
	for (uint16_t i = 0; lane->header.len > 0 && i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];
		if (!span_is_equal_caseless(http_field_name(head, field), lane->header))
			continue;
		const struct span value = http_field_value(head, field);
		if (value.len == 0) // a proxy that sets it for everybody
			continue;
		if (lane->header_value.len > 0 && !span_is_equal(value, lane->header_value))
			return false;
		is_said = true;
	}
	return is_said;
}

void lane_enter(const struct http_head *head, const uint8_t ip[16], bool is_trusted,
	struct gate_request *request)
{
	const struct gate_room *room = request->room;
	for (uint16_t i = 0; i < room->lane_count && !request->entry; i++) {
		const struct gate_lane *lane = &room->lanes[i];
		const bool is_near = comes_from(lane, ip), is_said = !is_near && says(head, lane);
		request->entry_by = is_near      ? GATE_ENTRY_ADDRESS
				    : !is_said   ? request->entry_by
				    : is_trusted ? GATE_ENTRY_HEADER
						 : GATE_ENTRY_UNTRUSTED;
		if (is_near || (is_said && is_trusted))
			request->entry = &lane->room;
	}
}
