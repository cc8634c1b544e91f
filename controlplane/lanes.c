// Control draws these places itself, and not the worker that asks: then the use of a code, its
// holder and the place are one decision and one transaction, and whoever asks again, on whatever
// worker, even at the same moment, gets the same place.
//
//   holder ─▶ moves: the same again
//   code ─▶ lists of the room's lanes ─▶ codes: a use more ─▶ a place ─▶ moves

#include "controlplane/lanes.h"

#include "controlplane/claims/claims.h"
#include "controlplane/codes/codes.h"
#include "controlplane/codes/codes_lists.h"
#include "controlplane/codes/moves.h"
#include "controlplane/rooms.h"
#include "dataplane/gate/ended.h"
#include "dataplane/gate/enter.h"
#include "dataplane/gate/lane.h"
#include "dataplane/gate/place.h"

#include <string.h>
#include <sys/random.h>

static_assert(LANES_RECORDS == CLAIMS_CODE_RECORDS, "what a turn has room for");

// The lane of a room whose list has a code, from a number on; NULL: none.
static const struct config_lane *lane_with(const struct control *c, const struct config_room *room,
	const struct code_digest *digest, uint32_t *at, uint32_t *uses)
{
	while (*at < room->lanes.count) {
		const struct config_lane *lane = &room->lanes.at[(*at)++];
		const struct codes_list *list = codes_lists_of(c->codes_lists, lane);
		*uses = list ? codes_list_uses(list, digest) : 0;
		if (*uses > 0)
			return lane;
	}
	return NULL;
}

// A line as workers see it, or NULL.
static const struct gate_room *published(const struct control *c, uint32_t line_id)
{
	const struct gate_map *map = &atomic_load(&c->words.current)->map;
	for (uint32_t i = 0; i < map->room_count; i++) {
		const struct gate_room *line = lane_of_line(&map->rooms[i], line_id);
		if (line)
			return line;
	}
	return NULL;
}

static uint64_t fresh_visitor(void)
{
	uint64_t visitor = 0;
	while (visitor == 0)
		if (getrandom(&visitor, sizeof(visitor), 0) != sizeof(visitor))
			visitor = 0;
	return visitor;
}

static void answer_again(struct claim_answer *answer, const struct store_move *move)
{
	answer->verdict = CLAIM_HONOURED;
	answer->lane_id = move->lane_id;
	answer->visitor = move->visitor;
	answer->key = move->key;
	answer->expires = CLAIM_PLACE_AGAIN | (move->is_gathered ? CLAIM_PLACE_GATHERED : 0);
}

// Whether the holder is known by the number of a page.
static bool is_once(const struct claim *claim)
{
	return claim->kind == CLAIM_CODE && claim->poll_after != 0;
}

// Draw a place in a lane for whoever asks. Returns false if there is none, and the answer says why.
static bool draw(struct control *c, uint32_t lane_id, uint64_t now_ms, struct claim_answer *answer)
{
	const struct gate_room *lane = published(c, lane_id);
	const struct enter_who who = {.visitor = fresh_visitor(),
		.now_ms = now_ms,
		.now_s = (uint32_t)(now_ms / 1000),
		.appliance = (uint8_t)atomic_load(&c->words.appliance)};
	struct token ticket;
	bool fills_window; // the next turn of the draws sees it
	answer->lane_id = lane_id;
	answer->verdict = CLAIM_REFUSED;
	if (!lane)
		return false;
	const enum enter_result result = enter_line(lane, &who, &ticket, &fills_window);
	answer->verdict = result == ENTER_FULL ? CLAIM_FULL : CLAIM_BEFORE;
	if (result != ENTER_PLACED)
		return false;
	answer->verdict = CLAIM_HONOURED;
	answer->visitor = ticket.visitor;
	answer->key = ticket.key;
	answer->expires = ticket.flags & TOKEN_FLAG_GATHERED ? CLAIM_PLACE_GATHERED : 0;
	return true;
}

// Remember whose place it is. Returns how many records there are.
static uint32_t remember(struct control *c, const struct claim *claim, struct claim_answer *answer,
	struct store_record *record)
{
	if (claim->visitor == 0) {
		answer->expires |= CLAIM_PLACE_NOBODYS;
		return 0;
	}
	*record = (struct store_record){.kind = STORE_MOVE,
		.move = {.holder = claim->visitor,
			.is_once = is_once(claim),
			.is_gathered = answer->expires & CLAIM_PLACE_GATHERED,
			.lane_id = answer->lane_id,
			.visitor = answer->visitor,
			.key = answer->key}};
	moves_add(c->moves, &record->move);
	return 1;
}

static uint32_t use_in(struct control *c, const struct claim *claim, uint64_t now_ms,
	uint32_t lane_id, uint32_t uses, struct claim_answer *answer, struct store_record *records)
{
	const struct code_digest digest = {{claim->key, claim->session}};
	records[0].kind = STORE_CODE;
	answer->verdict = (uint8_t)codes_use(c->codes, lane_id, uses, &digest, &records[0].code);
	if (answer->verdict != CLAIM_HONOURED)
		return 0;
	answer->session = digest.words[0];
	answer->digest = digest.words[1];
	if (draw(c, lane_id, now_ms, answer))
		return 1 + remember(c, claim, answer, &records[1]);
	codes_give_back(c->codes, lane_id, &digest, &records[0].code); // nothing has happened
	return 0;
}

// In the first of the lanes that have it and in which it is not spent.
static uint32_t use_code(struct control *c, const struct claim *claim, uint64_t now_ms,
	const struct control_room *room, struct claim_answer *answer, struct store_record *records)
{
	const struct code_digest digest = {{claim->key, claim->session}};
	const struct config_lane *lane;
	uint32_t uses, at = 0, count = 0;
	answer->verdict = CLAIM_UNKNOWN;
	while ((lane = lane_with(c, room->config, &digest, &at, &uses))) {
		if (lane->line_id == claim->expires) {
			answer->verdict = CLAIM_KNOWN;
			return 0;
		}
		count = use_in(c, claim, now_ms, lane->line_id, uses, answer, records);
		if (answer->verdict != CLAIM_SPENT && answer->verdict != CLAIM_REFUSED)
			return count;
	}
	return count;
}

static uint32_t take_back(
	struct control *c, const struct claim *claim, struct store_record *records)
{
	const struct code_digest digest = {{claim->key, claim->session}};
	uint32_t count = 0;
	records[0].kind = STORE_MOVE;
	count += moves_forget(c->moves, claim->visitor, CLAIMS_TURN_MAX, &records[0].move);
	records[count].kind = STORE_CODE;
	if ((digest.words[0] | digest.words[1]) != 0)
		count += codes_give_back(c->codes, claim->expires, &digest, &records[count].code);
	return count;
}

// The room in which the holder asks for a place, or NULL: there is none, or the place is the one
// that was given before. One that was given back is none: what it was had for is spent.
static const struct control_room *asked_in(
	struct control *c, const struct claim *claim, struct claim_answer *answer)
{
	const struct control_room *room = rooms_find_line(c, claim->line_id);
	const struct store_move *before =
		claim->visitor ? moves_find(c->moves, claim->visitor, is_once(claim)) : NULL;
	if (!room || !before || !published(c, before->lane_id) ||
		ended_has(c->words.left, before->visitor))
		return room;
	answer_again(answer, before);
	return NULL;
}

uint32_t lanes_offer(
	struct control *c, const struct claim *claim, uint64_t now_ms, struct claim_answer *answer)
{
	const struct control_room *room = asked_in(c, claim, answer);
	const struct code_digest digest = {{claim->key, claim->session}};
	uint32_t uses, at = 0;
	if (!room)
		return 0;
	const struct config_lane *lane = lane_with(c, room->config, &digest, &at, &uses);
	answer->verdict = lane ? CLAIM_KNOWN : CLAIM_UNKNOWN;
	if (!lane || lane->line_id == claim->expires || !draw(c, lane->line_id, now_ms, answer))
		return 0;
	return uses;
}

uint32_t lanes_honoured(struct control *c, const struct claim *claim, struct claim_answer *answer,
	struct store_record *records)
{
	const struct code_digest digest = {{claim->key, claim->session}};
	uint32_t count = 0;
	records[0].kind = STORE_CODE;
	if (!(answer->expires & CLAIM_PLACE_AGAIN)) {
		answer->session = digest.words[0];
		answer->digest = digest.words[1];
		count += codes_use(c->codes, answer->lane_id, UINT32_MAX, &digest,
				 &records[0].code) == CLAIM_HONOURED;
	}
	return count + remember(c, claim, answer, &records[count]);
}

uint32_t lanes_claim(struct control *c, const struct claim *claim, uint64_t now_ms,
	struct claim_answer *answer, struct store_record *records)
{
	if (!answer)
		return take_back(c, claim, records);
	const struct control_room *room = asked_in(c, claim, answer);
	if (!room)
		return 0;
	if (claim->kind == CLAIM_CODE)
		return use_code(c, claim, now_ms, room, answer, records);
	answer->verdict = CLAIM_UNKNOWN; // of a ticket that was given up, nothing is known
	if (claim->expires == 0 || !draw(c, claim->line_id, now_ms, answer))
		return 0;
	return remember(c, claim, answer, &records[0]);
}
