// Codes and links of lanes, in a cluster.
//
//   link ─▶ a place, drawn here ─▶ what was held is given up at the ledger
//   code ─▶ in a list? a place, drawn here ─▶ LEDGER_CODE ─┬▶ good: use, holder and place are kept
//                                                          ├▶ used by this holder: that place again
//                                                          └▶ spent: the place is given back
//
// Who follows one link on two appliances has two places: nobody counts links. Uses of codes are
// counted by the ledger; what this appliance has asked for is kept in its own store besides, and
// written back when the ledger has lost writes. Of a code with several uses those may then count
// twice that the ledger has kept, so that it is good less often, and never more.

#include "controlplane/appliance/inside.h"

#include "controlplane/codes/codes.h"
#include "controlplane/lanes.h"
#include "controlplane/log.h"
#include "controlplane/rooms.h"
#include "controlplane/turn.h"
#include "dataplane/gate/gather.h"

#include <errno.h>
#include <string.h>

static void save(struct control *c, const struct store_record *records, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!store_put(c->store, &records[i]))
			log_error("the own store took no record of a lane's place");
}

// Holders of tickets and holders of a page's number have one name each in the ledger.
static uint64_t holder_name(uint64_t holder, bool is_once)
{
	return is_once ? ~holder : holder;
}

// --- links

// Returns whether the place that was held is given up.
static bool answer_link(struct control *c, const struct claim *claim, uint64_t now_ms)
{
	struct store_record records[LANES_RECORDS] = {0};
	struct claim_answer answer = {.verdict = CLAIM_REFUSED,
		.kind = claim->kind,
		.room = claim->room,
		.request = claim->request,
		.generation = claim->generation,
		.poll_after = claim->poll_after,
		.key = claim->key,
		.visitor = claim->visitor,
		.line_id = claim->line_id};
	save(c, records, lanes_claim(c, claim, now_ms, &answer, records));
	const bool is_taken = turn_seams.answer(c, claim->worker, &answer, 1) == 1;
	return is_taken && answer.verdict == CLAIM_HONOURED && claim->expires && claim->place;
}

uint32_t appliance_take_links(struct control *c, const struct claim *claims, uint32_t count,
	struct claim *others, uint32_t room, uint64_t now_ms)
{
	struct appliance *a = c->appliance;
	uint32_t other_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct claim *claim = &claims[i];
		if (claim->kind != CLAIM_MOVE)
			others[other_count++] = *claim;
		else if (answer_link(c, claim, now_ms))
			others[other_count++] = (struct claim){.kind = CLAIM_LEAVE,
				.worker = claim->worker,
				.room = UINT16_MAX, // found by its line
				.key = claim->place,
				.visitor = claim->visitor,
				.line_id = claim->expires,
				.sent_ms = now_ms};
	}
	while (other_count < room && a->unused_count > 0) {
		others[other_count] = a->unused[--a->unused_count];
		others[other_count++].sent_ms = now_ms;
	}
	return other_count;
}

// --- codes

static struct ledger_entry entry_of(uint32_t lane_id, enum ledger_code_what what,
	const struct code_digest *digest, uint64_t holder)
{
	return (struct ledger_entry){.kind = LEDGER_CODE,
		.line = lane_id,
		.code = {.what = (uint8_t)what,
			.uses = 1,
			.digest = {digest->words[0], digest->words[1]},
			.holder = holder,
			.place = {.visitor = holder}}};
}

// Whoever it was for has not got it. Returns whether the ledger is to hear of it: not of a link.
static bool take_back(struct control *c, const struct claim *claim, struct ledger_entry *entry)
{
	const struct code_digest digest = {{claim->key, claim->session}};
	struct store_record records[LANES_RECORDS] = {0};
	const uint32_t count = lanes_claim(c, claim, 0, NULL, records);
	uint64_t holder = claim->visitor;
	if (count > 0 && records[0].kind == STORE_MOVE)
		holder = holder_name(records[0].move.holder, records[0].move.is_once);
	save(c, records, count);
	*entry = entry_of(claim->expires, LEDGER_CODE_UNDO, &digest, holder);
	entry->code.place.visitor = claim->visitor;
	return (digest.words[0] | digest.words[1]) != 0;
}

bool appliance_code(void *ctx, const struct claim *claim, struct claim_answer *answer,
	struct ledger_entry *entry)
{
	struct control *c = ctx;
	const struct code_digest digest = {{claim->key, claim->session}};
	if (!answer)
		return take_back(c, claim, entry);
	answer->session = 0;
	const uint32_t uses = lanes_offer(c, claim, clock_now_ms(&c->clock), answer);
	if (uses == 0)
		return false;
	const uint64_t holder = claim->visitor ? holder_name(claim->visitor, claim->poll_after != 0)
					       : answer->visitor;
	*entry = entry_of(answer->lane_id, LEDGER_CODE_USE, &digest, holder);
	entry->code.uses = uses;
	entry->code.place = (struct ledger_place){
		answer->visitor, answer->key, answer->expires & CLAIM_PLACE_GATHERED};
	return true;
}

// A place that was drawn and that nobody will have: beyond what is kept of these, the turn passes.
static void give_back(struct appliance *a, const struct ledger_entry *entry)
{
	const uint64_t gathered = entry->code.place.is_gathered ? GATHER_NUMBER : 0;
	if (a->unused_count < APPLIANCE_UNUSED_MAX)
		a->unused[a->unused_count++] = (struct claim){.kind = CLAIM_LEAVE,
			.room = UINT16_MAX,
			.key = entry->code.place.key | gathered,
			.visitor = entry->code.place.visitor,
			.line_id = entry->line};
}

void appliance_code_answered(void *ctx, const struct claim *claim, const struct ledger_entry *entry,
	const struct ledger_answer *said, struct claim_answer *answer)
{
	struct control *c = ctx;
	struct store_record records[LANES_RECORDS] = {0};
	const bool is_good = said->verdict == LEDGER_GRANTED;
	const bool is_again = is_good && said->place.visitor != entry->code.place.visitor;
	answer->session = 0;
	if (!is_good || is_again)
		give_back(c->appliance, entry);
	answer->verdict = said->verdict == LEDGER_LAPSED ? CLAIM_SPENT : CLAIM_REFUSED;
	if (!is_good)
		return;
	answer->verdict = CLAIM_HONOURED;
	answer->lane_id = entry->line;
	answer->visitor = said->place.visitor;
	answer->key = said->place.key;
	answer->expires = (said->place.is_gathered ? CLAIM_PLACE_GATHERED : 0) |
			  (is_again ? CLAIM_PLACE_AGAIN : 0);
	save(c, records, lanes_honoured(c, claim, answer, records));
}

// --- what is written back

static void begin_writing_back(struct appliance *a)
{
	a->codes_next = a->codes_of_next = 0;
	a->is_code_due = true;
}

// A ledger that has lost everything knows no lane until its conductor has named it: once more. One
// that others have not configured is not waited for, since nobody is granted anything meanwhile;
// its uses are told as soon as the ledger knows it.
static void say_again(struct control *c, uint64_t now_ms)
{
	struct appliance *a = c->appliance;
	struct member_line_view said;
	const struct control_room *lane = rooms_find_line(c, a->code_unknown);
	if (!a->is_code_unknown)
		return;
	if (now_ms < a->codes_until_ms) {
		a->is_code_unknown = false;
		begin_writing_back(a);
	} else if (!a->is_code_late && lane) {
		a->is_code_late = true;
		log_warning(
			"lane %s: the store does not know it, and so not which of its codes were "
			"used: they are refused until the conductor has it configured; check "
			"that all appliances have the same lanes (`show cluster`)",
			lane->name);
	}
	if (!lane || (a->is_code_late && member_look_line(a->member, a->code_unknown, &said) &&
			     said.heard_ms > a->code_unknown_ms)) {
		a->is_code_unknown = a->is_code_late = false;
		begin_writing_back(a);
	}
}

void appliance_code_look(struct control *c, uint64_t now_ms)
{
	struct appliance *a = c->appliance;
	say_again(c, now_ms);
	const struct member_status *status = &a->status;
	const bool is_first = !a->has_codes_epoch;
	if (!status->is_ready && !status->is_recovering)
		return;
	if (!is_first && a->codes_epoch == status->epoch)
		return;
	a->has_codes_epoch = true;
	a->is_code_late = false;
	a->codes_epoch = status->epoch;
	a->codes_until_ms = now_ms + APPLIANCE_CODES_MS;
	if (is_first && !status->is_recovering)
		return;
	begin_writing_back(a);
}

// Holders of these are names that nobody else has: who asks again is known here (moves.h).
static uint32_t offer_known(struct control *c, struct ledger_entry *entries, uint32_t max)
{
	struct appliance *a = c->appliance;
	uint32_t count = 0;
	while (a->is_code_due && count < max) {
		struct code_digest digest;
		uint32_t next = a->codes_next, lane_id;
		const uint32_t used = codes_next(c->codes, &next, &lane_id, &digest);
		a->is_code_due = used > 0;
		if (used == 0)
			break;
		if (!rooms_find_line(c, lane_id)) { // its lane is no more
			a->codes_next = next;
			continue;
		}
		const uint64_t holder = digest.words[0] ^ (uint64_t)a->codes_of_next << 8 ^
					(uint64_t)(a->note.number + 1u);
		entries[count++] = entry_of(lane_id, LEDGER_CODE_KNOWN, &digest, holder);
		if (++a->codes_of_next < used)
			continue;
		a->codes_next = next;
		a->codes_of_next = 0;
	}
	a->is_code_asked |= count > 0;
	return count;
}

// How often codes were used, on whichever appliance: of each lane once a second, and of a code that
// somebody asks about.
static uint32_t offer_looks(struct control *c, struct ledger_entry *entries, uint32_t max)
{
	static const struct code_digest all;
	struct appliance *a = c->appliance;
	const uint64_t now_us = clock_monotonic_us();
	uint32_t count = 0;
	if (a->is_look_due && count < max) {
		a->is_look_due = false;
		entries[count++] = entry_of(a->look_lane, LEDGER_CODE_LOOK, &a->look, 0);
	}
	for (uint32_t i = 0; i < c->room_count && count < max; i++) {
		struct control_room *lane = &c->rooms[i];
		if (!lane->lane || now_us - lane->codes_looked_us < APPLIANCE_LOOK_MS * 1000ull)
			continue;
		lane->codes_looked_us = now_us;
		entries[count++] = entry_of(lane->line_id, LEDGER_CODE_LOOK, &all, 0);
	}
	return count;
}

uint32_t appliance_code_offer(void *ctx, struct ledger_entry *entries, uint32_t max)
{
	const uint32_t known = offer_known(ctx, entries, max);
	return known + offer_looks(ctx, entries + known, max - known);
}

static void take_look(
	struct control *c, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	struct appliance *a = c->appliance;
	const uint64_t *digest = entry->code.digest;
	struct control_room *lane = rooms_find_line(c, entry->line);
	const bool is_known = answer->verdict == LEDGER_GRANTED;
	if ((digest[0] | digest[1]) == 0 && lane && is_known) {
		lane->codes_used = answer->place.visitor;
		lane->code_uses = answer->place.key;
	} else if (memcmp(digest, a->look.words, sizeof(a->look.words)) == 0) {
		a->looked_us = clock_monotonic_us();
		a->look_used = is_known ? answer->place.visitor : 0;
	}
}

int appliance_code_ask(struct control *c, uint32_t lane_id, const struct code_digest *code)
{
	struct appliance *a = c->appliance;
	const uint64_t now_us = clock_monotonic_us();
	if (!appliance_can_share(c))
		return -EAGAIN;
	if (a->look_us > a->looked_us && now_us - a->look_us < APPLIANCE_TAKEN_MS * 1000ull)
		return -EBUSY;
	a->look = *code;
	a->look_lane = lane_id;
	a->look_us = now_us;
	a->is_look_due = true;
	return 0;
}

int appliance_code_asked(const struct control *c, uint64_t *used)
{
	const struct appliance *a = c->appliance;
	*used = a->look_used;
	if (a->looked_us > a->look_us)
		return 0;
	return clock_monotonic_us() - a->look_us < APPLIANCE_TAKEN_MS * 1000ull ? -EAGAIN
										: -ETIMEDOUT;
}

void appliance_code_offered(
	void *ctx, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	struct control *c = ctx;
	struct appliance *a = c->appliance;
	if (entry->code.what == LEDGER_CODE_LOOK) {
		take_look(c, entry, answer);
		return;
	}
	a->is_code_asked = false; // all of a batch are answered at once
	if (answer->verdict != LEDGER_UNKNOWN)
		return;
	a->is_code_unknown = true;
	a->code_unknown = entry->line;
	a->code_unknown_ms = clock_now_ms(&c->clock);
}
