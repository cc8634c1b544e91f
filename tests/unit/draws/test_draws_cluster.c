// Draws of a line that several appliances share, seen from one of them: what is said is told back
// by hand, and the ledger's ids are an array.
//
// LONG: one appliance, and each story that it may be in

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "controlplane/draws/draws.h"
#include "controlplane/draws/draws_cluster.h"
#include "dataplane/gate/place.h"
#include "dataplane/gate/ranks.h"

#define LINE_ID 7u
#define ENTRIES 256u
#define BEGIN_MS 1800000000000ull
#define OPENS 5000u // an epoch
#define IDS_MAX 256u

static struct place_line *line;
static void *memory; // of the ranks
static struct ranks *ranks;
static struct draws *draws;
static struct draws_line *gatherings;
static struct draws_wish wish;
static struct draws_cluster_view view;
static struct draws_said said[16]; // put, and not told
static uint32_t said_count, said_total, forgets;
static uint64_t left_number; // visitor 5 has left it before its draw
static uint64_t ids[IDS_MAX], whole;
static uint32_t id_count;
static uint64_t now_ms;
static char folder[64];

static int load(
	struct store *s, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	(void)s, (void)kind, (void)max, (void)record, (void)ctx;
	return 0;
}

static const struct store_ops ops = {.load = load};
static struct store store = {.ops = &ops};

static uint64_t barrier_begin(void *ctx)
{
	(void)ctx;
	return 0;
}

static bool barrier_passed(void *ctx, uint64_t token)
{
	(void)ctx, (void)token;
	return true;
}

static void fill_random(void *ctx, uint8_t *bytes, uint32_t count)
{
	(void)ctx;
	for (uint32_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(said_total * 37 + i);
}

static void say(void *ctx, uint32_t line_id, const char *text)
{
	(void)ctx, (void)line_id, (void)text;
}

static bool put(void *ctx, const struct draws_said *is)
{
	(void)ctx;
	assert_true(said_count < 16);
	said[said_count++] = *is;
	said_total++;
	return true;
}

static bool forget(void *ctx, uint32_t line_id, uint64_t number)
{
	(void)ctx, (void)line_id, (void)number;
	forgets++;
	return true;
}

static bool one_left(void *ctx, uint32_t line_id, uint64_t *number, uint64_t *visitor)
{
	(void)ctx, (void)line_id;
	if (left_number == 0 || *number > left_number || (*number == left_number && *visitor > 5))
		return false;
	*number = left_number;
	*visitor = 5;
	return true;
}

// A process.
static void start(void)
{
	const struct draws_plan plan = {.folder = folder};
	const struct draws_seams seams = {.barrier_begin = barrier_begin,
		.barrier_passed = barrier_passed,
		.random = fill_random,
		.say = say};
	const struct draws_cluster_seams cluster = {
		.source = 3, .sync_ms = 200, .put = put, .forget = forget, .left = one_left};
	assert_int_equal(draws_create(&plan, &store, &seams, &draws), 0);
	draws_share(draws, &cluster);
	draws_cluster_see(draws, &view);
	gatherings = draws_take(draws, LINE_ID, line, true);
	assert_non_null(gatherings);
}

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/sluice-draws-XXXXXX");
	line = calloc(1, place_line_bytes(ENTRIES));
	memory = aligned_alloc(64, (ranks_bytes(ENTRIES) + 63) / 64 * 64);
	if (!line || !memory || !mkdtemp(folder))
		return -1;
	memset(memory, 0, ranks_bytes(ENTRIES));
	now_ms = BEGIN_MS;
	place_line_init(line, LINE_ID, ENTRIES);
	place_share(line, ranks = ranks_init(memory, ENTRIES));
	said_count = said_total = id_count = forgets = 0;
	whole = left_number = 0;
	wish = (struct draws_wish){.prepares = true, .gathered_max = IDS_MAX};
	view = (struct draws_cluster_view){.is_known = true, .is_in_office = true, .live = 3};
	start();
	assert_true(place_begin(line, now_ms / PLACE_SLOT_MS));
	assert_true(ranks_begin(ranks, 0, 0));
	return 0;
}

static int end(void **state)
{
	(void)state;
	char command[128];
	draws_destroy(draws);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
	free(memory);
	free(line);
	return 0;
}

// The ledger: ids of this appliance, which is number 0, go behind those of all.
static void answer(const struct ledger_entry *entry)
{
	struct ledger_answer is = {.kind = entry->kind, .verdict = LEDGER_DONE, .total = id_count};
	static uint64_t told;
	if (entry->kind == LEDGER_GATHERED && entry->gathered.what == LEDGER_GATHERED_TELL) {
		told = entry->gathered.from == 0 && id_count == 0 ? 0 : told;
		for (uint32_t i = 0; i < entry->gathered.count; i++)
			if (entry->gathered.from + i >= told)
				ids[id_count++] = entry->gathered.ids[i], told++;
		whole |= entry->gathered.is_whole;
	}
	draws_cluster_offered(draws, entry, &is);
	if (entry->kind != LEDGER_READ)
		return;
	struct ledger_news item = {.line = entry->line,
		.gathering = entry->read.number,
		.from = entry->read.from,
		.whole = whole};
	for (uint64_t i = item.from; i < id_count && item.count < LEDGER_IDS_MAX; i++)
		item.held[item.count++] = ids[i];
	draws_cluster_gathered(draws, &item);
}

static void turn(void)
{
	struct ledger_entry entries[32];
	now_ms += 20;
	view.final = now_ms / PLACE_SLOT_MS;
	draws_cluster_see(draws, &view);
	draws_turn(draws, now_ms);
	draws_wish(gatherings, &wish, now_ms);
	ranks_settle(ranks, view.final);
	const uint32_t count = draws_cluster_offer(draws, entries, 32, now_ms);
	for (uint32_t i = 0; i < count; i++)
		answer(&entries[i]);
	nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL); // the job has a thread
}

static void turns(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		turn();
}

// What was put is told, as it would be to all.
static void tell(void)
{
	for (uint32_t i = 0; i < said_count; i++)
		draws_told(draws, &said[i], now_ms);
	said_count = 0;
}

static void live(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		turn();
		tell();
	}
}

static struct draws_view look(void)
{
	struct draws_view now;
	draws_look(gatherings, &now);
	return now;
}

// The list is made by a thread of its own, as soon as it gets a core.
static void live_until_drawn(void)
{
	for (uint32_t i = 0; i < 20000 && look().is_undrawn; i++)
		live(1);
	assert_false(look().is_undrawn);
}

static uint64_t join(uint64_t visitor)
{
	struct gather_ids *to = atomic_load(&draws_gather(gatherings)->open);
	return to ? gather_join(to, line, visitor) : 0;
}

static void people_gather(void)
{
	wish.gathers = true;
	wish.epoch = OPENS;
	live(10);
	assert_true(look().is_gathering);
	for (uint64_t visitor = 1; visitor <= 20; visitor++)
		assert_true(join(visitor) > 0);
	live(200); // beyond the first slot
	assert_int_equal(id_count, 20);
}

static void doors_open(void)
{
	wish.gathers = false;
	turns(2); // it is wished for, and said
	assert_int_equal(said_count, 1);
	assert_int_equal(said[0].step, DRAWS_CLOSED);
	tell();
	live(5);
}

static void a_step_is_said_once_until_it_is_told(void **state)
{
	(void)state;
	wish.gathers = true;
	wish.epoch = OPENS;
	turns(100);
	assert_int_equal(said_total, 1);
	assert_int_equal(said[0].step, DRAWS_PREPARED);
	tell();
	turns(100);
	assert_int_equal(said_total, 2);
	assert_int_equal(said[0].step, DRAWS_JOINED);
	assert_true(said[0].first_slot * PLACE_SLOT_MS >= now_ms - 100 * 20 + DRAWS_AHEAD_MS - 20);
	assert_false(look().is_gathering); // not told: nobody joins, here neither
	assert_int_equal(join(1), 0);
}

static void nobody_is_drawn_before_all_have_told(void **state)
{
	(void)state;
	people_gather();
	doors_open();
	assert_int_equal(whole, 1); // we have
	ids[id_count++] = 21; // of the other
	live(20);
	assert_true(look().is_undrawn);
	whole = 3;
	live(20);
	live_until_drawn();
	const struct draw_list *list = atomic_load(&line->drawn)->lists[0];
	assert_int_equal(list->count, 21);
	bool is_taken[21] = {false};
	for (uint64_t visitor = 1; visitor <= 21; visitor++) {
		uint64_t hash, place;
		assert_ptr_equal(
			draws_place(gatherings, list->number, 0, visitor, &hash, &place), list);
		assert_false(is_taken[place]);
		is_taken[place] = true;
	}
	assert_int_equal(ranks_total(ranks), 21);
	assert_true(place_mint(line, now_ms / PLACE_SLOT_MS, 0) >= place_key(list->end_slot, 0, 0));
}

static void who_lives_and_is_silent_is_not_waited_for_for_ever(void **state)
{
	(void)state;
	people_gather();
	doors_open();
	live(DRAWS_SILENCE_MS / 20 - 30);
	assert_true(look().is_undrawn);
	live(60);
	live_until_drawn();
}

static void an_older_step_is_said_again_and_not_gone_by(void **state)
{
	(void)state;
	people_gather();
	turns(5);
	const struct draw_set *none = atomic_load(&line->drawn);
	wish.gathers = false;
	turns(2);
	const struct draws_said closed = said[0];
	struct draws_said older = closed;
	tell();
	turn();
	older.step = DRAWS_JOINED;
	older.version = closed.version - 1;
	draws_told(draws, &older, now_ms);
	assert_int_equal(join(77), 0);
	turn();
	assert_int_equal(said_count, 1);
	assert_int_equal(said[0].step, DRAWS_CLOSED);
	assert_int_equal(said[0].end_slot, closed.end_slot);
	assert_ptr_equal(atomic_load(&line->drawn), none);
}

static void out_of_office_nothing_is_said(void **state)
{
	(void)state;
	view.is_in_office = false;
	wish.gathers = true;
	turns(400);
	assert_int_equal(said_total, 0);
}

static void what_was_not_heard_of_is_not_drawn(void **state)
{
	(void)state;
	people_gather();
	const struct gather *gather = draws_gather(gatherings);
	assert_true(gather_is_undrawn(gather, now_ms + 5)); // of another appliance, from now on
	assert_false(gather_is_undrawn(gather, BEGIN_MS - 5));
	whole = 2;
	doors_open();
	live(20);
	live_until_drawn();
	assert_false(gather_is_undrawn(gather, BEGIN_MS + 20));
	assert_true(gather_is_undrawn(gather, now_ms + 5));
}

static void a_list_that_differs_is_not_shown(void **state)
{
	(void)state;
	people_gather();
	view.is_in_office = false; // another draws, and has an id that the store lost
	wish.gathers = false;
	struct draws_said theirs = {0};
	const uint64_t number = atomic_load(&draws_gather(gatherings)->later);
	theirs = (struct draws_said){.line_id = LINE_ID,
		.number = number,
		.version = 9,
		.step = DRAWS_DRAWN,
		.end_slot = now_ms / PLACE_SLOT_MS,
		.total = 20,
		.count = 21};
	draws_told(draws, &theirs, now_ms);
	live(100);
	assert_true(look().is_undrawn);
	live(DRAWS_PATIENCE_MS / 20);
	live_until_drawn(); // keys are known, and count
	uint64_t key, hash, place;
	assert_true(draws_key(gatherings, number, 5, &key) && key != 0);
	assert_null(draws_place(gatherings, number, 0, 5, &hash, &place));
	assert_int_equal(ranks_total(ranks), 21);
}

static void a_loss_is_told_again(void **state)
{
	(void)state;
	people_gather();
	id_count = 0;
	view.epoch = 1;
	draws_cluster_see(draws, &view);
	assert_false(draws_is_restored(draws));
	live(3);
	assert_true(draws_is_restored(draws));
	assert_int_equal(id_count, 20);
}

static uint64_t number_of(void)
{
	return atomic_load(&draws_gather(gatherings)->later);
}

static void what_is_forgotten_goes(void **state)
{
	(void)state;
	people_gather();
	assert_int_equal(atomic_load(&line->gathered), 20);
	assert_true(ranks_final(ranks) < view.final); // they wait for it
	wish = (struct draws_wish){.gathered_max = IDS_MAX};
	draws_wish(gatherings, &wish, now_ms);
	const uint32_t before = said_total;
	draws_untold(draws, LINE_ID, number_of()); // while workers still look at its file
	live(3);
	assert_int_equal(said_total, before); // it is not said again
	assert_int_equal(look().joined, 0);
	assert_int_equal(atomic_load(&line->gathered), 0);
	turn();
	assert_int_equal(ranks_final(ranks), view.final);
}

static void what_the_store_has_lost_is_said_again(void **state)
{
	(void)state;
	people_gather();
	view.epoch = 1;
	draws_cluster_see(draws, &view);
	draws_untold(draws, LINE_ID, number_of());
	turn();
	assert_int_equal(said_count, 1);
	assert_int_equal(said[0].step, DRAWS_JOINED);
	assert_int_equal(atomic_load(&line->gathered), 20);
}

// Lost, it seemed; then one behind it is drawn.
static void what_was_outlived_is_not_said_again(void **state)
{
	(void)state;
	people_gather();
	view.is_in_office = false;
	view.epoch = 1;
	draws_cluster_see(draws, &view);
	const uint64_t number = number_of();
	draws_untold(draws, LINE_ID, number);
	const struct draws_said later = {.line_id = LINE_ID,
		.number = number + 1,
		.version = 4,
		.step = DRAWS_DRAWN,
		.first_slot = now_ms / PLACE_SLOT_MS + 1,
		.end_slot = now_ms / PLACE_SLOT_MS + 2};
	draws_told(draws, &later, now_ms);
	view.is_in_office = true;
	wish = (struct draws_wish){.gathered_max = IDS_MAX};
	turns(3);
	assert_int_equal(said_count, 0);
	assert_int_equal(atomic_load(&line->gathered), 0);
}

static struct draws_said closed_one(void)
{
	people_gather();
	wish.gathers = false;
	turns(2);
	assert_int_equal(said[0].step, DRAWS_CLOSED);
	said_count = 0;
	return said[0];
}

static void ids_on_disk_are_told_before_all_is(void **state)
{
	(void)state;
	struct ledger_entry entries[32];
	const struct draws_said closed = closed_one();
	draws_destroy(draws);
	start();
	draws_told(draws, &closed, now_ms);
	assert_int_equal(draws_cluster_offer(draws, entries, 32, now_ms), 1); // a page is read
	assert_int_equal(entries[0].kind, LEDGER_READ);
	id_count = 0;
	turn();
	assert_int_equal(id_count, 20);
	assert_int_equal(whole, 1);
	assert_int_equal(atomic_load(&line->gathered), 20);
	whole = 3;
	live_until_drawn();
	assert_int_equal(atomic_load(&line->gathered), 0);
}

static void a_file_that_is_half_made_is_made_anew(void **state)
{
	(void)state;
	char path[128];
	wish.gathers = true;
	wish.epoch = OPENS;
	live(2);
	turns(2);
	assert_int_equal(said[0].step, DRAWS_JOINED);
	snprintf(path, sizeof(path), "%s/gather-%08x-%llu", folder, LINE_ID,
		(unsigned long long)said[0].number);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), 4096), 0); // without a word in it
	fclose(file);
	live(3);
	assert_true(join(1) > 0);
}

// An id that was taken when there was no room for it, and is none.
static void who_was_never_there_is_not_taken_off(void **state)
{
	(void)state;
	people_gather();
	struct gather_ids *to = atomic_load(&draws_gather(gatherings)->open);
	atomic_fetch_add(&to->taken, 1);
	assert_true(join(21) > 0);
	doors_open();
	whole = 3;
	live_until_drawn();
	assert_int_equal(atomic_load(&line->drawn)->lists[0]->count, 21);
	assert_int_equal(atomic_load(&line->gathered), 0);
}

static void what_cannot_be_is_passed_over(void **state)
{
	(void)state;
	const struct draws_said good = closed_one();
	struct draws_said bad[] = {good, good, good, good};
	bad[0].end_slot = good.first_slot;
	bad[1].end_slot = PLACE_SLOT_MAX + 1;
	bad[2].end_slot = 0;
	bad[3].step = DRAWS_DRAWN;
	bad[3].count = bad[3].total = DRAW_GATHERED_MOST + 1;
	for (uint32_t i = 0; i < 4; i++) {
		bad[i].version += i;
		draws_told(draws, &bad[i], now_ms);
		assert_true(look().is_gathering);
	}
	struct ledger_entry read = {.kind = LEDGER_READ, .line = LINE_ID};
	read.read.number = good.number;
	draws_cluster_offered(draws, &read,
		&(struct ledger_answer){
			.kind = LEDGER_READ, .verdict = LEDGER_DONE, .total = UINT64_MAX});
	assert_int_equal(look().joined, DRAW_GATHERED_MOST);
}

static void an_older_step_of_a_higher_version_is_corrected(void **state)
{
	(void)state;
	struct draws_said closed = closed_one(), older = closed;
	draws_told(draws, &closed, now_ms);
	turn();
	older.step = DRAWS_JOINED;
	older.version += 7;
	draws_told(draws, &older, now_ms);
	turn();
	assert_int_equal(said_count, 1);
	assert_int_equal(said[0].step, DRAWS_CLOSED);
	assert_true(said[0].version > older.version);
}

static uint32_t count_offered(uint32_t turns_count, uint8_t what)
{
	struct ledger_entry entries[32];
	uint32_t found = 0;
	for (; turns_count > 0; turns_count--) {
		now_ms += 20;
		const uint32_t count = draws_cluster_offer(draws, entries, 32, now_ms);
		for (uint32_t i = 0; i < count; i++)
			found += entries[i].kind == LEDGER_GATHERED &&
				 entries[i].gathered.what == what;
	}
	return found;
}

static void who_left_is_placed_once_a_sync(void **state)
{
	(void)state;
	people_gather();
	const uint64_t number = number_of();
	doors_open();
	whole = 3;
	live_until_drawn();
	left_number = number;
	assert_int_equal(count_offered(20, LEDGER_GATHERED_PLACED), 2);
}

static void what_is_over_is_forgotten_once(void **state)
{
	(void)state;
	people_gather();
	doors_open();
	whole = 3;
	live_until_drawn();
	id_count = 0;
	wish.gathers = true;
	wish.epoch = OPENS + 1;
	live(300);
	wish.gathers = false;
	live(10);
	live_until_drawn();
	const struct draw_set *lists = atomic_load(&line->drawn);
	assert_int_equal(lists->count, 2);
	atomic_store(&line->floor, place_key(lists->lists[0]->end_slot, 0, 0));
	live(100);
	assert_int_equal(forgets, 1);
	live(DRAWS_PUT_MS / 20);
	assert_int_equal(forgets, 2); // it is not told yet
}

// Of a line that is not configured here.
static void a_stray_is_told_again_after_a_loss(void **state)
{
	(void)state;
	const struct draws_said stray = {.line_id = LINE_ID + 1,
		.number = 9,
		.version = 1,
		.step = DRAWS_CLOSED,
		.first_slot = 5,
		.end_slot = 7};
	struct ledger_entry entries[4];
	view.is_known = false;
	draws_cluster_see(draws, &view);
	draws_told(draws, &stray, now_ms);
	for (view.epoch = 0; view.epoch < 2; view.epoch++) {
		draws_cluster_see(draws, &view);
		assert_int_equal(draws_cluster_offer(draws, entries, 4, now_ms), 1);
		assert_true(entries[0].gathered.is_whole);
		answer(&entries[0]);
		assert_int_equal(draws_cluster_offer(draws, entries, 4, now_ms), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_step_is_said_once_until_it_is_told, begin, end),
		cmocka_unit_test_setup_teardown(nobody_is_drawn_before_all_have_told, begin, end),
		cmocka_unit_test_setup_teardown(
			who_lives_and_is_silent_is_not_waited_for_for_ever, begin, end),
		cmocka_unit_test_setup_teardown(
			an_older_step_is_said_again_and_not_gone_by, begin, end),
		cmocka_unit_test_setup_teardown(out_of_office_nothing_is_said, begin, end),
		cmocka_unit_test_setup_teardown(what_was_not_heard_of_is_not_drawn, begin, end),
		cmocka_unit_test_setup_teardown(a_list_that_differs_is_not_shown, begin, end),
		cmocka_unit_test_setup_teardown(a_loss_is_told_again, begin, end),
		cmocka_unit_test_setup_teardown(what_is_forgotten_goes, begin, end),
		cmocka_unit_test_setup_teardown(what_the_store_has_lost_is_said_again, begin, end),
		cmocka_unit_test_setup_teardown(what_was_outlived_is_not_said_again, begin, end),
		cmocka_unit_test_setup_teardown(ids_on_disk_are_told_before_all_is, begin, end),
		cmocka_unit_test_setup_teardown(a_file_that_is_half_made_is_made_anew, begin, end),
		cmocka_unit_test_setup_teardown(who_was_never_there_is_not_taken_off, begin, end),
		cmocka_unit_test_setup_teardown(what_cannot_be_is_passed_over, begin, end),
		cmocka_unit_test_setup_teardown(
			an_older_step_of_a_higher_version_is_corrected, begin, end),
		cmocka_unit_test_setup_teardown(who_left_is_placed_once_a_sync, begin, end),
		cmocka_unit_test_setup_teardown(what_is_over_is_forgotten_once, begin, end),
		cmocka_unit_test_setup_teardown(a_stray_is_told_again_after_a_loss, begin, end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
