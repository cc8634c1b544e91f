// Draws over appliances: what draws/ says and is told, as sealed records and as entries of the
// ledger. What a gathering is on the way to is decided in draws/draws_conduct.c, by whoever is the
// conductor; here it only gets its bytes.

#include "controlplane/appliance/inside.h"

#include "controlplane/draws/draws_cluster.h"

#include <xxhash.h>

#include <string.h>

#define WORDS 9u // of 8 bytes
#define HEAD_BYTES (SHARED_DRAW_HEAD + 6u) // step, bytes of salt, line
#define SAID_BYTES \
	(HEAD_BYTES + WORDS * 8u + DRAW_SEED_BYTES + DRAW_SALT_BYTES_MAX + STORE_HASH_BYTES)
static_assert(SAID_BYTES <= SHARED_DRAW_MAX, "a gathering fits its record");

// --- bytes, big-endian

static void put_bytes(uint8_t **at, const uint8_t *bytes, size_t count)
{
	memcpy(*at, bytes, count);
	*at += count;
}

static void get_bytes(const uint8_t **at, uint8_t *bytes, size_t count)
{
	memcpy(bytes, *at, count);
	*at += count;
}

static void put_number(uint8_t **at, uint64_t value, unsigned bytes)
{
	for (unsigned i = bytes; i-- > 0; value >>= 8)
		(*at)[i] = (uint8_t)value;
	*at += bytes;
}

static uint64_t get_number(const uint8_t **at, unsigned bytes)
{
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | (*at)[i];
	*at += bytes;
	return value;
}

static void encode(const struct draws_said *said, uint8_t bytes[SAID_BYTES])
{
	const uint64_t words[WORDS] = {said->number, said->epoch, said->began_ms, said->first_slot,
		said->end_slot, said->next, said->before, said->total, said->count};
	uint8_t *at = bytes + SHARED_DRAW_HEAD;
	put_number(&at, said->step, 1);
	put_number(&at, said->salt_bytes, 1);
	put_number(&at, said->line_id, 4);
	for (unsigned i = 0; i < WORDS; i++)
		put_number(&at, words[i], 8);
	put_bytes(&at, said->seed, sizeof(said->seed));
	put_bytes(&at, said->salt, sizeof(said->salt));
	put_bytes(&at, said->list_sha256, sizeof(said->list_sha256));
}

static bool decode(const uint8_t *bytes, uint32_t len, uint32_t version, struct draws_said *said)
{
	uint64_t *const words[WORDS] = {&said->number, &said->epoch, &said->began_ms,
		&said->first_slot, &said->end_slot, &said->next, &said->before, &said->total,
		&said->count};
	const uint8_t *at = bytes + SHARED_DRAW_HEAD;
	if (len < SAID_BYTES)
		return false;
	*said = (struct draws_said){.version = version};
	said->step = (uint8_t)get_number(&at, 1);
	said->salt_bytes = (uint8_t)get_number(&at, 1);
	said->line_id = (uint32_t)get_number(&at, 4);
	for (unsigned i = 0; i < WORDS; i++)
		*words[i] = get_number(&at, 8);
	get_bytes(&at, said->seed, sizeof(said->seed));
	get_bytes(&at, said->salt, sizeof(said->salt));
	get_bytes(&at, said->list_sha256, sizeof(said->list_sha256));
	return said->step >= DRAWS_PREPARED && said->step <= DRAWS_DRAWN &&
	       said->salt_bytes <= DRAW_SALT_BYTES_MAX;
}

static uint32_t id_of(uint32_t line_id, uint64_t number)
{
	const uint64_t words[] = {line_id, number};
	return (uint32_t)XXH3_64bits(words, sizeof(words));
}

// --- what is told

// A record that is no more says no line and number: those that are known are looked through.
static void forget(struct control *c, uint32_t id)
{
	uint32_t line_id;
	uint64_t number = 0;
	for (uint32_t next = 0; draws_next(c->draws, &next, &line_id, &number);)
		if (id_of(line_id, number) == id) {
			draws_untold(c->draws, line_id, number);
			return;
		}
}

void appliance_draws_told(
	void *ctx, uint32_t id, uint32_t version, const uint8_t *bytes, uint32_t len)
{
	struct control *c = ctx;
	struct draws_said said;
	if (!c->draws)
		return; // at start: shared_tell_draws()
	if (len == 0)
		forget(c, id);
	else if (decode(bytes, len, version, &said))
		draws_told(c->draws, &said, clock_now_ms(&c->clock));
	explicit_bzero(&said, sizeof(said));
}

// --- what draws want done

static bool seam_put(void *ctx, const struct draws_said *said)
{
	struct control *c = ctx;
	uint8_t bytes[SAID_BYTES];
	encode(said, bytes);
	const bool is_put = shared_put_draw(c->appliance->shared,
		id_of(said->line_id, said->number), said->version, bytes, sizeof(bytes));
	explicit_bzero(bytes, sizeof(bytes));
	return is_put;
}

static bool seam_forget(void *ctx, uint32_t line_id, uint64_t number)
{
	struct control *c = ctx;
	return shared_drop_draw(c->appliance->shared, id_of(line_id, number));
}

static bool seam_left(void *ctx, uint32_t line_id, uint64_t *number, uint64_t *visitor)
{
	struct control *c = ctx;
	return member_left_gathered(c->appliance->member, line_id, number, visitor);
}

void appliance_see_draws(struct control *c)
{
	const struct member_status *status = &c->appliance->status;
	const bool is_whole = status->is_ready && !status->is_resyncing && !status->is_away &&
			      !status->is_recovering && status->cursor == status->newest;
	struct draws_cluster_view view = {.is_known = status->is_ready,
		.is_in_office = status->office.is_in_office && is_whole,
		.final = status->final,
		.epoch = status->epoch};
	for (uint32_t i = 0; i < status->member_count; i++)
		view.live |= (uint64_t)status->members[i].is_live << status->members[i].number;
	draws_cluster_see(c->draws, &view);
}

void appliance_share_draws(struct control *c)
{
	const char *name = c->started->cluster->appliance;
	const struct draws_cluster_seams seams = {.ctx = c,
		.source = XXH3_64bits(name, strlen(name)),
		.sync_ms = (uint32_t)c->started->cluster->sync_ms,
		.put = seam_put,
		.forget = seam_forget,
		.left = seam_left};
	draws_share(c->draws, &seams);
	appliance_see_draws(c);
	shared_tell_draws(c->appliance->shared);
	if (c->appliance->status.is_ready)
		draws_sweep(c->draws);
}

void appliance_salt_used(struct control *c, const struct control_room *room)
{
	if (c->appliance->status.office.is_in_office)
		appliance_engine.share(c, room);
}

// --- in batches

uint32_t appliance_draws_offer(struct control *c, struct ledger_entry *entries, uint32_t max)
{
	return c->draws ? draws_cluster_offer(c->draws, entries, max, clock_now_ms(&c->clock)) : 0;
}

void appliance_draws_offered(
	struct control *c, const struct ledger_entry *entry, const struct ledger_answer *answer)
{
	const bool is_placed =
		entry->kind == LEDGER_GATHERED && entry->gathered.what == LEDGER_GATHERED_PLACED;
	if (is_placed && answer->verdict == LEDGER_DONE)
		member_left_placed(c->appliance->member, entry->line, &entry->gathered);
	draws_cluster_offered(c->draws, entry, answer);
}

void appliance_draws_gathered(void *ctx, const struct ledger_news *item)
{
	struct control *c = ctx;
	draws_cluster_gathered(c->draws, item);
}

uint64_t appliance_draws_before(void *ctx, uint32_t line_id)
{
	struct control *c = ctx;
	return c->draws ? draws_before(c->draws, line_id) : 0;
}

bool appliance_draws_are_restored(struct control *c)
{
	if (!c->draws)
		return true;
	appliance_see_draws(c);
	return draws_is_restored(c->draws);
}
