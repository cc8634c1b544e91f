// Ledger wire: batches as arguments, and what a reply must be like.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "controlplane/cluster/ledger_wire.h"

#define ARGS_MAX (LEDGER_WIRE_ARGS_BATCH + LEDGER_ENTRIES_MAX * LEDGER_WIRE_ARGS_ENTRY)
#define TEXT_MAX (LEDGER_WIRE_BYTES_BATCH + LEDGER_ENTRIES_MAX * LEDGER_WIRE_BYTES_ENTRY)

static const char *argv[ARGS_MAX];
static size_t lengths[ARGS_MAX];
static char text[TEXT_MAX];

static struct ledger_wire_args args_of(uint32_t max, size_t text_max)
{
	return (struct ledger_wire_args){
		.argv = argv, .lengths = lengths, .max = max, .text = text, .text_max = text_max};
}

static struct ledger_batch batch_of(const struct ledger_entry *entries, uint32_t count)
{
	return (struct ledger_batch){.name = "a1",
		.incarnation = 0xabc,
		.number = 7,
		.time_ms = 1764500000123,
		.fence = 3,
		.cursor = 11,
		.applied = 10,
		.closed = 176450000012,
		.run = "0123456789abcdef0123456789abcdef01234567",
		.writes = 99,
		.appliance = 2,
		.count = count,
		.entries = entries};
}

static bool encode(const struct ledger_batch *batch, struct ledger_wire_args *args)
{
	return ledger_wire_batch(batch, "sluice:{x}:", args);
}

static void a_batch_is_a_key_and_arguments(void **state)
{
	(void)state;
	static const char *const expected[] = {"sluice:{x}:", "a1", "0000000000000abc", "7",
		"1764500000123", "3", "11", "10", "176450000012",
		"0123456789abcdef0123456789abcdef01234567", "99", "2", "1", "1", "0000dead",
		"00000000000000aa", "00000000000000bb", "00000000000000cc", "0", "5"};
	const struct ledger_entry called = {.kind = LEDGER_CALLED,
		.line = 0xdead,
		.claim = {.key = 0xaa, .visitor = 0xbb, .session = 0xcc, .poll_after = 5}};
	const struct ledger_batch batch = batch_of(&called, 1);
	struct ledger_wire_args args = args_of(ARGS_MAX, TEXT_MAX);
	assert_true(encode(&batch, &args));
	assert_int_equal(args.count, sizeof(expected) / sizeof(expected[0]));
	for (uint32_t i = 0; i < args.count; i++) {
		assert_int_equal(args.lengths[i], strlen(expected[i]));
		assert_memory_equal(args.argv[i], expected[i], strlen(expected[i]));
	}
}

// The largest entry of each kind fits what the header says always does.
static struct ledger_entry largest(uint8_t kind)
{
	static uint8_t blob[LEDGER_BLOB_MAX];
	struct ledger_entry e = {.kind = kind, .line = UINT32_MAX};
	switch (kind) {
	case LEDGER_SLOTS:
		e.slots.count = LEDGER_SLOTS_MAX;
		e.slots.total = (1ull << 53) - 1;
		break;
	case LEDGER_GATHERED:
		e.gathered.what = LEDGER_GATHERED_WHATS - 1;
		e.gathered.count = LEDGER_IDS_MAX;
		e.gathered.number = e.gathered.from = e.gathered.people = (1ull << 53) - 1;
		break;
	case LEDGER_CODE:
		e.code = (struct ledger_code){LEDGER_CODE_KNOWN, UINT32_MAX,
			{UINT64_MAX, UINT64_MAX}, UINT64_MAX, {UINT64_MAX, UINT64_MAX, true}};
		break;
	case LEDGER_RECORD:
		e.record = (struct ledger_record){
			15, true, UINT32_MAX, UINT32_MAX, LEDGER_BLOB_MAX, blob};
		break;
	case LEDGER_NODE:
		e.node = (struct ledger_node){
			.limits = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX,
				{UINT32_MAX, UINT32_MAX}, {UINT32_MAX, UINT32_MAX}},
			.parent = UINT32_MAX,
			.priority = UINT32_MAX,
			.weight = UINT32_MAX,
			.session_s = UINT32_MAX,
			.present_max = UINT32_MAX,
			.left_max = UINT32_MAX,
			.ended_max = UINT32_MAX};
		break;
	case LEDGER_CORRECTION:
		e.correction_ms = 1 - (1ll << 53);
		break;
	case LEDGER_RESTORE:
		e.restore.floor_rank = e.restore.fence = e.restore.final = (1ull << 53) - 1;
		break;
	default:
		break;
	}
	return e;
}

static void every_kind_fits_its_bound(void **state)
{
	(void)state;
	for (uint8_t kind = 1; kind < LEDGER_KINDS; kind++) {
		const struct ledger_entry entry = largest(kind);
		struct ledger_batch batch = batch_of(&entry, 1);
		memset(batch.name, 'n', LEDGER_NAME_MAX);
		batch.number = batch.time_ms = batch.fence = batch.cursor = (1ull << 53) - 1;
		struct ledger_wire_args args =
			args_of(LEDGER_WIRE_ARGS_BATCH + LEDGER_WIRE_ARGS_ENTRY,
				LEDGER_WIRE_BYTES_BATCH + LEDGER_WIRE_BYTES_ENTRY);
		assert_true(encode(&batch, &args));
		for (uint32_t max = 0; max < args.count; max++) {
			struct ledger_wire_args few = args_of(max, TEXT_MAX);
			assert_false(encode(&batch, &few));
		}
		const size_t used = args.used;
		for (size_t bytes = 0; bytes <= used; bytes += 13) {
			struct ledger_wire_args few = args_of(ARGS_MAX, bytes > 0 ? bytes - 1 : 0);
			assert_false(encode(&batch, &few));
		}
	}
}

static void limits_of_the_header_hold(void **state)
{
	(void)state;
	static struct ledger_entry entries[LEDGER_ENTRIES_MAX + 1];
	for (uint32_t i = 0; i <= LEDGER_ENTRIES_MAX; i++)
		entries[i].kind = LEDGER_VIEW;
	struct ledger_wire_args args = args_of(ARGS_MAX, TEXT_MAX);
	struct ledger_batch batch = batch_of(entries, LEDGER_ENTRIES_MAX);
	assert_true(encode(&batch, &args));
	batch.count++;
	assert_false(encode(&batch, &args));
	for (uint32_t i = 0; i <= LEDGER_READS_MAX; i++) {
		entries[i] = (struct ledger_entry){.kind = LEDGER_READ};
		batch = batch_of(entries, i + 1);
		assert_int_equal(encode(&batch, &args), i < LEDGER_READS_MAX);
	}

	struct ledger_entry bad[] = {
		{.kind = LEDGER_SLOTS, .slots = {.count = LEDGER_SLOTS_MAX + 1}},
		{.kind = LEDGER_SLOTS},
		{.kind = LEDGER_SLOTS, .slots = {.count = 1, .total = 1ull << 53}},
		{.kind = LEDGER_CODE}, {.kind = LEDGER_CODE, .code = {.what = LEDGER_CODE_WHATS}},
		{.kind = LEDGER_GATHERED, .gathered = {.what = 1, .count = LEDGER_IDS_MAX + 1}},
		{.kind = LEDGER_GATHERED},
		{.kind = LEDGER_GATHERED, .gathered = {.what = LEDGER_GATHERED_WHATS}},
		{.kind = LEDGER_RECORD, .record = {.len = LEDGER_BLOB_MAX + 1}},
		{.kind = LEDGER_RECORD, .record = {.type = 16}},
		{.kind = LEDGER_RESTORE, .restore = {.final = 1ull << 53}},
		{.kind = LEDGER_CORRECTION, .correction_ms = 1ll << 53}};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		batch = batch_of(&bad[i], 1);
		assert_false(encode(&batch, &args));
	}
	batch = batch_of(NULL, 0);
	batch.number = 0;
	assert_false(encode(&batch, &args));
}

#define HEAD \
	"1 1 0 0 0 2 64 3 0 99 11 12 1764500000123 1764500000000 -123 " \
	"176450000012 "

static const struct {
	const char *what, *bytes;
	bool is_reply;
} heads[] = {
	{"whole", HEAD "0 0 0", true},
	{"with a line behind it", HEAD "1 0 0\n1 3", true},
	{"nothing", "", false},
	{"another version", "2 1 0 0 0 2 64 3 0 99 11 12 1 1 0 0 0 0 0", false},
	{"no such verdict", "1 5 0 0 0 2 64 3 0 99 11 12 1 1 0 0 0 0 0", false},
	{"no verdict", "1 0 0 0 0 2 64 3 0 99 11 12 1 1 0 0 0 0 0", false},
	{"a flag of 2", "1 1 2 0 0 2 64 3 0 99 11 12 1 1 0 0 0 0 0", false},
	{"a number too large", "1 1 0 0 0 65 64 3 0 99 11 12 1 1 0 0 0 0 0", false},
	{"a needless zero", "1 1 0 0 0 02 64 3 0 99 11 12 1 1 0 0 0 0 0", false},
	{"2^53 - 1", "1 1 0 0 0 2 64 9007199254740991 0 99 11 12 1 1 0 0 0 0 0", true},
	{"2^53", "1 1 0 0 0 2 64 9007199254740992 0 99 11 12 1 1 0 0 0 0 0", false},
	{"beyond 64 bits", "1 1 0 0 0 2 64 99999999999999999999 0 99 11 12 1 1 0 0 0 0 0", false},
	{"most answers", HEAD "1024 64 0", true},
	{"an answer more", HEAD "1025 0 0", false},
	{"a member more", HEAD "0 65 0", false},
	{"news beyond all pages", HEAD "0 0 65793", false},
	{"a field more", HEAD "0 0 0 0", false},
	{"a field less", HEAD "0 0", false},
};

static void heads_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		struct ledger_wire_reader reader;
		struct ledger_reply reply;
		const bool is_reply =
			ledger_wire_reply(&reader, heads[i].bytes, strlen(heads[i].bytes), &reply);
		if (is_reply != heads[i].is_reply)
			fail_msg("%s", heads[i].what);
	}
}

static void a_head_says_what_it_says(void **state)
{
	(void)state;
	struct ledger_wire_reader reader;
	struct ledger_reply reply;
	assert_true(ledger_wire_reply(&reader, HEAD "4 5 6", strlen(HEAD) + 5, &reply));
	assert_int_equal(reply.verdict, LEDGER_BATCH_TAKEN);
	assert_int_equal(reply.number, 2);
	assert_int_equal(reply.conductor, LEDGER_MEMBERS_MAX);
	assert_int_equal(reply.writes, 99);
	assert_int_equal(reply.newest, 12);
	assert_int_equal(reply.correction_ms, -123);
	assert_int_equal(reply.final, 176450000012);
	assert_int_equal(reply.answer_count, 4);
	assert_int_equal(reply.member_count, 5);
	assert_int_equal(reply.news_count, 6);
}

#define WORDS "00000000000000aa ffffffffffffffff 1 0 5 1764500000123 9 7 4000 65536 "
#define VIEW "18 7 0000000000000001 0000000000000000 ffffffffffffffff 0 0 0 0 0 0 0 0 0 0 0 0 0 5 "

static const struct {
	const char *bytes;
	bool is_answer;
} answers[] = {
	{"1 1 00000000000000ab 1764500600", true}, // called: granted
	{"1 1 00000000000000ab", false},
	{"1 1 00000000000000AB 1764500600", false},
	{"1 1 ab 1764500600", false},
	{"1 2 1", true}, // next
	{"1 2 10", true},
	{"1 2 11", false},
	{"1 2 0", false},
	{"2 2 1", false}, // direct: there is no next
	{"3 5 00000000000000ab 1764500600", true}, // renewed
	{"1 5 00000000000000ab 1764500600", false},
	{"4 7", true},
	{"4 7 1", false},
	{"16 1 00000000000000ab 00000000000000cd 1", true}, // a code honoured, and its place
	{"16 1 00000000000000ab 00000000000000cd 2", false},
	{"16 1 00000000000000ab 00000000000000cd", false},
	{"16 1", false},
	{"16 4", true}, // spent
	{"10 1", false},
	{"19 7 64 1000", true}, // a page
	{"19 7 64", false},
	{"0 7", false},
	{"22 7", true}, // a hold
	{"23 7", false},
	{"1 11", false},
	{"1 0", false},
	{"18 10", true},
	{VIEW "1 0 7 0000000000000005 " WORDS "ffffffffffffffff 0 4294967295 2 3 ", true},
	{VIEW "1 0 7 0000000000000005 " WORDS
	      "ffffffffffffffff 1 0 0 0 00000000000000ab00000000000000cd",
		true},
	{VIEW "1 0 7 0000000000000005 " WORDS "ffffffffffffffff 0 4294967295 2", false},
	{VIEW "1 0 7 0000000000000005 " WORDS "ffffffffffffffff 0 4294967296 2 3 ", false},
	{VIEW "1 0 7 0000000000000005 " WORDS "ffffffffffffffff 0 1 2 3 00000000000000ab0", false},
	{VIEW "1 0", false},
};

static void answers_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		const char *bytes = answers[i].bytes;
		struct ledger_wire_reader reader = {bytes, bytes + strlen(bytes)};
		struct ledger_answer answer;
		if (ledger_wire_answer(&reader, &answer) != answers[i].is_answer)
			fail_msg("%s", bytes);
	}
}

static void a_grant_says_session_and_end(void **state)
{
	(void)state;
	static const char bytes[] = "1 1 00000000000000ab 1764500600\n1 2 7\n";
	struct ledger_wire_reader reader = {bytes, bytes + strlen(bytes)};
	struct ledger_answer answer;
	assert_true(ledger_wire_answer(&reader, &answer));
	assert_int_equal(answer.verdict, LEDGER_GRANTED);
	assert_int_equal(answer.session, 0xab);
	assert_int_equal(answer.expires, 1764500600);
	assert_true(ledger_wire_answer(&reader, &answer));
	assert_int_equal(answer.verdict, LEDGER_NEXT);
	assert_int_equal(answer.poll_after, 7);
	assert_false(ledger_wire_answer(&reader, &answer));
}

static const struct {
	const char *bytes;
	bool is_member;
} members[] = {
	{"63 edge-1.tokyo_A 1 0 176450000012 1 77", true},
	{"64 a 1 0 0 0 0", false},
	{"0  1 0 0 0 0", false},
	{"0 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn 1 0 0 0 0", true}, // 32
	{"0 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn 1 0 0 0 0", false},
	{"0 a/b 1 0 0 0 0", false},
	{"0 a 1 0 0 0", false},
	{"0 a 1 0 0 2 0", false},
	{"0 a 1 0 0 1 x", false},
};

static void members_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		const char *bytes = members[i].bytes;
		struct ledger_wire_reader reader = {bytes, bytes + strlen(bytes)};
		struct ledger_member member;
		if (ledger_wire_member(&reader, &member) != members[i].is_member)
			fail_msg("%s", bytes);
	}
}

static const struct {
	const char *bytes;
	bool is_news;
} news[] = {
	{"5 1 0000001a 00000000000000ab 1764500600", true},
	{"5 1 1a 00000000000000ab 1764500600", false},
	{"5 2 0000001a 00000000000000ab 00000000000000cd", true},
	{"5 2 0000001a 00000000000000ab", false},
	{"5 3 0000001a 00000000000000ab 00000000000000aa 4 1 9 00000000000000aa", false},
	{"5 3 0000001a 00000000000000ab 00000000000000aa 4 1 9 " WORDS "of tomorrow", true},
	{"5 3 0000001a 00000000000000ab 00000000000000aa 4 1", false},
	{"5 4 0000001a 3 12 00000000000000ab00000000000000cd", true},
	{"5 4 0000001a 3 12 00000000000000ab00000000000000c", false},
	{"5 4 0000001a 3 12 00000000000000ab0000000000000 cd", false},
	{"5 5 3 1 a4", true},
	{"5 6 3 9", true},
	{"5 7 15 00000001 00ff", true},
	{"5 7 15 00000001 ", true}, // deleted
	{"5 7 16 00000001 00ff", false},
	{"5 7 15 00000001 00f", false},
	{"5 7 15 00000001 0g", false},
	{"0 8 0000001a 77 64 8000000000000001 00000000000000ab00000000000000cd", true},
	{"0 8 0000001a 77 0 0000000000000000 ", true}, // nobody
	{"0 8 0000001a 77 0 000000000000000 ", false},
	{"0 8 0000001a 77 0 0000000000000000 00000000000000ab00", false},
	{"5 9 what a newer member says", true},
	{"5 0", false},
	{"5", false},
	{"", false},
};

static void news_are_checked(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(news) / sizeof(news[0]); i++) {
		const char *bytes = news[i].bytes;
		struct ledger_wire_reader reader = {bytes, bytes + strlen(bytes)};
		struct ledger_news item;
		if (ledger_wire_news(&reader, &item) != news[i].is_news)
			fail_msg("%s", bytes);
	}
}

static void slots_are_as_many_as_fit(void **state)
{
	(void)state;
	char bytes[32 + 16 * (LEDGER_SLOTS_MAX + 1)] = "5 4 0000001a 3 12 ";
	const size_t head = strlen(bytes);
	memset(bytes + head, '1', sizeof(bytes) - head);
	struct ledger_news item;
	struct ledger_wire_reader most = {bytes, bytes + head + 16 * LEDGER_SLOTS_MAX};
	assert_true(ledger_wire_news(&most, &item));
	assert_int_equal(item.count, LEDGER_SLOTS_MAX);
	assert_true(item.held[LEDGER_SLOTS_MAX - 1] == 0x1111111111111111);
	struct ledger_wire_reader over = {bytes, bytes + head + 16 * (LEDGER_SLOTS_MAX + 1)};
	assert_false(ledger_wire_news(&over, &item));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_is_a_key_and_arguments),
		cmocka_unit_test(every_kind_fits_its_bound),
		cmocka_unit_test(limits_of_the_header_hold),
		cmocka_unit_test(heads_are_checked),
		cmocka_unit_test(a_head_says_what_it_says),
		cmocka_unit_test(answers_are_checked),
		cmocka_unit_test(a_grant_says_session_and_end),
		cmocka_unit_test(members_are_checked),
		cmocka_unit_test(news_are_checked),
		cmocka_unit_test(slots_are_as_many_as_fit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
