// Feeds replies of any kind to all that reads one at the greeting: hiredis reads the bytes, as many
// replies as they hold, and each is judged as every one of them. Whatever is taken must be a text
// that ends, of the characters that it may have.

#include "controlplane/link/link_greeting.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check_error(const char *error)
{
	assert(strnlen(error, LINK_GREETING_TEXT_BYTES) < LINK_GREETING_TEXT_BYTES);
	for (const char *c = error; *c; c++)
		assert(*c < 0 || (*c >= ' ' && *c != 0x7f));
}

static void check_id(const char *id)
{
	assert(strspn(id, "0123456789abcdef") == 40 && id[40] == '\0');
}

static void judge(const redisReply *reply)
{
	char error[LINK_GREETING_TEXT_BYTES], name[LINK_GREETING_ID_BYTES];
	char host[LINK_GREETING_HOST_BYTES];
	uint16_t port;
	struct link_server server;
	struct link_warnings warnings;
	if (!link_greeting_take_ok(reply, error))
		check_error(error);
	if (!link_greeting_take_role(reply, error))
		check_error(error);
	if (link_greeting_take_info(reply, &server, error)) {
		check_id(server.run_id);
		check_id(server.replication_id);
		assert(strspn(server.version, "0123456789.") == strlen(server.version));
	} else {
		check_error(error);
	}
	if (link_greeting_take_script(reply, name, error))
		check_id(name);
	if (link_greeting_take_primary(reply, host, &port, error))
		assert(port > 0 && strlen(host) > 0 && strlen(host) < sizeof(host));
	link_greeting_take_config(reply, true, &warnings);
	assert(warnings.count <= LINK_GREETING_WARNINGS_MAX);
	for (uint32_t i = 0; i < warnings.count; i++)
		check_error(warnings.texts[i]);
	assert(!link_greeting_is_demoted(reply) || !link_greeting_is_forgotten(reply));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	void *reply;
	redisReader *reader = redisReaderCreate();
	if (!reader)
		abort();
	redisReaderFeed(reader, (const char *)data, len);
	while (redisReaderGetReply(reader, &reply) == REDIS_OK && reply) {
		judge(reply);
		freeReplyObject(reply);
	}
	redisReaderFree(reader);
	return 0;
}
