// The engines that read a token's letters mean the same, and stay within their bytes.

#include "dataplane/gate/token_text.h"
#include "tests/unit/gate/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

// Every letter at every place, and every octet that is none.
static void every_octet_at_every_place(void **state)
{
	(void)state;
	uint8_t wire[TOKEN_TEXT_WIRE_BYTES] = {0}, narrow[TOKEN_TEXT_WIRE_BYTES],
		wide[TOKEN_TEXT_WIRE_BYTES];
	char text[TOKEN_TEXT_BYTES];
	unsigned letters = 0;
	for (unsigned at = 0; at < TOKEN_TEXT_BYTES; at++)
		for (unsigned octet = 0; octet < 256; octet++) {
			token_text_write(wire, text);
			text[at] = (char)octet;
			bool is_read = token_text_read_scalar(text, narrow);
			assert_int_equal(token_text_read(text, wide), is_read);
			if (is_read)
				assert_memory_equal(wide, narrow, sizeof(narrow));
			letters += is_read;
		}
	assert_int_equal(letters, TOKEN_TEXT_BYTES * 64);
}

// Text and bytes end at unmapped pages.
static void random_tokens(void **state)
{
	(void)state;
	char *text = guard_make() - TOKEN_TEXT_BYTES;
	uint8_t *wide = (uint8_t *)guard_make() - TOKEN_TEXT_WIRE_BYTES;
	uint8_t wire[TOKEN_TEXT_WIRE_BYTES], narrow[TOKEN_TEXT_WIRE_BYTES];
	unsigned seed = (unsigned)time(NULL);
	printf("seed %u\n", seed);
	srandom(seed);
	for (unsigned round = 0; round < 20000; round++) {
		for (unsigned i = 0; i < sizeof(wire); i++)
			wire[i] = (uint8_t)random();
		token_text_write(wire, text);
		assert_true(token_text_read_scalar(text, narrow));
		assert_true(token_text_read(text, wide));
		assert_memory_equal(narrow, wire, sizeof(wire));
		assert_memory_equal(wide, wire, sizeof(wire));
		for (unsigned changes = random() % 4; changes > 0; changes--)
			text[random() % TOKEN_TEXT_BYTES] = (char)random();
		bool is_read = token_text_read_scalar(text, narrow);
		assert_int_equal(token_text_read(text, wide), is_read);
		if (is_read)
			assert_memory_equal(wide, narrow, sizeof(narrow));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_octet_at_every_place),
		cmocka_unit_test(random_tokens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
