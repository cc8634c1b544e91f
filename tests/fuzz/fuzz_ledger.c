// Replies of the ledger: whatever Redis says, reading it ends within it and keeps every bound.

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "controlplane/cluster/ledger_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool read_answers(struct ledger_wire_reader *reader, const struct ledger_reply *reply)
{
	struct ledger_answer answer;
	for (uint32_t i = 0; i < reply->answer_count; i++) {
		if (!ledger_wire_answer(reader, &answer))
			return false;
		assert(answer.kind > 0 && answer.kind < LEDGER_KINDS);
		assert(answer.verdict > 0 && answer.verdict < LEDGER_VERDICTS);
		assert(answer.poll_after <= LEDGER_NEXT_MAX_S);
	}
	return true;
}

static bool read_members(struct ledger_wire_reader *reader, const struct ledger_reply *reply)
{
	struct ledger_member member;
	for (uint32_t i = 0; i < reply->member_count; i++) {
		if (!ledger_wire_member(reader, &member))
			return false;
		assert(member.number < LEDGER_MEMBERS_MAX);
		assert(strlen(member.name) > 0 && strlen(member.name) <= LEDGER_NAME_MAX);
	}
	return true;
}

static bool read_news(struct ledger_wire_reader *reader)
{
	static struct ledger_news news;
	if (!ledger_wire_news(reader, &news))
		return false;
	assert(news.member < LEDGER_MEMBERS_MAX && news.type < 16);
	assert(news.count <= (news.kind == LEDGER_NEWS_SLOTS ? LEDGER_SLOTS_MAX : LEDGER_BLOB_MAX));
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct ledger_wire_reader reader = {(const char *)data, (const char *)data + len};
	struct ledger_reply reply;
	while (reader.at < reader.end && read_news(&reader)) // as it is published
		;
	if (!ledger_wire_reply(&reader, (const char *)data, len, &reply))
		return 0;
	assert(reply.number <= LEDGER_MEMBERS_MAX && reply.conductor <= LEDGER_MEMBERS_MAX);
	if (read_answers(&reader, &reply) && read_members(&reader, &reply)) {
		for (uint32_t i = 0; i < reply.news_count && read_news(&reader); i++)
			;
	}
	assert(reader.at <= reader.end);
	return 0;
}
