// The file of places.
//
// *Goal:* kill -9 at any moment loses nothing: keys stay unique, ranks stay the same; a file that
// is not ours is left alone; a file that is too small grows.

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "dataplane/gate/place.h"

#define SLOT_0 170000000000ull

static char folder[] = "/tmp/sluice-place-XXXXXX";
static char path[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/places", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path) < 0 && errno != ENOENT ? -1 : 0;
}

static struct place_file *open_file(uint32_t lines_max, uint64_t entries_max)
{
	struct place_file *file;
	assert_int_equal(place_file_open(path, lines_max, entries_max, &file), 0);
	return file;
}

static void is_private_and_sparse(void **state)
{
	(void)state;
	struct place_file *file = open_file(64, 1 << 16);
	assert_non_null(place_file_line(file, 1));
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true(st.st_size > 64 << 20);
	assert_true(st.st_blocks * 512 < 1 << 20);
	place_file_close(file);
}

static void lines_are_found_again(void **state)
{
	(void)state;
	struct place_file *file = open_file(2, 16);
	struct place_line *a = place_file_line(file, 0xaaaa), *b = place_file_line(file, 0);
	assert_true(a && b && a != b);
	assert_null(place_file_line(file, 0xcccc)); // all are taken
	assert_int_equal(errno, ENFILE);
	place_begin(a, SLOT_0);
	const uint64_t key = place_mint(a, SLOT_0, 3);
	assert_int_equal(place_file_turn(file, 1234567), 0);
	place_file_close(file);

	file = open_file(2, 16);
	uint64_t rank;
	assert_true(place_rank(place_file_line(file, 0xaaaa), key, &rank));
	assert_int_equal(rank, 0);
	assert_int_equal(place_total(place_file_line(file, 0)), 0);
	assert_int_equal(place_file_clock(file), 1234567);
	place_file_close(file);
}

// With whom a line is shared is the process's to know.
static void what_pointed_into_a_process_is_forgotten(void **state)
{
	(void)state;
	struct place_file *file = open_file(2, 16);
	struct place_line *line = place_file_line(file, 5);
	place_begin(line, SLOT_0);
	const uint64_t key = place_mint(line, SLOT_0, 3);
	place_share(line, (struct ranks *)(uintptr_t)64);
	place_file_close(file);

	file = open_file(2, 16);
	uint64_t rank;
	assert_true(place_rank(place_file_line(file, 5), key, &rank));
	place_file_close(file);
}

static void grows_and_keeps_everything(void **state)
{
	(void)state;
	struct place_file *file = open_file(1, 16);
	struct place_line *line = place_file_line(file, 5);
	place_begin(line, SLOT_0);
	place_file_turn(file, 99);
	uint64_t keys[40], first = 0, rank;
	for (uint64_t i = 0; i < 40; i++) { // the ring wraps more than twice
		keys[i] = place_mint(line, SLOT_0 + 2 * i + 1, 0);
		place_close(line, SLOT_0 + 2 * i + 2);
		first = i < 10 ? 0 : i - 10;
		place_trim(line, keys[first]);
	}
	atomic_store(&line->threshold, keys[35]);
	place_file_close(file);

	file = open_file(3, 100); // rounded up to 128
	line = place_file_line(file, 5);
	assert_int_equal(line->entries_max, 128);
	assert_int_equal(line->threshold, keys[35]);
	assert_int_equal(place_file_clock(file), 99);
	place_begin(line, SLOT_0);
	for (uint64_t i = first; i < 40; i++) {
		assert_true(place_rank(line, keys[i], &rank));
		assert_int_equal(rank, i);
	}
	assert_non_null(place_file_line(file, 6));
	place_file_close(file);

	file = open_file(1, 2); // smaller is no reason to shrink
	assert_non_null(place_file_line(file, 7));
	place_file_close(file);
}

static uint64_t blocks(void)
{
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return (uint64_t)st.st_blocks;
}

// The place of a line that is given back is the next one's, empty; the others stay where they are.
static void a_line_given_back_is_another_ones(void **state)
{
	(void)state;
	struct place_file *file = open_file(3, 1 << 16);
	uint64_t keys[3], rank;
	for (uint32_t i = 0; i < 3; i++) {
		struct place_line *line = place_file_line(file, 10 + i);
		place_begin(line, SLOT_0);
		for (uint32_t j = 0; j <= i; j++)
			keys[i] = place_mint(line, SLOT_0 + 1, 0);
		place_close(line, SLOT_0 + 2);
	}
	assert_null(place_file_line(file, 13));
	const uint64_t before = blocks();
	struct place_line *second = place_file_line(file, 11);
	assert_int_equal(place_file_give_back(file, second), 0);
	assert_true(blocks() < before);
	assert_int_equal(place_file_turn(file, 1), 0);
	place_file_close(file);

	file = open_file(3, 1 << 17); // grows round the gap
	uint32_t next = 0;
	assert_int_equal(place_file_next(file, &next)->line_id, 10);
	assert_int_equal(place_file_next(file, &next)->line_id, 12);
	assert_null(place_file_next(file, &next));
	for (uint32_t i = 0; i < 3; i += 2) {
		assert_true(place_rank(place_file_line(file, 10 + i), keys[i], &rank));
		assert_int_equal(rank, i);
	}
	struct place_line *line = place_file_line(file, 13);
	assert_non_null(line);
	assert_int_equal(place_total(line), 0);
	assert_true(place_begin(line, SLOT_0 + 5));
	assert_true(place_mint(line, SLOT_0 + 5, 0) > keys[2]);
	assert_int_equal(place_total(line), 1);
	assert_null(place_file_line(file, 11));
	assert_int_equal(place_file_give_back(file, line), 0);
	line = place_file_line(file, 11); // in the same process
	assert_non_null(line);
	assert_int_equal(place_total(line), 0);
	place_file_close(file);
}

static void spoil(off_t at, char byte)
{
	const int fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void a_damaged_header_is_left_alone(void **state)
{
	(void)state;
	struct place_file *file;
	for (off_t at = 0; at < 40; at++) {
		place_file_close(open_file(1, 16));
		spoil(at, (char)0xa5);
		assert_int_equal(place_file_open(path, 1, 16, &file), -EUCLEAN);
		assert_int_equal(place_file_open(path, 1, 16, &file), -EUCLEAN); // still there
		unlink(path);
	}
	const off_t sizes[] = {0, 1, 39, 4096, 1 << 20};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		place_file_close(open_file(1, 16));
		assert_int_equal(truncate(path, sizes[i]), 0);
		assert_int_equal(place_file_open(path, 1, 16, &file), -EUCLEAN);
		unlink(path);
	}
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(place_file_open(path, 1, 16, &file), -ELOOP);
}

// The disk is full (here: the file may not grow): an error, longer slots, and no signal.
static void a_full_disk_makes_slots_longer(void **state)
{
	(void)state;
	struct place_file *file = open_file(1, 4 * PLACE_READY_STEP);
	struct place_line *line = place_file_line(file, 5);
	assert_int_equal(line->entries_ready, PLACE_READY_STEP);
	place_begin(line, SLOT_0);
	uint64_t minted = 0;
	for (; minted < PLACE_READY_STEP / 2; minted++) {
		place_mint(line, SLOT_0 + 1 + minted, 0);
		place_close(line, SLOT_0 + 1 + minted);
	}
	assert_int_equal(place_file_turn(file, 1), 0);
	assert_int_equal(line->entries_ready, 2 * PLACE_READY_STEP);
	assert_int_equal(line->stride, 1);
	line->entries_ready = PLACE_READY_STEP; // as if nothing could be had
	for (; minted < 3 * PLACE_READY_STEP; minted++) {
		place_mint(line, SLOT_0 + 1 + minted, 0);
		place_close(line, SLOT_0 + 1 + minted);
	}
	assert_true(line->stride > 1);
	assert_true(line->index_end <= PLACE_READY_STEP);
	assert_int_equal(place_total(line), minted);
	assert_int_equal(place_file_turn(file, 1), 0); // there is room again
	place_close(line, SLOT_0 + minted);
	assert_int_equal(line->stride, 1);
	place_file_close(file);
}

// --- kill -9

#define MINTERS 3
#define LIVES 20
#define KEYS_A_LIFE 5000u // of each minter
#define KEYS_MAX (LIVES * KEYS_A_LIFE)

// What the process under test has handed out, in memory that outlives it.
struct record {
	_Atomic uint64_t counts[MINTERS];
	uint64_t keys[MINTERS][KEYS_MAX];
	uint64_t ranks[MINTERS][KEYS_MAX];
};

struct victim {
	struct place_line *line;
	struct record *record;
	uint64_t start_slot;
	_Atomic uint64_t now;
	_Atomic int next;
};

static void *mint_until_killed(void *of)
{
	struct victim *victim = of;
	struct record *record = victim->record;
	const int me = atomic_fetch_add(&victim->next, 1);
	const uint64_t begin = record->counts[me];
	for (uint64_t i = begin; i < begin + KEYS_A_LIFE; i++) {
		const uint64_t key = place_mint(victim->line, victim->now, 0);
		record->keys[me][i] = key;
		place_rank(victim->line, key, &record->ranks[me][i]);
		atomic_store(&record->counts[me], i + 1);
		if (me == 0 && i % 16 == 0)
			atomic_fetch_add(&victim->now, 1);
		sched_yield(); // lasts longer, so that it is killed in the middle
	}
	return NULL;
}

static void live_until_killed(struct record *record, uint64_t now)
{
	struct place_file *file;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (place_file_open(path, 1, 1 << 16, &file) < 0)
		_exit(1);
	struct victim victim = {place_file_line(file, 9), record, now, now, 0};
	pthread_t thread;
	place_begin(victim.line, now);
	for (int i = 0; i < MINTERS; i++)
		pthread_create(&thread, NULL, mint_until_killed, &victim);
	for (;;)
		place_close(victim.line, victim.now);
}

static int compare_pairs(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

// Every key handed out is unique, and has the rank it had when it was handed out.
static void check_record(const struct record *record)
{
	struct place_file *file = open_file(1, 1 << 16);
	const struct place_line *line = place_file_line(file, 9);
	uint64_t(*all)[2] = malloc(MINTERS * KEYS_MAX * sizeof(*all)), count = 0, rank;
	for (int i = 0; i < MINTERS; i++) {
		for (uint64_t k = 0; k < record->counts[i]; k++, count++) {
			all[count][0] = record->keys[i][k];
			all[count][1] = record->ranks[i][k];
		}
	}
	qsort(all, count, sizeof(*all), compare_pairs);
	for (uint64_t i = 0; i < count; i++) {
		assert_true(i == 0 || all[i][0] > all[i - 1][0]);
		assert_true(place_rank(line, all[i][0], &rank));
		assert_int_equal(rank, all[i][1]);
	}
	// Those who were killed between mint and record are counted, and nobody else.
	assert_in_range(place_total(line), count, count + 20 * MINTERS);
	free(all);
	place_file_close(file);
}

static uint64_t recorded(const struct record *record)
{
	uint64_t count = 0;
	for (int i = 0; i < MINTERS; i++)
		count += record->counts[i];
	return count;
}

// Until the process has handed something out, and then a moment that differs from life to life.
static void let_live(const struct record *record, int life)
{
	const uint64_t before = recorded(record);
	struct timespec pause = {0, 1000000};
	for (int i = 0; i < 10000 && recorded(record) < before + 50; i++)
		nanosleep(&pause, NULL);
	pause.tv_nsec = 100001 + life * 170001;
	nanosleep(&pause, NULL);
}

static void kill_9_loses_nothing(void **state)
{
	(void)state;
	struct record *record = mmap(
		NULL, sizeof(*record), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(record, MAP_FAILED);
	for (int life = 0; life < LIVES; life++) {
		const pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			live_until_killed(record, SLOT_0); // the clock begins anew each time
		let_live(record, life);
		kill(pid, SIGKILL);
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		if (life % 5 == 4)
			check_record(record);
	}
	assert_true(recorded(record) >= LIVES * 50);
	munmap(record, sizeof(*record));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(is_private_and_sparse, remove_file),
		cmocka_unit_test_teardown(lines_are_found_again, remove_file),
		cmocka_unit_test_teardown(what_pointed_into_a_process_is_forgotten, remove_file),
		cmocka_unit_test_teardown(grows_and_keeps_everything, remove_file),
		cmocka_unit_test_teardown(a_line_given_back_is_another_ones, remove_file),
		cmocka_unit_test_teardown(a_damaged_header_is_left_alone, remove_file),
		cmocka_unit_test_teardown(a_full_disk_makes_slots_longer, remove_file),
		cmocka_unit_test_teardown(kill_9_loses_nothing, remove_file),
	};
	return cmocka_run_group_tests_name("place_file", tests, make_folder, remove_folder);
}
