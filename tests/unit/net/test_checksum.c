// Goal: sums are those of RFC 1071, whatever the length, the place in memory and the pieces.

#include "dataplane/net/checksum.h"
#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"
#include "tests/unit/net/packets.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

// The example of RFC 1071 3: 00 01 f2 03 f4 f5 f6 f7 sum up to ddf2.
static void example_of_the_rfc(void **state)
{
	(void)state;
	struct span bytes = SPAN("\x00\x01\xf2\x03\xf4\xf5\xf6\xf7");
	assert_int_equal(ntohs(checksum_fold(checksum_sum(bytes))), 0xddf2);
	assert_int_equal(ntohs(checksum_finish(checksum_sum(bytes))), (uint16_t)~0xddf2);
	assert_int_equal(checksum_sum((struct span){NULL, 0}), 0);
}

static char input[3000];

static void fill(size_t len)
{
	// Bytes of all ones are those in which carries get lost.
	for (size_t i = 0; i < len; i++)
		input[i] = (char)(dice(3) ? 0xff : dice(256));
}

static void equals_the_naive_twin(void **state)
{
	(void)state;
	dice_begin();
	for (unsigned round = 0; round < 20000; round++) {
		size_t len = dice(dice(8) ? 100 : sizeof(input));
		fill(len);
		struct span bytes = guard_copy((struct span){input, len});
		uint16_t expected = packets_checksum((const uint8_t *)bytes.at, len);
		assert_int_equal(ntohs(checksum_finish(checksum_sum(bytes))), expected);
		static char copy[sizeof(input) + 8];
		unsigned shift = dice(8);
		memset(copy, 0x55, sizeof(copy));
		assert_int_equal(checksum_copy(copy + shift, bytes), checksum_sum(bytes));
		assert_memory_equal(copy + shift, bytes.at, len);
		assert_int_equal(copy[shift + len], 0x55);
	}
}

static void pieces_sum_up_to_the_whole(void **state)
{
	(void)state;
	dice_begin();
	for (unsigned round = 0; round < 5000; round++) {
		size_t len = 1 + dice(sizeof(input) - 1);
		fill(len);
		uint64_t sum = 0;
		for (size_t at = 0; at < len;) {
			size_t piece = 1 + dice((uint32_t)(len - at));
			uint64_t part = checksum_sum((struct span){input + at, piece});
			sum += at % 2 ? checksum_turn(part) : part;
			at += piece;
		}
		assert_int_equal(
			ntohs(checksum_finish(sum)), packets_checksum((const uint8_t *)input, len));
	}
}

static void one_bit_makes_it_bad(void **state)
{
	(void)state;
	dice_begin();
	for (unsigned round = 0; round < 2000; round++) {
		size_t len = 4 + 2 * dice(100);
		fill(len);
		memset(input, 0, 2);
		uint16_t checksum = checksum_finish(checksum_sum((struct span){input, len}));
		memcpy(input, &checksum, 2);
		assert_true(checksum_is_good(checksum_sum((struct span){input, len})));
		input[dice((uint32_t)len)] ^= (char)(1 << dice(8));
		assert_false(checksum_is_good(checksum_sum((struct span){input, len})));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(example_of_the_rfc),
		cmocka_unit_test(equals_the_naive_twin),
		cmocka_unit_test(pieces_sum_up_to_the_whole),
		cmocka_unit_test(one_bit_makes_it_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
