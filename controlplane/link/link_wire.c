// The length comes first, so that the buffer is grown once and each byte written once.

#include "controlplane/link/link_wire.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 24u // "$", at most 20 digits, "\r\n"

void link_wire_fini(struct link_wire *wire)
{
	free(wire->at);
	*wire = (struct link_wire){0};
}

static int grow(struct link_wire *wire, size_t bytes)
{
	if (bytes <= wire->bytes_max)
		return 0;
	char *at = realloc(wire->at, bytes);
	if (!at)
		return -ENOMEM;
	wire->at = at;
	wire->bytes_max = bytes;
	return 0;
}

static void put_head(struct link_wire *wire, char kind, size_t number)
{
	wire->bytes +=
		(size_t)snprintf(wire->at + wire->bytes, HEAD_BYTES, "%c%zu\r\n", kind, number);
}

static void put(struct link_wire *wire, const char *text, size_t bytes)
{
	put_head(wire, '$', bytes);
	if (bytes > 0)
		memcpy(wire->at + wire->bytes, text, bytes);
	memcpy(wire->at + wire->bytes + bytes, "\r\n", 2);
	wire->bytes += bytes + 2;
}

int link_wire_set_batch(struct link_wire *wire, const char *name, uint32_t key_count, uint32_t argc,
	const char *const *argv, const size_t *bytes, size_t bytes_max)
{
	char keys[12];
	assert(key_count <= argc);
	snprintf(keys, sizeof(keys), "%u", key_count);
	wire->bytes = 0;
	// The most that it can be: EVALSHA, name and keys, the array's head, each argument.
	size_t most =
		HEAD_BYTES + 3 * (HEAD_BYTES + 2) + strlen("EVALSHA") + strlen(name) + sizeof(keys);
	for (uint32_t i = 0; i < argc; i++)
		if (bytes[i] > bytes_max || (most += HEAD_BYTES + bytes[i] + 2) > bytes_max)
			return -E2BIG;
	if (grow(wire, most) < 0)
		return -ENOMEM;
	put_head(wire, '*', 3 + (size_t)argc);
	put(wire, "EVALSHA", strlen("EVALSHA"));
	put(wire, name, strlen(name));
	put(wire, keys, strlen(keys));
	for (uint32_t i = 0; i < argc; i++)
		put(wire, argv[i], bytes[i]);
	assert(wire->bytes <= wire->bytes_max);
	return 0;
}
