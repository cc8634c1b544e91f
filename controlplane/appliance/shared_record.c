// Records field by field. A record is read to the end of what this version knows, and no further.

#include "controlplane/appliance/shared_record.h"

#include <assert.h>
#include <string.h>

static_assert(SHARED_RECORD_SECRET_BYTES + SEAL_OVERHEAD_BYTES <= LEDGER_BLOB_MAX,
	"a secret fits a record");
static_assert(
	SHARED_RECORD_ROOM_BYTES + STATUS_MESSAGE_BYTES_MAX <= LEDGER_BLOB_MAX, "a room does");

static uint8_t *put_u64(uint8_t *at, uint64_t value)
{
	for (int i = 0; i < 8; i++)
		at[i] = (uint8_t)(value >> (56 - 8 * i));
	return at + 8;
}

static const uint8_t *get_u64(const uint8_t *at, uint64_t *value)
{
	*value = 0;
	for (int i = 0; i < 8; i++)
		*value = *value << 8 | at[i];
	return at + 8;
}

uint32_t shared_record_put_secret(const struct shared_record_secret *r, uint8_t *bytes)
{
	bytes[0] = SHARED_VERSION;
	bytes[1] = r->state;
	uint8_t *at = put_u64(bytes + 2, r->of.created_s);
	at = put_u64(at, r->of.retire_s);
	at = put_u64(at, r->ttl_s);
	memcpy(at, r->of.key, STORE_SECRET_BYTES);
	memcpy(bytes + SHARED_RECORD_SECRET_BYTES, r->rest, r->rest_bytes);
	return SHARED_RECORD_SECRET_BYTES + r->rest_bytes;
}

bool shared_record_secret(
	const uint8_t *bytes, uint32_t len, uint8_t id, struct shared_record_secret *r)
{
	assert(bytes[0] == SHARED_VERSION && len >= SHARED_RECORD_SECRET_BYTES);
	*r = (struct shared_record_secret){.of = {.id = id}, .state = bytes[1]};
	const uint8_t *at = get_u64(bytes + 2, &r->of.created_s);
	at = get_u64(at, &r->of.retire_s);
	at = get_u64(at, &r->ttl_s);
	memcpy(r->of.key, at, STORE_SECRET_BYTES);
	r->rest_bytes = len - SHARED_RECORD_SECRET_BYTES;
	memcpy(r->rest, bytes + SHARED_RECORD_SECRET_BYTES, r->rest_bytes);
	return r->state == SECRETS_TOLD || r->state == SECRETS_CURRENT || r->state == SECRETS_OLD;
}

uint32_t shared_record_put_seed(const uint8_t *key, uint8_t *bytes)
{
	bytes[0] = SHARED_VERSION;
	memcpy(bytes + 1, key, STORE_SECRET_BYTES);
	return SHARED_RECORD_SEED_BYTES;
}

uint32_t shared_record_put_room(const struct shared_room *room, struct span rest, uint8_t *bytes)
{
	const uint32_t len = (uint32_t)strlen(room->message);
	const uint32_t known = SHARED_RECORD_ROOM_BYTES + len;
	if (rest.len > LEDGER_BLOB_MAX - known)
		return 0;
	bytes[0] = SHARED_VERSION;
	bytes[1] = room->state;
	bytes[2] = room->mode;
	bytes[3] = room->salt_bytes;
	memcpy(bytes + 4, room->salt, STORE_SALT_BYTES_MAX);
	uint8_t *at = put_u64(bytes + 4 + STORE_SALT_BYTES_MAX, room->opened_ms);
	at = put_u64(at, room->opened_at_ms);
	at[0] = (uint8_t)(len >> 8);
	at[1] = (uint8_t)len;
	memcpy(at + 2, room->message, len);
	if (rest.len > 0)
		memcpy(bytes + known, rest.at, rest.len);
	return known + (uint32_t)rest.len;
}

bool shared_record_room(const uint8_t *bytes, uint32_t len, uint32_t line_id,
	struct shared_room *room, struct span *rest)
{
	if (len < SHARED_RECORD_ROOM_BYTES || bytes[0] != SHARED_VERSION)
		return false;
	*room = (struct shared_room){.line_id = line_id, .state = bytes[1], .mode = bytes[2]};
	room->salt_bytes = bytes[3] <= STORE_SALT_BYTES_MAX ? bytes[3] : 0;
	memcpy(room->salt, bytes + 4, STORE_SALT_BYTES_MAX);
	const uint8_t *at = get_u64(bytes + 4 + STORE_SALT_BYTES_MAX, &room->opened_ms);
	at = get_u64(at, &room->opened_at_ms);
	const uint32_t message = (uint32_t)at[0] << 8 | at[1];
	const uint32_t known = SHARED_RECORD_ROOM_BYTES + message;
	if (message > STATUS_MESSAGE_BYTES_MAX || known > len)
		return false;
	memcpy(room->message, at + 2, message);
	*rest = (struct span){(const char *)bytes + known, len - known};
	return true;
}

uint32_t shared_record_put_release(uint64_t number, uint64_t people, uint8_t *bytes)
{
	bytes[0] = SHARED_VERSION;
	put_u64(put_u64(bytes + 1, number), people);
	return SHARED_RECORD_RELEASE_BYTES;
}

bool shared_record_release(const uint8_t *bytes, uint32_t len, uint64_t *number, uint64_t *people)
{
	if (len < SHARED_RECORD_RELEASE_BYTES || bytes[0] != SHARED_VERSION)
		return false;
	get_u64(get_u64(bytes + 1, number), people);
	return true;
}
