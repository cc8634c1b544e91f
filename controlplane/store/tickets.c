// Three places for three epochs that follow each other: an epoch's place is its number modulo
// three.

#include "controlplane/store/tickets.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

struct tickets {
	struct store *store;
	uint32_t epoch; // the current one
	struct store_ticket of[TICKETS_MAX]; // epoch 0: none
};

static uint32_t epoch_at(uint64_t now_s)
{
	return (uint32_t)(now_s / TICKETS_EPOCH_S);
}

static bool is_near(uint32_t epoch, uint32_t current)
{
	return epoch + 1 >= current && epoch <= current + 1;
}

static void loaded(void *ctx, const struct store_record *record)
{
	struct tickets *t = ctx;
	if (record->ticket.epoch > 0 && is_near(record->ticket.epoch, t->epoch))
		t->of[record->ticket.epoch % TICKETS_MAX] = record->ticket;
}

static void put(struct tickets *t, enum store_kind kind, const struct store_ticket *ticket)
{
	struct store_record record = {.kind = kind, .ticket = *ticket};
	store_put(t->store, &record);
	explicit_bzero(&record, sizeof(record));
}

// Returns whether one was made.
static bool make(struct tickets *t, uint32_t epoch)
{
	struct store_ticket *ticket = &t->of[epoch % TICKETS_MAX];
	if (ticket->epoch == epoch)
		return false;
	if (ticket->epoch > 0)
		put(t, STORE_TICKET_FORGOTTEN, ticket);
	explicit_bzero(ticket, sizeof(*ticket));
	if (getrandom(ticket->key, sizeof(ticket->key), 0) != sizeof(ticket->key))
		return false; // it is tried again in a second
	ticket->epoch = epoch;
	put(t, STORE_TICKET, ticket);
	return true;
}

bool tickets_poll(struct tickets *t, uint64_t now_s)
{
	const struct store_status *status = store_poll(t->store, now_s * 1000);
	uint32_t epoch = epoch_at(now_s);
	bool has_moved = epoch != t->epoch;
	if (status->is_pending)
		return false;
	t->epoch = epoch;
	bool is_made = make(t, epoch);
	is_made |= make(t, epoch + 1);
	if (is_made)
		store_begin(t->store, now_s * 1000);
	return has_moved || is_made;
}

// The store may hold seeds of long ago, by a process that has been down: they are not for us to
// keep.
static void forget_old(void *ctx, const struct store_record *record)
{
	struct tickets *t = ctx;
	if (!is_near(record->ticket.epoch, t->epoch))
		put(t, STORE_TICKET_FORGOTTEN, &record->ticket);
}

int tickets_create(struct store *store, uint64_t now_s, struct tickets **tickets)
{
	struct tickets *t =
		mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED)
		return -errno;
	// Best effort, as with secrets.
	madvise(t, sizeof(*t), MADV_DONTDUMP);
	mlock(t, sizeof(*t));
	t->store = store;
	t->epoch = epoch_at(now_s);
	int ret = store_load(store, STORE_TICKET, STORE_HISTORY_MAX, loaded, t);
	if (ret == 0)
		ret = store_load(store, STORE_TICKET, STORE_HISTORY_MAX, forget_old, t);
	if (ret < 0) {
		tickets_destroy(t);
		return ret;
	}
	tickets_poll(t, now_s);
	*tickets = t;
	return 0;
}

void tickets_destroy(struct tickets *t)
{
	if (!t)
		return;
	explicit_bzero(t, sizeof(*t));
	munmap(t, sizeof(*t));
}

uint32_t tickets_list(const struct tickets *t, const uint8_t *seeds[TICKETS_MAX])
{
	const uint32_t epochs[] = {t->epoch, t->epoch - 1, t->epoch + 1};
	uint32_t count = 0;
	for (uint32_t i = 0; i < TICKETS_MAX; i++) {
		const struct store_ticket *ticket = &t->of[epochs[i] % TICKETS_MAX];
		if (epochs[i] > 0 && ticket->epoch == epochs[i])
			seeds[count++] = ticket->key;
		else if (i == 0)
			break; // without a current one none is given; the old ones would seal
	}
	return count;
}

bool tickets_keep(struct tickets *t, uint32_t epoch, const uint8_t key[STORE_SECRET_BYTES])
{
	struct store_ticket *ticket = &t->of[epoch % TICKETS_MAX];
	const bool is_same =
		ticket->epoch == epoch && memcmp(ticket->key, key, STORE_SECRET_BYTES) == 0;
	if (epoch == 0 || !is_near(epoch, t->epoch) || is_same)
		return false;
	if (ticket->epoch > 0 && ticket->epoch != epoch)
		put(t, STORE_TICKET_FORGOTTEN, ticket);
	ticket->epoch = epoch;
	memcpy(ticket->key, key, STORE_SECRET_BYTES);
	put(t, STORE_TICKET, ticket);
	return true;
}

const uint8_t *tickets_find(const struct tickets *t, uint32_t epoch)
{
	const struct store_ticket *ticket = &t->of[epoch % TICKETS_MAX];
	return epoch > 0 && ticket->epoch == epoch ? ticket->key : NULL;
}
