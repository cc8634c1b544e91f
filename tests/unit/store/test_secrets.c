// Secrets: made once, rotated, revoked, never used before they are saved.

#include "controlplane/store/secrets.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NOW 1764583200ull
#define TTL 86400ull

// A store of secrets alone, that does as it is told.
struct model {
	struct store store;
	struct store_secret saved[SECRETS_MAX + 1], put[SECRETS_MAX + 1];
	bool fails; // begin does not save
	bool is_slow; // it stays pending
};

static int model_load(
	struct store *store, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	struct model *m = (struct model *)store;
	assert_int_equal(kind, STORE_SECRET);
	assert_true(max >= SECRETS_MAX);
	for (int id = 1; id <= (int)SECRETS_MAX; id++) {
		if (m->saved[id].id)
			record(ctx, &(struct store_record){
					    .kind = STORE_SECRET, .secret = m->saved[id]});
	}
	return 0;
}

static bool model_put(struct store *store, const struct store_record *record)
{
	struct model *m = (struct model *)store;
	m->put[record->secret.id] = record->secret;
	if (record->kind == STORE_SECRET_FORGOTTEN)
		m->put[record->secret.id].id = 0;
	return true;
}

static void model_save(struct model *m)
{
	memcpy(m->saved, m->put, sizeof(m->saved));
	m->store.status.is_unsaved = false;
}

static void model_begin(struct store *store, uint64_t now_ms)
{
	(void)now_ms;
	struct model *m = (struct model *)store;
	store->status.is_unsaved = m->fails;
	store->status.is_pending = m->is_slow;
	if (!m->fails && !m->is_slow)
		model_save(m);
}

static void model_poll(struct store *store, uint64_t now_ms)
{
	(void)store;
	(void)now_ms;
}

static const struct store_ops model_ops = {
	.load = model_load, .put = model_put, .begin = model_begin, .poll = model_poll};

static struct model model_new(void)
{
	return (struct model){.store.ops = &model_ops};
}

static struct secrets *must_create(struct model *m, uint64_t now_s)
{
	struct secrets *s;
	assert_int_equal(secrets_create(&m->store, now_s, &s), 0);
	return s;
}

// What the list says, as text: "1 old 2 current".
static const char *said(const struct secrets *s)
{
	static const char *const states[] = {
		[SECRETS_NEXT] = "next", [SECRETS_CURRENT] = "current", [SECRETS_OLD] = "old"};
	static char text[8192];
	struct secrets_view views[SECRETS_MAX];
	uint32_t count = secrets_list(s, views);
	int len = 0;
	text[0] = '\0';
	for (uint32_t i = 0; i < count; i++)
		len += snprintf(text + len, sizeof(text) - (size_t)len, "%s%u %s", i ? " " : "",
			views[i].id, states[views[i].state]);
	return text;
}

static void the_first_is_made_once(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s = must_create(&m, NOW);
	assert_string_equal(said(s), "1 current");
	struct secrets_view views[SECRETS_MAX];
	secrets_list(s, views);
	uint8_t key[STORE_SECRET_BYTES], zero[STORE_SECRET_BYTES] = {0};
	memcpy(key, views[0].key, sizeof(key));
	assert_memory_not_equal(key, zero, sizeof(key));
	assert_int_equal(views[0].created_s, NOW);
	secrets_destroy(s);
	s = must_create(&m, NOW + 1);
	secrets_list(s, views);
	assert_memory_equal(views[0].key, key, sizeof(key));
	assert_int_equal(views[0].created_s, NOW);
	secrets_destroy(s);
	secrets_destroy(NULL);
}

static void the_first_must_be_saved(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s;
	m.fails = true;
	assert_int_equal(secrets_create(&m.store, NOW, &s), -EAGAIN);
	m = model_new();
	m.is_slow = true;
	assert_int_equal(secrets_create(&m.store, NOW, &s), -EIO);
}

static void rotated_the_old_one_stays_for_a_while(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s = must_create(&m, NOW);
	assert_int_equal(secrets_rotate(s, TTL, NOW + 10), 2);
	assert_string_equal(said(s), "1 old 2 current");
	struct secrets_view views[SECRETS_MAX];
	secrets_list(s, views);
	assert_int_equal(views[0].retire_s, NOW + 10 + TTL);
	assert_memory_not_equal(views[0].key, views[1].key, STORE_SECRET_BYTES);
	assert_false(secrets_poll(s, NOW + 9 + TTL));
	secrets_destroy(s);
	s = must_create(&m, NOW + 9 + TTL); // over a restart
	assert_string_equal(said(s), "1 old 2 current");
	assert_true(secrets_poll(s, NOW + 10 + TTL));
	assert_string_equal(said(s), "2 current");
	assert_false(secrets_poll(s, NOW + 10 + TTL));
	secrets_destroy(s);
}

static void not_used_before_it_is_saved(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s = must_create(&m, NOW);
	// It cannot be saved: as if nothing had been.
	m.fails = true;
	assert_int_equal(secrets_rotate(s, TTL, NOW), -EAGAIN);
	assert_string_equal(said(s), "1 current");
	assert_int_equal(m.put[1].retire_s, 0);
	assert_int_equal(m.put[2].id, 0);
	assert_int_equal(secrets_rotate(s, TTL, NOW), -EAGAIN); // still unsaved: not even tried
	m.fails = false;
	store_begin(&m.store, NOW);
	// It takes a while.
	m.is_slow = true;
	assert_int_equal(secrets_rotate(s, TTL, NOW), 2);
	assert_string_equal(said(s), "1 current 2 next");
	assert_int_equal(secrets_rotate(s, TTL, NOW), -EAGAIN);
	assert_int_equal(secrets_revoke(s, 2, NOW), -EAGAIN);
	assert_false(secrets_poll(s, NOW));
	m.store.status.is_pending = m.is_slow = false;
	model_save(&m);
	assert_true(secrets_poll(s, NOW));
	assert_string_equal(said(s), "1 old 2 current");
	secrets_destroy(s);
}

static void revoked_it_is_gone_at_once(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s = must_create(&m, NOW);
	secrets_rotate(s, TTL, NOW);
	assert_int_equal(secrets_revoke(s, 1, NOW), 0);
	assert_string_equal(said(s), "2 current");
	assert_int_equal(m.saved[1].id, 0);
	assert_int_equal(secrets_revoke(s, 1, NOW), -ENOENT);
	assert_int_equal(secrets_revoke(s, 0, NOW), -ENOENT);
	// The current one: another takes over.
	assert_int_equal(secrets_revoke(s, 2, NOW), 0);
	assert_string_equal(said(s), "3 current");
	assert_int_equal(m.saved[2].id, 0);
	// On a store that cannot save, the current one stays; an old one goes all the same.
	secrets_rotate(s, TTL, NOW);
	m.fails = true;
	store_begin(&m.store, NOW);
	assert_int_equal(secrets_revoke(s, 4, NOW), -EAGAIN);
	assert_string_equal(said(s), "3 old 4 current");
	assert_int_equal(secrets_revoke(s, 3, NOW), 0);
	assert_string_equal(said(s), "4 current");
	secrets_destroy(s);
}

static void revoking_the_current_one_in_a_slow_store(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s = must_create(&m, NOW);
	m.is_slow = true;
	assert_int_equal(secrets_revoke(s, 1, NOW), 0);
	assert_string_equal(said(s), "1 current 2 next");
	m.store.status.is_pending = m.is_slow = false;
	model_save(&m);
	assert_true(secrets_poll(s, NOW));
	assert_string_equal(said(s), "2 current");
	secrets_destroy(s);
}

static void ids_go_round_to_255(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s = must_create(&m, NOW);
	for (int id = 2; id <= 255; id++)
		assert_int_equal(secrets_rotate(s, TTL, NOW), id);
	assert_int_equal(secrets_rotate(s, TTL, NOW), -ENOSPC);
	secrets_revoke(s, 7, NOW);
	assert_int_equal(secrets_rotate(s, TTL, NOW), 7);
	assert_true(secrets_poll(s, NOW + TTL));
	assert_string_equal(said(s), "7 current");
	assert_int_equal(secrets_rotate(s, TTL, NOW), 8);
	secrets_destroy(s);
}

// Not in what a core dump would hold.
static void kept_out_of_core_dumps(void **state)
{
	(void)state;
	struct model m = model_new();
	struct secrets *s = must_create(&m, NOW);
	FILE *maps = fopen("/proc/self/smaps", "r");
	assert_non_null(maps);
	char line[512];
	bool is_ours = false, is_out = false;
	while (fgets(line, sizeof(line), maps)) {
		unsigned long begin, end;
		if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
			is_ours = (uintptr_t)s >= begin && (uintptr_t)s < end;
		if (is_ours && !strncmp(line, "VmFlags:", 8))
			is_out = strstr(line, " dd") != NULL;
	}
	fclose(maps);
	assert_true(is_out);
	secrets_destroy(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_is_made_once),
		cmocka_unit_test(the_first_must_be_saved),
		cmocka_unit_test(rotated_the_old_one_stays_for_a_while),
		cmocka_unit_test(not_used_before_it_is_saved),
		cmocka_unit_test(revoked_it_is_gone_at_once),
		cmocka_unit_test(revoking_the_current_one_in_a_slow_store),
		cmocka_unit_test(ids_go_round_to_255),
		cmocka_unit_test(kept_out_of_core_dumps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
