// MACs: both engines against OpenSSL's HMAC, and the choice between them.
//
// The source is included, for the known-answer test.

#include "dataplane/gate/mac.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#define KEYS 7
#define SECRET_BYTES_MAX 200
#define BURST_MAX 300 // beyond two calls of ipsec-mb

struct keyring {
	uint8_t secrets[KEYS][SECRET_BYTES_MAX];
	size_t bytes[KEYS];
	struct mac_key keys[KEYS];
};

// Secrets of all kinds of sizes: ours, a whole block, one beyond it (hashed first), long ones.
static void keyring_init(struct keyring *ring, unsigned *seed)
{
	static const size_t bytes[KEYS] = {32, 16, 63, 64, 65, 128, SECRET_BYTES_MAX};
	for (int i = 0; i < KEYS; i++) {
		ring->bytes[i] = bytes[i];
		for (size_t j = 0; j < bytes[i]; j++)
			ring->secrets[i][j] = rand_r(seed);
		mac_key_init(&ring->keys[i], ring->secrets[i], bytes[i]);
	}
}

// A burst of random messages under mixed keys; messages lie flush against an unmapped page.
static void check_burst(struct mac_engine *engine, const struct keyring *ring, char *guard,
	uint32_t count, unsigned *seed)
{
	struct mac_job jobs[BURST_MAX];
	uint8_t tags[BURST_MAX][MAC_TAG_BYTES + 1]; // and one that nobody may touch
	int key_of[BURST_MAX];
	uint8_t *messages = (uint8_t *)guard - count * MAC_MESSAGE_BYTES;
	memset(tags, 0xee, sizeof(tags));
	for (uint32_t i = 0; i < count * MAC_MESSAGE_BYTES; i++)
		messages[i] = rand_r(seed);
	for (uint32_t i = 0; i < count; i++) {
		key_of[i] = rand_r(seed) % KEYS;
		jobs[i] = (struct mac_job){
			&ring->keys[key_of[i]], messages + i * MAC_MESSAGE_BYTES, tags[i]};
	}
	mac_burst(engine, jobs, count);
	for (uint32_t i = 0; i < count; i++) {
		uint8_t digest[32];
		HMAC(EVP_sha256(), ring->secrets[key_of[i]], ring->bytes[key_of[i]],
			jobs[i].message, MAC_MESSAGE_BYTES, digest, NULL);
		assert_memory_equal(tags[i], digest, MAC_TAG_BYTES);
		assert_int_equal(tags[i][MAC_TAG_BYTES], 0xee);
	}
}

static void check_all_sizes(uint32_t threshold)
{
	static const uint32_t large[] = {127, 128, 129, 255, 256, 257, BURST_MAX};
	unsigned seed = threshold;
	struct keyring ring;
	struct mac_engine *engine;
	size_t bytes = 16 << 10;
	char *map = mmap(
		NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(map != MAP_FAILED);
	assert_int_equal(mprotect(map + bytes, 4096, PROT_NONE), 0);
	keyring_init(&ring, &seed);
	assert_int_equal(mac_create(&engine), 0);
	mac_set_threshold(engine, threshold);
	for (uint32_t count = 0; count <= 64; count++)
		for (int round = 0; round < 3; round++)
			check_burst(engine, &ring, map + bytes, count, &seed);
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		check_burst(engine, &ring, map + bytes, large[i], &seed);
	mac_destroy(engine);
	munmap(map, bytes + 4096);
}

static void lanes_agree_with_openssl(void **state)
{
	(void)state;
	check_all_sizes(1);
}

static void states_agree_with_openssl(void **state)
{
	(void)state;
	check_all_sizes(MAC_LANES_NEVER);
}

static void mixed_engines_agree_with_openssl(void **state)
{
	(void)state;
	check_all_sizes(5);
}

static void a_wrong_answer_is_noticed(void **state)
{
	(void)state;
	struct mac_engine *engine;
	struct trial trial;
	assert_int_equal(mac_create(&engine), 0);
	trial_init(&trial);
	for (uint32_t threshold = 1; threshold != 3; threshold++) {
		mac_set_threshold(engine, threshold == 1 ? 1 : MAC_LANES_NEVER);
		assert_true(known_answer_holds(engine, &trial, known_tag));
		trial.key.outer[7] ^= 1;
		assert_false(known_answer_holds(engine, &trial, known_tag));
		trial.key.outer[7] ^= 1;
		trial.key.inner[0] ^= 1;
		assert_false(known_answer_holds(engine, &trial, known_tag));
		trial.key.inner[0] ^= 1;
	}
	mac_destroy(engine);
}

// What is measured depends on the machine; that it is a size that was tried, or never, and that it
// was found in time, does not.
static void the_threshold_is_measured(void **state)
{
	(void)state;
	struct mac_engine *engine;
	uint64_t start = now_ns();
	assert_int_equal(mac_create(&engine), 0);
	uint64_t took = now_ns() - start;
	uint32_t threshold = mac_threshold(engine);
	assert_true(
		(threshold >= 1 && threshold <= MEASURE_JOBS_MAX) || threshold == MAC_LANES_NEVER);
	printf("lanes from %u on, measured in %u us\n", threshold, (unsigned)(took / 1000));
	mac_set_threshold(engine, 9);
	assert_true(mac_threshold(engine) == (engine->lanes ? 9 : MAC_LANES_NEVER));
	mac_destroy(engine);
}

static void destroying_nothing_is_fine(void **state)
{
	(void)state;
	mac_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes_agree_with_openssl),
		cmocka_unit_test(states_agree_with_openssl),
		cmocka_unit_test(mixed_engines_agree_with_openssl),
		cmocka_unit_test(a_wrong_answer_is_noticed),
		cmocka_unit_test(the_threshold_is_measured),
		cmocka_unit_test(destroying_nothing_is_fine),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
