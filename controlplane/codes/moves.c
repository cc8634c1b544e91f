// A ring of moves, found by holder through chains of a hash table of the same size.

#include "controlplane/codes/moves.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define NONE UINT32_MAX
#define MASK (STORE_MOVES_MAX - 1)
static_assert((STORE_MOVES_MAX & MASK) == 0, "a mask finds the place of a number");

struct moves {
	uint64_t next; // number of the next one
	uint32_t heads[STORE_MOVES_MAX]; // by hash of the holder
	uint32_t chains[STORE_MOVES_MAX]; // by place
	struct store_move ring[STORE_MOVES_MAX]; // lane_id 0: nothing, and in no chain
};

static uint32_t *head_of(const struct moves *moves, uint64_t holder)
{
	const uint64_t mixed = holder * 0x9e3779b97f4a7c15u;
	return (uint32_t *)&moves->heads[mixed >> 32 & MASK];
}

static void unlink_place(struct moves *moves, uint32_t place)
{
	struct store_move *move = &moves->ring[place];
	if (move->lane_id == 0)
		return;
	uint32_t *link = head_of(moves, move->holder);
	while (*link != place)
		link = &moves->chains[*link];
	*link = moves->chains[place];
	move->lane_id = 0;
}

const struct store_move *moves_find(const struct moves *moves, uint64_t holder, bool is_once)
{
	uint32_t place = *head_of(moves, holder);
	while (place != NONE) {
		const struct store_move *move = &moves->ring[place];
		if (move->holder == holder && move->is_once == is_once)
			return move;
		place = moves->chains[place];
	}
	return NULL;
}

// The last one of a holder holds, also if it has come to nothing.
static void enter(struct moves *moves, const struct store_move *move)
{
	const uint32_t place = (uint32_t)move->number & MASK;
	const struct store_move *before = moves_find(moves, move->holder, move->is_once);
	if (before)
		unlink_place(moves, (uint32_t)before->number & MASK);
	unlink_place(moves, place);
	moves->ring[place] = *move;
	moves->next = move->number + 1;
	if (move->lane_id == 0)
		return;
	uint32_t *head = head_of(moves, move->holder);
	moves->chains[place] = *head;
	*head = place;
}

static void take_over(void *context, const struct store_record *record)
{
	enter(context, &record->move);
}

int moves_create(struct store *store, struct moves **moves)
{
	struct moves *made = calloc(1, sizeof(*made));
	if (!made)
		return -ENOMEM;
	for (uint32_t i = 0; i < STORE_MOVES_MAX; i++)
		made->heads[i] = NONE;
	const int ret = store_load(store, STORE_MOVE, STORE_MOVES_MAX, take_over, made);
	if (ret < 0) {
		moves_destroy(made);
		return ret;
	}
	*moves = made;
	return 0;
}

void moves_destroy(struct moves *moves)
{
	free(moves);
}

void moves_add(struct moves *moves, struct store_move *move)
{
	assert(move->lane_id != 0);
	move->number = moves->next;
	enter(moves, move);
}

bool moves_forget(struct moves *moves, uint64_t visitor, uint64_t among, struct store_move *move)
{
	for (uint64_t i = 1; i <= among && i <= moves->next; i++) {
		const uint32_t place = (uint32_t)(moves->next - i) & MASK;
		if (moves->ring[place].lane_id == 0 || moves->ring[place].visitor != visitor)
			continue;
		unlink_place(moves, place);
		*move = moves->ring[place];
		return true;
	}
	return false;
}

uint64_t moves_bytes(void)
{
	return sizeof(struct moves);
}
