// Runs a fuzz harness over random octets: noise, with its first of four drawn so that most steps
// get somewhere.

#include "tests/unit/http/dice.h"
#include "tests/unit/http/guard.h"

#include <stdio.h>

#define RUNS 3000u
#define STEPS_MAX 250u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int main(void)
{
	dice_begin();
	for (unsigned run = 0; run < RUNS; run++) {
		char octets[STEPS_MAX * 4];
		size_t len = dice(STEPS_MAX) * 4;
		for (size_t i = 0; i < len; i++)
			octets[i] = (char)dice(256);
		// It begins with handshakes.
		for (size_t i = 0; i + 8 <= len && i < 32; i += 8) {
			octets[i] = 0;
			octets[i + 4] = 1;
			octets[i + 1] = octets[i + 5] = (char)(i / 8);
		}
		struct span in = guard_copy((struct span){octets, len});
		LLVMFuzzerTestOneInput((const uint8_t *)in.at, in.len);
	}
	printf("%u runs\n", RUNS);
	return 0;
}
