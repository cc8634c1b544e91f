// Draws, step by step, with a store and barriers that are late, and with an end of the process at
// every step: always the same people get the same places, late ones behind them.
// LONG: one world, and every story of it

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/sha.h>

#include "controlplane/draws/draws.h"
#include "dataplane/gate/mac_state.h"
#include "dataplane/gate/place.h"

#define ENTRIES 4096u
#define LINE_ID 7u
#define BEGIN_MS 1800000000000ull
#define OPENS 5000u // an epoch
#define RECORDS_MAX 64u
#define JOINED_MAX 400u
#define TURN_MS 20u

// All that outlasts a process, and what the store does not know yet.
static struct world {
	struct place_line *line;
	char folder[64];
	struct store store;
	struct store_draw records[RECORDS_MAX];
	uint32_t record_count;
	uint64_t now_ms, barriers, passed;
	uint64_t visitors[JOINED_MAX];
	uint32_t joined;
	uint64_t late[64];
	uint32_t late_count;
	uint64_t seed;
} w;

static struct draws *draws;
static struct draws_line *line;
static struct draws_wish wish;

static uint64_t next(void)
{
	w.seed = w.seed * 6364136223846793005u + 1442695040888963407u;
	return w.seed >> 20 ^ w.seed << 44;
}

static int load(
	struct store *s, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	(void)s, (void)max;
	for (uint32_t i = 0; kind == STORE_DRAW && i < w.record_count; i++)
		record(ctx, &(struct store_record){.kind = kind, .draw = w.records[i]});
	return 0;
}

static bool put(struct store *s, const struct store_record *r)
{
	(void)s;
	uint32_t i = 0;
	while (i < w.record_count && w.records[i].number != r->draw.number)
		i++;
	if (r->kind == STORE_DRAW_FORGOTTEN) {
		assert_true(i < w.record_count);
		memmove(&w.records[i], &w.records[i + 1],
			(--w.record_count - i) * sizeof(w.records[0]));
		return true;
	}
	assert_int_equal(r->kind, STORE_DRAW);
	assert_true(i < RECORDS_MAX);
	w.record_count += i == w.record_count;
	w.records[i] = r->draw;
	return true;
}

static void poll(struct store *s, uint64_t now_ms)
{
	(void)s, (void)now_ms;
}

static const struct store_ops ops = {.load = load, .put = put, .begin = poll, .poll = poll};

static uint64_t barrier_begin(void *ctx)
{
	(void)ctx;
	return ++w.barriers;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	(void)ctx;
	return token <= w.passed;
}

static void fill_random(void *ctx, uint8_t *bytes, uint32_t count)
{
	(void)ctx;
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)next();
}

static void say(void *ctx, uint32_t line_id, const char *text)
{
	(void)ctx, (void)line_id, (void)text;
}

static void begin_process(void)
{
	const struct draws_plan plan = {.folder = w.folder};
	const struct draws_seams seams = {.barrier_begin = barrier_begin,
		.barrier_passed = barrier_passed,
		.random = fill_random,
		.say = say};
	atomic_store(&w.line->drawn, NULL); // as opening the file does
	assert_int_equal(draws_create(&plan, &w.store, &seams, &draws), 0);
	line = draws_take(draws, LINE_ID, w.line, true);
	assert_non_null(line);
	assert_true(place_begin(w.line, w.now_ms / PLACE_SLOT_MS));
	w.passed = w.barriers; // there are no workers yet
}

static void end_process(void)
{
	draws_destroy(draws);
	draws = NULL;
}

static void remove_folder(void)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", w.folder);
	assert_int_equal(system(command), 0);
}

static int begin(void **state)
{
	(void)state;
	w = (struct world){.store = {.ops = &ops}, .now_ms = BEGIN_MS, .seed = 11};
	snprintf(w.folder, sizeof(w.folder), "/tmp/sluice-draws-XXXXXX");
	w.line = calloc(1, place_line_bytes(ENTRIES));
	if (!w.line || !mkdtemp(w.folder))
		return -1;
	place_line_init(w.line, LINE_ID, ENTRIES);
	place_begin(w.line, w.now_ms / PLACE_SLOT_MS);
	wish = (struct draws_wish){.prepares = true, .gathered_max = JOINED_MAX};
	begin_process();
	return 0;
}

static int end(void **state)
{
	(void)state;
	end_process();
	remove_folder();
	free(w.line);
	return 0;
}

// A turn of control, and now and then one of the workers.
static void turn(void)
{
	w.now_ms += TURN_MS;
	w.store.status.commits_total++;
	draws_wish(line, &wish, w.now_ms);
	draws_turn(draws, w.now_ms);
	place_close(w.line, w.now_ms / PLACE_SLOT_MS);
	if (next() % 2)
		w.passed = w.barriers;
}

// What a worker does with a newcomer.
static void arrive(void)
{
	struct gather_ids *ids = atomic_load(&draws_gather(line)->open);
	if (ids && gather_join(ids, w.line, w.joined + 1) > 0) {
		w.visitors[w.joined] = w.joined + 1;
		w.joined++;
	} else if (!ids) {
		w.late[w.late_count++] = place_mint(w.line, w.now_ms / PLACE_SLOT_MS, 0);
	}
}

static struct draws_view look(void)
{
	struct draws_view view;
	draws_look(line, &view);
	return view;
}

static void wait_for_draw(void)
{
	for (int i = 0; i < 2000 && look().is_undrawn; i++) {
		turn();
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	assert_false(look().is_undrawn);
}

static int compare(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

// What the record of the draw says, worked out anew from visitors and seed.
static void check_draw(uint64_t before)
{
	static uint64_t hashes[JOINED_MAX];
	static char text[JOINED_MAX * DRAW_LINE_BYTES];
	struct mac_key key;
	uint8_t secret[DRAW_SEED_BYTES + DRAW_SALT_BYTES_MAX], sha[32];
	const struct store_draw *record = &w.records[0];
	assert_true(record->is_drawn);
	assert_int_equal(record->count, w.joined);
	memcpy(secret, record->seed, DRAW_SEED_BYTES);
	memcpy(secret + DRAW_SEED_BYTES, record->salt, record->salt_bytes);
	mac_key_init(&key, secret, DRAW_SEED_BYTES + record->salt_bytes);
	for (uint32_t i = 0; i < w.joined; i++)
		hashes[i] = mac_state_word(&key, w.visitors[i]);
	qsort(hashes, w.joined, sizeof(hashes[0]), compare);
	draw_text(hashes, 0, w.joined, text);
	SHA256((uint8_t *)text, w.joined * DRAW_LINE_BYTES, sha);
	assert_memory_equal(sha, record->list_sha256, sizeof(sha));
	const struct draw_list *list = atomic_load(&w.line->drawn)->lists[0];
	for (uint32_t i = 0; i < w.joined; i++) {
		uint64_t rank, hash, place;
		assert_true(place_rank(w.line, draw_key(list, hashes[i]), &rank));
		assert_int_equal(rank, before + i);
		assert_ptr_equal(
			draws_place(line, record->number, 0, w.visitors[i], &hash, &place), list);
		assert_int_equal(hashes[place], hash);
	}
	for (uint32_t i = 0; i < w.late_count; i++) {
		uint64_t rank;
		place_rank(w.line, w.late[i], &rank);
		assert_int_equal(rank, before + w.joined + i);
	}
	assert_int_equal(place_total(w.line), before + w.joined + w.late_count);
}

static uint32_t until_gathering(void)
{
	uint32_t turns = 0;
	for (; !look().is_gathering; turns++) {
		assert_true(turns < 100);
		turn();
	}
	return turns;
}

static void a_seed_is_saved_before_anybody_gathers(void **state)
{
	(void)state;
	wish.gathers = true;
	wish.epoch = OPENS;
	w.store.status.is_unsaved = true; // the disk is full
	for (int i = 0; i < 20; i++)
		turn();
	assert_false(look().is_gathering);
	assert_int_equal(w.record_count, 1);
	assert_false(w.records[0].is_drawn);
	w.store.status.is_unsaved = false;
	until_gathering();
	const struct gather_proof *proof = atomic_load(&draws_gather(line)->proof);
	assert_non_null(strstr(proof->json, "\"seed\":null"));
	assert_non_null(strstr(proof->json, "\"commitment\":\""));
}

// The process ends after `cut` turns; what happens is the same whenever that is.
static void live_through(uint32_t cut)
{
	uint32_t turns = 0;
	for (uint32_t i = 0; i < 3; i++)
		assert_true(place_mint(w.line, w.now_ms / PLACE_SLOT_MS, 0) > 0);
	for (; turns < 40; turns++) {
		wish.gathers = turns >= 3 && turns < 25;
		wish.epoch = wish.gathers ? OPENS : 0;
		if (turns == cut) {
			end_process();
			w.now_ms += 100000;
			begin_process();
		}
		turn();
		if (turns >= 3)
			for (int i = 0; i < 5 && w.late_count < 40; i++)
				arrive();
		nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	wait_for_draw();
	w.passed = w.barriers;
	turn();
}

static void an_end_at_every_step(void **state)
{
	for (uint32_t cut = 0; cut <= 40; cut++) {
		print_message("after %u turns\n", cut);
		if (cut > 0)
			assert_int_equal(begin(state), 0);
		live_through(cut);
		// Who came before anybody could gather has a place before all of them.
		uint32_t early = 0;
		const uint64_t first = w.records[0].first_slot;
		while (early < w.late_count && place_slot(w.late[early]) < first)
			early++;
		memmove(w.late, &w.late[early], (w.late_count -= early) * sizeof(w.late[0]));
		assert_true(w.joined > 0);
		check_draw(3 + early);
		end_process();
		begin_process(); // and once more after it
		check_draw(3 + early);
		if (cut < 40)
			end(state);
	}
}

static void the_salt_counts_as_of_the_closing(void **state)
{
	(void)state;
	wish.gathers = true;
	wish.epoch = OPENS;
	until_gathering();
	for (int i = 0; i < 50; i++)
		arrive();
	for (int i = 0; i < 10; i++)
		turn();
	wish.salt_bytes = 3;
	memcpy(wish.salt, "abc", 3);
	turn();
	assert_non_null(
		strstr(atomic_load(&draws_gather(line)->proof)->json, "\"salt\":\"616263\""));
	wish.gathers = false;
	turn();
	turn();
	end_process();
	wish.salt_bytes = 0; // another one by now
	begin_process();
	wait_for_draw();
	assert_int_equal(w.records[0].salt_bytes, 3);
	check_draw(0);
	assert_non_null(strstr(atomic_load(&draws_gather(line)->proof)->json, "\"count\":50"));
}

static const char *shown_salt(void)
{
	return strstr(atomic_load(&draws_gather(line)->proof)->json, "\"salt\":");
}

static void name(const char *salt)
{
	wish.salt_bytes = (uint8_t)strlen(salt);
	memcpy(wish.salt, salt, wish.salt_bytes);
	turn();
}

static void a_salt_stands_once_somebody_has_joined(void **state)
{
	(void)state;
	wish.gathers = true;
	wish.epoch = OPENS;
	until_gathering();
	name("a");
	name("bb"); // nobody has seen the other
	assert_memory_equal(shown_salt(), "\"salt\":\"6262\"", 13);
	assert_int_equal(look().salt_bytes, 0);
	arrive();
	turn();
	assert_int_equal(look().salt_bytes, 2);
	name("c");
	name("");
	assert_memory_equal(shown_salt(), "\"salt\":\"6262\"", 13);
	end_process();
	begin_process();
	name("dd");
	assert_memory_equal(shown_salt(), "\"salt\":\"6262\"", 13);
	wish.gathers = false;
	wait_for_draw();
	assert_int_equal(w.records[0].salt_bytes, 2);
	check_draw(0);
}

// Where somebody who gathered stands, whether they are in the list or have left.
static void keys_are_known_when_drawn(void **state)
{
	(void)state;
	uint64_t key;
	wish.gathers = true;
	wish.epoch = OPENS;
	until_gathering();
	const uint64_t number = atomic_load(&draws_gather(line)->open)->number;
	for (int i = 0; i < 9; i++)
		arrive();
	assert_false(draws_key(line, number, w.visitors[3], &key));
	wish.gathers = false;
	while (look().is_undrawn) {
		assert_false(draws_key(line, number, w.visitors[3], &key));
		turn();
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	const struct draw_list *list = atomic_load(&w.line->drawn)->lists[0];
	for (int i = 0; i < 9; i++) {
		bool is_listed;
		assert_true(draws_key(line, number, w.visitors[i], &key));
		draw_rank(list, key, &is_listed);
		assert_true(is_listed);
	}
	assert_true(draws_key(line, number - 1, w.visitors[3], &key));
	assert_int_equal(key, 0); // of one that is not known
}

static void one_that_waits_for_the_store_is_not_busy(void **state)
{
	(void)state;
	assert_false(draws_is_busy(draws) || draws_is_late(draws));
	wish.gathers = wish.keeps_empty = true;
	wish.epoch = 1;
	wish.full_at = 3;
	w.store.status.is_unsaved = true;
	for (int i = 0; i < 10; i++)
		turn();
	assert_true(draws_is_late(draws));
	assert_false(draws_is_busy(draws));
	w.store.status.is_unsaved = false;
	until_gathering();
	assert_false(draws_is_late(draws));
	w.store.status.is_unsaved = true; // the next one's seed waits
	for (int i = 0; i < 3; i++)
		arrive();
	turn();
	assert_true(gather_is_full(atomic_load(&draws_gather(line)->open)));
	assert_false(draws_is_busy(draws));
	w.store.status.is_unsaved = false;
	turn();
	turn();
	assert_true(draws_is_busy(draws)); // it can be drawn now
	wish.epoch = 2;
	turn();
	assert_true(look().closing_epoch == 0 || draws_is_busy(draws));
}

// After a start the rooms have not said yet what they wish.
static void a_start_closes_no_list(void **state)
{
	(void)state;
	wish.gathers = true;
	wish.epoch = OPENS;
	until_gathering();
	for (int i = 0; i < 10; i++)
		turn();
	end_process();
	begin_process();
	for (int i = 0; i < 5; i++)
		draws_turn(draws, w.now_ms += TURN_MS);
	assert_true(look().is_gathering);
	assert_int_equal(look().closing_epoch, 0);
	assert_int_equal(look().epoch, OPENS);
}

static void windows_follow_each_other(void **state)
{
	(void)state;
	wish.gathers = wish.keeps_empty = true;
	wish.epoch = 1;
	until_gathering();
	for (int i = 0; i < 10; i++)
		turn();
	const uint64_t number = atomic_load(&draws_gather(line)->numbers[0]);
	wish.epoch = 2;
	for (int i = 0; i < 10; i++)
		turn();
	assert_int_equal(atomic_load(&draws_gather(line)->numbers[0]), number); // nobody came
	uint32_t total = 0;
	for (uint64_t epoch = 2; epoch < 7; epoch++) {
		for (int i = 0; i < 10; i++, total++)
			arrive();
		wish.epoch = epoch + 1;
		for (int i = 0; i < 200 && look().draws_total < epoch - 1; i++) {
			turn();
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
			assert_non_null(atomic_load(&draws_gather(line)->open)); // nobody mints
		}
		assert_int_equal(look().draws_total, epoch - 1);
		assert_int_equal(look().drawn, total);
	}
	assert_int_equal(w.late_count, 0);
	const struct draw_set *set = atomic_load(&w.line->drawn);
	assert_int_equal(set->count, 5);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(set->lists[i]->base, 10 * i);
	// Floor passes the first three.
	atomic_store(&w.line->floor, place_key(set->lists[2]->end_slot, 0, 0));
	w.passed = w.barriers;
	turn();
	assert_int_equal(look().lists, 2);
	assert_int_equal(look().drawn, 20);
	end_process();
	begin_process();
	assert_int_equal(look().lists, 2);
	assert_true(look().is_gathering);
}

static void gathered_max_holds(void **state)
{
	(void)state;
	wish.gathers = true;
	wish.epoch = OPENS;
	wish.gathered_max = 7;
	until_gathering();
	for (int i = 0; i < 20; i++)
		arrive();
	assert_int_equal(w.joined, 7);
	assert_int_equal(w.late_count, 0); // they are told that it is full
	wish.gathers = false;
	turn();
	wait_for_draw();
	wish.gathers = true;
	wish.epoch = OPENS + 1;
	for (int i = 0; i < 20; i++)
		turn();
	assert_false(look().is_gathering); // until floor has passed some
}

static bool is_the_line(void *ctx, uint32_t line_id)
{
	(void)ctx;
	return line_id == LINE_ID;
}

static bool has_file(const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", w.folder, name);
	return access(path, F_OK) == 0;
}

static void make_file(const char *name)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", w.folder, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fclose(file);
}

// The state directory does not grow for ever: draws go with their lines, files with their draws.
static void what_nobody_needs_is_forgotten(void **state)
{
	(void)state;
	wish.gathers = true;
	wish.epoch = OPENS;
	until_gathering();
	arrive();
	end_process();
	char own[64];
	snprintf(own, sizeof(own), "gather-%08x-%lu", LINE_ID, w.records[0].number);
	assert_true(has_file(own));
	w.records[w.record_count++] = (struct store_draw){.line_id = 9, .number = 77};
	make_file("gather-00000009-77"); // of a room that is gone
	make_file("gather-00000007-5"); // of a draw that is forgotten
	make_file("gather-00000007-5x"); // of somebody else
	const struct draws_plan plan = {.folder = w.folder};
	const struct draws_seams seams = {.barrier_begin = barrier_begin,
		.barrier_passed = barrier_passed,
		.random = fill_random,
		.say = say};
	const uint32_t before = w.record_count;
	assert_int_equal(draws_create(&plan, &w.store, &seams, &draws), 0);
	draws_forget_others(draws, is_the_line, NULL);
	assert_int_equal(w.record_count, before - 1);
	assert_true(has_file(own) && has_file("gather-00000007-5x"));
	assert_false(has_file("gather-00000009-77") || has_file("gather-00000007-5"));
	line = draws_take(draws, LINE_ID, w.line, true);
	assert_int_equal(look().joined, 1);
}

// Openings before the last are forgotten when floor has passed them.
static void one_old_draw_is_kept(void **state)
{
	(void)state;
	wish.gathers = wish.keeps_empty = true;
	for (uint64_t epoch = 1; epoch <= 30; epoch++) {
		wish.epoch = epoch;
		until_gathering();
		for (int i = 0; i < 3; i++)
			arrive();
		wish.epoch = epoch + 1;
		for (int i = 0; i < 200 && look().draws_total < epoch; i++) {
			turn();
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
		}
		assert_int_equal(look().draws_total, epoch);
		atomic_store(&w.line->floor, place_key(look().drawn_end, 0, 0));
		w.passed = w.barriers;
		turn();
		assert_true(look().lists <= 1);
		assert_in_range(w.record_count, 1, 3); // the last, who gathers, what is prepared
	}
}

static void a_window_is_as_old_as_its_begin(void **state)
{
	(void)state;
	wish.gathers = wish.keeps_empty = true;
	wish.epoch = 1;
	until_gathering();
	for (int i = 0; i < 100; i++)
		turn();
	arrive();
	const uint64_t before_ms = w.now_ms;
	wish.epoch = 2;
	turn();
	while (look().epoch != 2)
		turn();
	assert_in_range(look().began_ms, before_ms, w.now_ms);
	end_process();
	begin_process();
	assert_in_range(look().began_ms, before_ms, w.now_ms);
}

// A list is closed in the turn that wishes it, and the next in the one after its draw.
static void windows_can_be_short(void **state)
{
	(void)state;
	wish.gathers = wish.keeps_empty = true;
	wish.epoch = 1;
	until_gathering();
	for (int i = 0; i < 10; i++)
		turn();
	for (uint64_t epoch = 2; epoch < 20; epoch++) {
		arrive();
		wish.epoch = epoch;
		draws_wish(line, &wish, w.now_ms);
		assert_int_equal(look().epoch, epoch);
		assert_int_equal(look().joined, 0);
		while (look().closing_epoch) {
			w.passed = w.barriers;
			turn();
		}
		turn(); // the store has the next seed
	}
}

static void a_full_window_wakes_control(void **state)
{
	(void)state;
	wish.gathers = wish.keeps_empty = true;
	wish.epoch = 1;
	wish.full_at = 4;
	until_gathering();
	turn();
	turn(); // the next one's seed is saved
	const struct gather_ids *ids = atomic_load(&draws_gather(line)->open);
	for (int i = 0; i < 6; i++) {
		arrive();
		assert_int_equal(gather_is_full(ids), i >= 3);
		assert_int_equal(draws_is_busy(draws), i >= 3);
	}
	wish.full_at = 0; // by time now
	turn();
	assert_false(gather_is_full(ids));
}

#define STORY(story) cmocka_unit_test_setup_teardown(story, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORY(a_seed_is_saved_before_anybody_gathers),
		STORY(an_end_at_every_step),
		STORY(the_salt_counts_as_of_the_closing),
		STORY(a_salt_stands_once_somebody_has_joined),
		STORY(keys_are_known_when_drawn),
		STORY(one_that_waits_for_the_store_is_not_busy),
		STORY(a_start_closes_no_list),
		STORY(windows_follow_each_other),
		STORY(gathered_max_holds),
		STORY(what_nobody_needs_is_forgotten),
		STORY(one_old_draw_is_kept),
		STORY(a_window_is_as_old_as_its_begin),
		STORY(windows_can_be_short),
		STORY(a_full_window_wakes_control),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
