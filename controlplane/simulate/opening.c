// The steps are those of controlplane/draws/, without files, store and barriers: place_gather(),
// the hashes of those who join, place_gather_end(), the list, place_drawn(). Who got which place is
// read from the list as a worker does, key and rank.

#include "controlplane/simulate/opening.h"

#include "controlplane/simulate/dice.h"
#include "controlplane/simulate/visitor.h"
#include "dataplane/gate/mac_state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static void begin(struct play *p, struct play_room *room)
{
	uint64_t seed[DRAW_SEED_BYTES / sizeof(uint64_t)];
	for (uint32_t i = 0; i < DRAW_SEED_BYTES / sizeof(seed[0]); i++)
		seed[i] = dice_next(&p->dice);
	mac_key_init(&room->drawn.mac, (const uint8_t *)seed, sizeof(seed));
	far_place(room->far, false); // they come again, each as somebody new
	room->first_slot = place_gather(room->line);
	assert(room->first_slot != 0);
}

void opening_join(struct play *p, struct play_room *room, uint32_t who)
{
	p->people[who].key = mac_state_word(&room->drawn.mac, visitor_id(who));
	place_gathered(room->line);
	room->by_rank[room->rank_count++] = who;
}

static int list_hashes(const struct play *p, struct play_room *room, uint64_t count)
{
	uint64_t *hashes = malloc((count + 1) * sizeof(*hashes));
	uint64_t *scratch = malloc((count + 1) * sizeof(*scratch));
	for (uint64_t i = 0; hashes && i < count; i++)
		hashes[i] = p->people[room->by_rank[i]].key;
	if (hashes && scratch)
		draw_sort(hashes, scratch, count);
	free(scratch);
	room->drawn.hashes = hashes;
	return hashes && scratch ? 0 : -ENOMEM;
}

// The place from 0 that nobody has; equal hashes, if there ever were two, come one after the other.
static uint64_t place_of(const struct draw_list *list, uint64_t hash, const uint32_t *taken)
{
	bool is_listed;
	uint64_t place = draw_rank(list, draw_key(list, hash), &is_listed);
	assert(is_listed);
	if (draw_is_shared(list, place))
		place = draw_place(list, place, hash);
	while (taken[place] != PLAY_NEVER)
		place++;
	return place;
}

static int place_all(struct play *p, struct play_room *room, uint64_t count)
{
	uint32_t *by_rank = malloc(room->rank_max * sizeof(*by_rank));
	if (!by_rank)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		by_rank[i] = PLAY_NEVER;
	for (uint64_t i = 0; i < count; i++) {
		struct play_person *person = &p->people[room->by_rank[i]];
		by_rank[place_of(&room->drawn, person->key, by_rank)] = room->by_rank[i];
		person->key = draw_key(&room->drawn, person->key);
		person->state = PLAY_WAITING;
	}
	free(room->by_rank);
	room->by_rank = by_rank;
	return 0;
}

static int draw(struct play *p, struct play_room *room)
{
	struct draw_list *list = &room->drawn;
	const uint64_t now_ms = play_cluster_ms(p), count = room->rank_count;
	const uint64_t end = place_gather_end(room->line, room->first_slot, now_ms / PLACE_SLOT_MS);
	if (list_hashes(p, room, count) < 0)
		return -ENOMEM;
	room->draws = calloc(1, sizeof(*room->draws) + sizeof(room->draws->lists[0]));
	if (!room->draws)
		return -ENOMEM;
	list->number = now_ms;
	list->first_slot = room->first_slot;
	list->end_slot = end;
	list->base = place_before(room->line, room->first_slot);
	list->count = count;
	draw_list_init(list);
	*room->draws = (struct draw_set){.count = 1};
	room->draws->lists[0] = list;
	atomic_store(&room->line->drawn, room->draws);
	const bool is_drawn = place_drawn(room->line, count, end, 0);
	assert(is_drawn);
	atomic_fetch_sub(&room->line->gathered, count);
	controller_forget_told(room->controller, now_ms);
	far_place(room->far, true);
	return place_all(p, room, count);
}

int opening_turn(struct play *p, struct play_room *room)
{
	if (room->is_open)
		return 0;
	if (room->first_slot == 0 && p->now_ms >= room->gathers_ms &&
		room->gathers_ms < room->opens_ms)
		begin(p, room);
	if (p->now_ms < room->opens_ms)
		return 0;
	room->is_open = true;
	int ret = 0;
	if (room->first_slot != 0)
		ret = draw(p, room);
	else
		far_place(room->far, false);
	controller_set_available(room->controller, true, play_cluster_ms(p));
	return ret;
}

void opening_fini(struct play_room *room)
{
	free((void *)room->drawn.hashes);
	free(room->draws);
}
