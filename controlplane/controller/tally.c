// Tally: a ring of seconds.

#include "controlplane/controller/tally.h"

#define RING (TALLY_SECONDS + 1)

void tally_init(struct tally *t, uint64_t now_ms)
{
	*t = (struct tally){.second = now_ms / 1000, .began = now_ms / 1000};
}

void tally_add(struct tally *t, uint64_t now_ms)
{
	const uint64_t second = now_ms / 1000;
	for (uint32_t i = 0; i < RING && t->second < second; i++)
		t->counts[++t->second % RING] = 0;
	t->second = second;
	t->counts[second % RING]++;
}

double tally_rate(const struct tally *t, uint64_t now_ms)
{
	const uint64_t second = now_ms / 1000, lived = second - t->began;
	const uint64_t span = lived < TALLY_SECONDS ? lived : TALLY_SECONDS;
	uint64_t sum = 0;
	for (uint64_t at = second - span; at < second; at++) {
		if (at <= t->second && at + RING > t->second)
			sum += t->counts[at % RING];
	}
	return span ? (double)sum / (double)span : 0;
}
