// What an appliance notes for its next process: read as it was written, and nothing of a file that
// is another's, or none.

#include "controlplane/appliance/note.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "controlplane/cluster/ledger.h"

#define NOW UINT64_C(1764583200000)

static char folder[] = "/tmp/sluice-note-XXXXXX", path[64];

static int make_folder(void **state)
{
	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/appliance", folder);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(folder);
}

static const struct {
	const char *text;
	uint8_t number;
	uint64_t heard_ms, until_ms, peers;
} files[] = {
	{"3 a1 1764583100000 00000000000000ff\n", 3, NOW - 100000, NOW - 40000, 255},
	{"0 a1 1764583100000\n", 0, NOW - 100000, NOW - 40000, 0},
	{"63 a1 0\n", 63, 0, 60000, 0},
	{"3 a1\n", 3, NOW, NOW + 60000, 0}, // of an older version
	{"64 a1 1764583100000\n", LEDGER_MEMBERS_MAX, 0, 0, 0},
	{"3 a2 1764583100000\n", LEDGER_MEMBERS_MAX, 0, 0, 0},
	{"3 a11 1764583100000\n", LEDGER_MEMBERS_MAX, 0, 0, 0},
	{"-1 a1 1764583100000\n", LEDGER_MEMBERS_MAX, 0, 0, 0},
	{"a1 3\n", LEDGER_MEMBERS_MAX, 0, 0, 0},
	{"3", LEDGER_MEMBERS_MAX, 0, 0, 0},
	{"", LEDGER_MEMBERS_MAX, 0, 0, 0},
};

static void a_file_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		FILE *file = fopen(path, "w");
		assert_non_null(file);
		fputs(files[i].text, file);
		fclose(file);
		const struct note note = note_read(path, "a1", NOW);
		if (note.number != files[i].number || note.heard_ms != files[i].heard_ms ||
			note_heard_until(&note) != files[i].until_ms ||
			note.peers != files[i].peers)
			fail_msg("%s", files[i].text);
	}
	unlink(path);
	assert_int_equal(note_read(path, "a1", NOW).number, LEDGER_MEMBERS_MAX);
}

static void a_note_replaces_the_last(void **state)
{
	(void)state;
	const struct note notes[] = {{7, 0, 0}, {7, NOW, 128}, {9, NOW + 1, UINT64_MAX}};
	for (size_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		assert_int_equal(note_write(path, "a1", &notes[i], i == 0), 0);
		const struct note note = note_read(path, "a1", NOW);
		assert_int_equal(note.number, notes[i].number);
		assert_int_equal(note.heard_ms, notes[i].heard_ms);
		assert_int_equal(note.peers, notes[i].peers);
	}
	assert_int_equal(note_write("/dev/null/appliance", "a1", &notes[0], false), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read),
		cmocka_unit_test(a_note_replaces_the_last),
	};
	return cmocka_run_group_tests_name("note", tests, make_folder, remove_folder);
}
