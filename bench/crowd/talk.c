// The latency of an answer counts from when its request was meant to be sent: a server that stalls
// cannot hide that by being asked later.

#include "bench/crowd/talk.h"

#include <assert.h>
#include <stdlib.h>

#include "bench/crowd/answer.h"
#include "bench/crowd/random.h"
#include "bench/crowd/visit.h"

static void open_link(struct crowd *crowd, uint32_t id);

// A member whose appliance does not answer tries the next one, as a load balancer would have it do.
static void turn_to_next(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	member->target = (uint8_t)((member->target + 1u) % crowd->plan->target_count);
}

// Another appliance, now and then: nobody comes back to where they were by themselves.
static void roam(struct crowd *crowd, uint32_t id)
{
	const struct plan *plan = crowd->plan;
	if (plan->target_count == 1 || random_share(&crowd->random) >= plan->roam)
		return;
	crowd->members[id].target = (uint8_t)(random_next(&crowd->random) % plan->target_count);
	links_close(&crowd->links, id);
}

static void forget(struct crowd_member *member)
{
	free(member->answer);
	member->answer = NULL;
	member->asked = REQUEST_NONE;
}

static void fail(struct crowd *crowd, uint32_t id, uint64_t *reason)
{
	++*reason;
	crowd->tally->errors++;
	if (!crowd->members[id].is_at_shop)
		turn_to_next(crowd, id);
	talk_end(crowd, id);
	visit_failed(crowd, id);
}

static void send_request(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	const struct request_carried carried = {
		.ticket = {member->ticket.text, member->ticket.is_set ? TOKEN_TEXT_BYTES : 0},
		.pass = {member->pass.text, member->pass.is_set ? TOKEN_TEXT_BYTES : 0},
		.session = member->session,
	};
	char text[REQUEST_BYTES_MAX];
	const size_t bytes = request_write(crowd->plan, member->asked, &carried, text);
	answer_begin(member->answer);
	member->sent_us = crowd->now_us;
	member->is_sent = true;
	visit_sends(crowd, id);
	if (links_send(&crowd->links, id, (struct span){text, bytes}))
		return;
	links_close(&crowd->links, id);
	if (member->is_reused)
		open_link(crowd, id);
	else
		fail(crowd, id, &crowd->tally->error_connect);
}

static void open_link(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	member->is_at_shop = member->asked == REQUEST_TELL;
	crowd->tally->reconnects += member->is_reused;
	member->is_reused = member->is_sent = false;
	const struct plan_peer *to =
		member->is_at_shop ? &crowd->plan->shop : &crowd->plan->targets[member->target];
	const struct sockaddr *address = (const struct sockaddr *)&to->address;
	if (links_open(&crowd->links, id, address, to->bytes) < 0)
		fail(crowd, id, &crowd->tally->error_connect);
}

void talk_ask(struct crowd *crowd, uint32_t id, enum request request)
{
	struct crowd_member *member = &crowd->members[id];
	assert(member->asked == REQUEST_NONE);
	assert(!member->answer);
	member->answer = malloc(sizeof(*member->answer));
	assert(member->answer); // a crowd without memory measures nothing
	member->asked = request;
	member->is_sent = false;
	agenda_set(&crowd->agenda, id, crowd->now_us + TALK_PATIENCE_US);
	histogram_add(&crowd->tally->late_us, crowd->now_us - member->due_us);
	if (member->is_at_shop != (request == REQUEST_TELL))
		links_close(&crowd->links, id);
	else if (request != REQUEST_TELL)
		roam(crowd, id);
	member->is_reused = crowd->links.links[id].state == LINK_OPEN;
	if (member->is_reused)
		send_request(crowd, id);
	else
		open_link(crowd, id);
}

void talk_timed_out(struct crowd *crowd, uint32_t id)
{
	assert(crowd->members[id].asked != REQUEST_NONE);
	fail(crowd, id, &crowd->tally->error_timeout);
}

void talk_end(struct crowd *crowd, uint32_t id)
{
	forget(&crowd->members[id]);
	agenda_remove(&crowd->agenda, id);
	links_close(&crowd->links, id);
}

static void deliver(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	struct answer *answer = member->answer;
	const enum request asked = member->asked;
	if (answer->closes)
		links_close(&crowd->links, id);
	agenda_remove(&crowd->agenda, id);
	member->answer = NULL;
	member->asked = REQUEST_NONE;
	visit_answered(crowd, id, asked, answer);
	free(answer);
}

static void take_data(struct crowd *crowd, uint32_t id, struct span data)
{
	struct crowd_member *member = &crowd->members[id];
	if (member->asked == REQUEST_NONE || !member->is_sent) {
		links_close(&crowd->links, id); // a 408 or 503 that nobody asked for, then FIN
		return;
	}
	const enum answer_result result = answer_feed(member->answer, data);
	if (result == ANSWER_DONE)
		deliver(crowd, id);
	else if (result == ANSWER_BAD)
		fail(crowd, id, &crowd->tally->error_answer);
}

static void take_end(struct crowd *crowd, uint32_t id)
{
	struct crowd_member *member = &crowd->members[id];
	if (member->asked == REQUEST_NONE)
		return;
	if (!member->is_sent)
		fail(crowd, id, &crowd->tally->error_connect);
	else if (answer_is_whole_at_end(member->answer))
		deliver(crowd, id);
	else if (member->is_reused && member->answer->head_bytes == 0)
		open_link(crowd, id);
	else
		fail(crowd, id, &crowd->tally->error_closed);
}

void talk_event(struct crowd *crowd, const struct link_event *event)
{
	if (event->kind == LINK_EVENT_OPENED)
		send_request(crowd, event->id);
	else if (event->kind == LINK_EVENT_DATA)
		take_data(crowd, event->id, event->data);
	else
		take_end(crowd, event->id);
}
