// A table by id. Which secret is the current one is not stored: it is the one that has no date to
// retire at, and the transaction that adds the next one gives the current one its date.

#include "controlplane/store/secrets.h"

#include "controlplane/store/locked.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define TOLD_S (1ull << 53) // a date that does not come: so it verifies, and signs not yet

struct secret {
	uint8_t state; // enum secrets_state
	struct store_secret of;
};

struct secrets {
	struct store *store;
	uint8_t current, next; // ids; 0: none
	struct secret by_id[SECRETS_MAX + 1];
};

static void loaded(void *ctx, const struct store_record *record)
{
	struct secrets *s = ctx;
	const struct store_secret *secret = &record->secret;
	bool is_current = secret->retire_s == 0;
	uint8_t state = is_current                   ? SECRETS_CURRENT
			: secret->retire_s == TOLD_S ? SECRETS_TOLD
						     : SECRETS_OLD;
	s->by_id[secret->id] = (struct secret){state, *secret};
	if (is_current)
		s->current = secret->id;
}

int secrets_create(struct store *store, uint64_t now_s, struct secrets **secrets)
{
	struct secrets *s = locked_take(sizeof(*s));
	if (!s)
		return -errno;
	s->store = store;
	int ret = store_load(store, STORE_SECRET, SECRETS_MAX, loaded, s);
	if (ret == 0 && s->current == 0)
		ret = secrets_rotate(s, 0, now_s);
	if (ret >= 0 && s->current == 0)
		ret = -EIO;
	if (ret < 0) {
		secrets_destroy(s);
		return ret;
	}
	*secrets = s;
	return 0;
}

void secrets_destroy(struct secrets *s)
{
	locked_give(s, sizeof(*s));
}

static bool put(struct secrets *s, enum store_kind kind, const struct store_secret *secret)
{
	struct store_record record = {.kind = kind, .secret = *secret};
	bool is_put = store_put(s->store, &record);
	explicit_bzero(&record, sizeof(record));
	return is_put;
}

// The id after the current one that is free; 0 if none is.
//   taken  by id, elsewhere; NULL: none
static uint8_t id_free(const struct secrets *s, const bool *taken)
{
	uint32_t id = s->current;
	for (uint32_t tried = 0; tried < SECRETS_MAX; tried++) {
		id = id % SECRETS_MAX + 1;
		if (s->by_id[id].state == SECRETS_ABSENT && !(taken && taken[id]))
			return (uint8_t)id;
	}
	return 0;
}

static void forget(struct secrets *s, uint8_t id)
{
	put(s, STORE_SECRET_FORGOTTEN, &s->by_id[id].of);
	explicit_bzero(&s->by_id[id], sizeof(s->by_id[id]));
}

// The store has the next one.
static void promote(struct secrets *s)
{
	if (s->current)
		s->by_id[s->current].state = SECRETS_OLD;
	s->by_id[s->next].state = SECRETS_CURRENT;
	s->current = s->next;
	s->next = 0;
}

// The store has not: what it still tries to write is made what it was.
static void demote(struct secrets *s)
{
	forget(s, s->next);
	s->next = 0;
	if (s->current) {
		s->by_id[s->current].of.retire_s = 0;
		put(s, STORE_SECRET, &s->by_id[s->current].of);
	}
}

static void settle_next(struct secrets *s, uint64_t now_s)
{
	const struct store_status *status = store_poll(s->store, now_s * 1000);
	if (status->is_pending)
		return;
	if (status->is_unsaved)
		demote(s);
	else
		promote(s);
}

int secrets_rotate(struct secrets *s, uint64_t ttl_s, uint64_t now_s)
{
	const struct store_status *status = store_poll(s->store, now_s * 1000);
	if (s->next || status->is_pending || status->is_unsaved)
		return -EAGAIN;
	uint8_t id = id_free(s, NULL);
	if (id == 0)
		return -ENOSPC;
	struct secret *next = &s->by_id[id];
	if (getrandom(next->of.key, STORE_SECRET_BYTES, 0) != STORE_SECRET_BYTES)
		return -errno;
	next->state = SECRETS_NEXT;
	next->of.id = id;
	next->of.created_s = now_s;
	s->next = id;
	bool is_put = put(s, STORE_SECRET, &next->of);
	if (s->current) {
		s->by_id[s->current].of.retire_s = now_s + ttl_s;
		is_put &= put(s, STORE_SECRET, &s->by_id[s->current].of);
	}
	assert(is_put); // the batch is as good as empty
	store_begin(s->store, now_s * 1000);
	settle_next(s, now_s);
	return s->next == id || s->current == id ? id : -EAGAIN;
}

int secrets_revoke(struct secrets *s, uint8_t id, uint64_t now_s)
{
	if (s->by_id[id].state == SECRETS_ABSENT)
		return -ENOENT;
	if (id == s->next)
		return -EAGAIN;
	if (id == s->current) {
		int ret = secrets_rotate(s, 0, now_s);
		if (ret < 0 || id == s->current) // not saved, or not yet: it retires then
			return ret < 0 ? ret : 0;
	}
	forget(s, id);
	store_begin(s->store, now_s * 1000);
	return 0;
}

int secrets_make(const struct secrets *s, const bool taken[SECRETS_MAX + 1], uint64_t now_s,
	struct store_secret *secret)
{
	for (uint32_t id = 1; id <= SECRETS_MAX; id++)
		if (s->by_id[id].state == SECRETS_TOLD)
			return -EAGAIN;
	*secret = (struct store_secret){.id = id_free(s, taken), .created_s = now_s};
	if (secret->id == 0)
		return -ENOSPC;
	if (getrandom(secret->key, STORE_SECRET_BYTES, 0) != STORE_SECRET_BYTES)
		return -errno;
	return 0;
}

bool secrets_keep(struct secrets *s, const struct store_secret *secret, enum secrets_state state)
{
	assert(secret->id > 0 && state != SECRETS_ABSENT && state != SECRETS_NEXT);
	struct secret *kept = &s->by_id[secret->id];
	struct store_secret to = *secret;
	to.retire_s = state == SECRETS_CURRENT ? 0
		      : state == SECRETS_TOLD  ? TOLD_S
					       : secret->retire_s;
	const bool is_same = kept->state == state && kept->of.retire_s == to.retire_s &&
			     memcmp(kept->of.key, to.key, sizeof(to.key)) == 0;
	if (!is_same) {
		if (state == SECRETS_CURRENT && s->current && s->current != secret->id) {
			s->by_id[s->current].state = SECRETS_OLD;
			s->by_id[s->current].of.retire_s = TOLD_S; // till its own record comes
		}
		if (state == SECRETS_CURRENT)
			s->current = secret->id;
		else if (s->current == secret->id)
			s->current = 0; // what signs is in a record that comes next
		*kept = (struct secret){(uint8_t)state, to};
		put(s, STORE_SECRET, &to);
	}
	explicit_bzero(&to, sizeof(to));
	return !is_same;
}

bool secrets_drop(struct secrets *s, uint8_t id)
{
	if (s->by_id[id].state == SECRETS_ABSENT || id == s->current)
		return false;
	forget(s, id);
	return true;
}

bool secrets_poll(struct secrets *s, uint64_t now_s)
{
	uint8_t current = s->current;
	bool has_changed = false;
	if (s->next)
		settle_next(s, now_s);
	for (uint32_t id = 1; id <= SECRETS_MAX; id++) {
		const struct secret *secret = &s->by_id[id];
		if (secret->state != SECRETS_OLD || now_s < secret->of.retire_s)
			continue;
		forget(s, (uint8_t)id);
		has_changed = true;
	}
	return has_changed || s->current != current;
}

uint32_t secrets_list(const struct secrets *s, struct secrets_view views[SECRETS_MAX])
{
	uint32_t count = 0;
	for (uint32_t id = 1; id <= SECRETS_MAX; id++) {
		const struct secret *secret = &s->by_id[id];
		if (secret->state == SECRETS_ABSENT)
			continue;
		views[count++] = (struct secrets_view){(uint8_t)id, secret->state,
			secret->of.created_s, secret->of.retire_s, secret->of.key};
	}
	return count;
}
