// Records that appliances share, as bytes of a peer: rooms and releases stand open in Redis, for
// whoever can write there; secrets are what was sealed with our key, of whatever version. What is
// taken keeps its bounds, and written again it is the same record.
//
// The first byte: r room, n release, s secret.

#include "controlplane/appliance/shared_record.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void take_room(const uint8_t *bytes, uint32_t len)
{
	struct shared_room room;
	struct span rest;
	uint8_t once[LEDGER_BLOB_MAX], twice[LEDGER_BLOB_MAX];
	if (!shared_record_room(bytes, len, 7, &room, &rest))
		return;
	assert(room.line_id == 7 && room.salt_bytes <= STORE_SALT_BYTES_MAX);
	assert(strnlen(room.message, sizeof(room.message)) < sizeof(room.message));
	assert(rest.len < len && (const uint8_t *)rest.at + rest.len == bytes + len);
	const uint32_t count = shared_record_put_room(&room, rest, once);
	assert(count > 0 && count <= len); // shorter by what stood behind a NUL
	const bool is_taken = shared_record_room(once, count, 7, &room, &rest);
	assert(is_taken);
	const uint32_t again = shared_record_put_room(&room, rest, twice);
	assert(again == count && memcmp(once, twice, count) == 0);
}

static void take_release(const uint8_t *bytes, uint32_t len)
{
	uint64_t number, people;
	uint8_t written[LEDGER_BLOB_MAX];
	if (!shared_record_release(bytes, len, &number, &people))
		return;
	const uint32_t count = shared_record_put_release(number, people, written);
	assert(count == SHARED_RECORD_RELEASE_BYTES && memcmp(written, bytes, count) == 0);
}

static void take_secret(const uint8_t *bytes, uint32_t len)
{
	static struct shared_record_secret secret;
	uint8_t written[LEDGER_BLOB_MAX];
	if (len < SHARED_RECORD_SECRET_BYTES || bytes[0] != SHARED_VERSION)
		return; // nothing of this is opened (shared.c, open_sealed())
	if (!shared_record_secret(bytes, len, 9, &secret))
		return;
	assert(secret.of.id == 9 && secret.rest_bytes == len - SHARED_RECORD_SECRET_BYTES);
	const uint32_t count = shared_record_put_secret(&secret, written);
	assert(count == len && memcmp(written, bytes, len) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0 || len - 1 > LEDGER_BLOB_MAX)
		return 0;
	if (data[0] == 'r')
		take_room(data + 1, (uint32_t)len - 1);
	else if (data[0] == 'n')
		take_release(data + 1, (uint32_t)len - 1);
	else if (data[0] == 's')
		take_secret(data + 1, (uint32_t)len - 1);
	return 0;
}
