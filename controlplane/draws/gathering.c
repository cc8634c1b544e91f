// The key of a gathering's hashes, and the JSON that proves its draw.

#include "controlplane/draws/gathering.h"

#include <assert.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
	char *at;
	uint32_t len;
};

void gathering_key(const struct gathering *g, struct mac_key *key)
{
	uint8_t secret[DRAW_SEED_BYTES + DRAW_SALT_BYTES_MAX];
	static_assert(DRAW_SEED_BYTES == STORE_SECRET_BYTES, "a seed is stored whole");
	memcpy(secret, g->record.seed, DRAW_SEED_BYTES);
	memcpy(secret + DRAW_SEED_BYTES, g->record.salt, g->record.salt_bytes);
	mac_key_init(key, secret, DRAW_SEED_BYTES + g->record.salt_bytes);
	OPENSSL_cleanse(secret, sizeof(secret));
}

__attribute__((format(printf, 2, 3))) static void put(struct text *text, const char *format, ...)
{
	va_list values;
	va_start(values, format);
	int len =
		vsnprintf(text->at + text->len, GATHER_PROOF_BYTES_MAX - text->len, format, values);
	va_end(values);
	assert(len >= 0 && text->len + (uint32_t)len < GATHER_PROOF_BYTES_MAX);
	text->len += (uint32_t)len;
}

// Bytes in hex, or null if there are none.
static void put_hex(struct text *text, const uint8_t *bytes, size_t count)
{
	if (count == 0) {
		put(text, "null");
		return;
	}
	put(text, "\"");
	for (size_t i = 0; i < count; i++)
		put(text, "%02x", bytes[i]);
	put(text, "\"");
}

static void put_commitment(struct text *text, const struct gathering *g)
{
	uint8_t hash[SHA256_DIGEST_LENGTH];
	SHA256(g->record.seed, sizeof(g->record.seed), hash);
	put(text, "\"commitment\":");
	put_hex(text, hash, sizeof(hash));
}

void gathering_proof(
	const struct gathering *g, const struct gathering *next, struct gather_proof *proof)
{
	struct text text = {.at = proof->json};
	const struct store_draw *draw = &g->record;
	put(&text, "{");
	put_commitment(&text, g);
	put(&text, ",\"seed\":");
	put_hex(&text, draw->seed, draw->is_drawn ? sizeof(draw->seed) : 0);
	put(&text, ",\"salt\":");
	put_hex(&text, draw->salt, draw->salt_bytes);
	if (draw->is_drawn)
		put(&text, ",\"count\":%" PRIu64 ",\"list_sha256\":", draw->count);
	else
		put(&text, ",\"count\":null,\"list_sha256\":");
	put_hex(&text, draw->list_sha256, draw->is_drawn ? sizeof(draw->list_sha256) : 0);
	put(&text, ",\"algorithm\":\"" DRAW_ALGORITHM "\",\"gathering\":%" PRIu64, draw->number);
	if (next) {
		put(&text, ",\"next\":{\"gathering\":%" PRIu64 ",", next->record.number);
		put_commitment(&text, next);
		put(&text, "}");
	}
	put(&text, "}");
	proof->json_len = text.len;
}
