// The functions of controller.h that the turn calls.

#include "tests/unit/store/controller_stub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

char controller_stub_diary[4096];

__attribute__((format(printf, 2, 3))) static void note(
	const struct controller *c, const char *format, ...)
{
	size_t len = strlen(controller_stub_diary);
	len += (size_t)snprintf(controller_stub_diary + len, sizeof(controller_stub_diary) - len,
		"%s%s.", len ? " " : "", c->name);
	va_list args;
	va_start(args, format);
	vsnprintf(controller_stub_diary + len, sizeof(controller_stub_diary) - len, format, args);
	va_end(args);
}

static void change(
	struct controller *c, enum controller_change_kind kind, const struct controller_change *of)
{
	c->changes[c->change_count] = *of;
	c->changes[c->change_count++].kind = kind;
}

static struct controller_change *session_of(struct controller *c, uint64_t visitor)
{
	for (uint32_t i = 0; i < c->session_count; i++) {
		if (c->sessions[i].visitor == visitor)
			return &c->sessions[i];
	}
	return NULL;
}

static uint8_t decide(
	struct controller *c, const struct claim *claim, uint64_t session, uint64_t now_ms)
{
	struct controller_change *known = session_of(c, claim->visitor);
	uint32_t expires = (uint32_t)(now_ms / 1000) + CONTROLLER_STUB_SESSION_S;
	if (claim->kind == CLAIM_RENEW && known) {
		known->expires = expires;
		change(c, CONTROLLER_RENEWED, known);
	}
	if (claim->kind == CLAIM_RENEW)
		return known ? CLAIM_RENEWED : CLAIM_LAPSED;
	if (known)
		return CLAIM_GRANTED;
	if (!c->is_available)
		return claim->kind == CLAIM_CALLED ? CLAIM_NEXT : CLAIM_REFUSED;
	known = &c->sessions[c->session_count++];
	*known = (struct controller_change){
		CONTROLLER_GRANTED, expires, session, claim->visitor, claim->key};
	change(c, CONTROLLER_GRANTED, known);
	return CLAIM_GRANTED;
}

static void answer_fill(struct controller *c, const struct claim *claim, uint64_t session,
	uint64_t now_ms, struct claim_answer *answer)
{
	answer->kind = claim->kind;
	answer->request = claim->request;
	answer->visitor = claim->visitor;
	answer->line_id = claim->line_id;
	answer->verdict = decide(c, claim, session, now_ms);
	const struct controller_change *known = session_of(c, claim->visitor);
	answer->session = known ? known->session : 0;
	answer->expires = known ? known->expires : 0;
}

bool controller_claim(struct controller *c, const struct claim *claim, uint64_t session,
	uint64_t now_ms, struct claim_answer *answer)
{
	assert_true(session != 0);
	if (claim->visitor >= CONTROLLER_STUB_LATER) {
		c->later = *claim;
		c->has_later = true;
		return false;
	}
	answer_fill(c, claim, session, now_ms, answer);
	return true;
}

bool controller_later(
	struct controller *c, uint64_t now_ms, struct claim_answer *answer, uint8_t *worker)
{
	if (!c->has_later || now_ms < c->later.sent_ms + 100)
		return false;
	c->has_later = false;
	*answer = (struct claim_answer){0};
	*worker = c->later.worker;
	answer_fill(c, &c->later, 4242, now_ms, answer);
	return true;
}

bool controller_restore(
	struct controller *c, const struct controller_change *restored, uint64_t now_ms)
{
	(void)now_ms;
	static const char *const words[] = {[CONTROLLER_GRANTED] = "restore",
		[CONTROLLER_ENDED] = "restore_over",
		[CONTROLLER_LEFT] = "restore_left"};
	note(c, "%s(%lu)", words[restored->kind], (unsigned long)restored->visitor);
	if (restored->visitor == CONTROLLER_STUB_NO_ROOM)
		return false;
	if (restored->kind == CONTROLLER_GRANTED)
		c->sessions[c->session_count++] = *restored;
	return true;
}

void controller_set_available(struct controller *c, bool available, uint64_t now_ms)
{
	(void)now_ms;
	assert_true(c->is_available != available);
	c->is_available = available;
	note(c, available ? "on" : "off");
}

void controller_refused(struct controller *c, uint64_t key, uint32_t poll_after, uint64_t now_ms)
{
	(void)now_ms;
	note(c, "refused(%lu,%u)", (unsigned long)key, poll_after);
}

void controller_gone(struct controller *c, uint64_t visitor, uint64_t session, uint64_t now_ms)
{
	(void)now_ms;
	(void)session;
	note(c, "gone(%lu)", (unsigned long)visitor);
}

bool controller_end(struct controller *c, uint64_t session, uint64_t now_ms)
{
	(void)now_ms;
	for (uint32_t i = 0; i < c->session_count; i++) {
		if (c->sessions[i].session != session)
			continue;
		note(c, "end(%lu)", (unsigned long)session);
		return true;
	}
	return false;
}

void controller_free(struct controller *c, uint64_t session, uint64_t now_ms)
{
	(void)now_ms;
	note(c, "free(%lu)", (unsigned long)session);
	for (uint32_t i = 0; i < c->session_count; i++) {
		if (c->sessions[i].session == session)
			change(c, CONTROLLER_ENDED, &c->sessions[i]);
	}
}

bool controller_leave(struct controller *c, uint64_t key, uint64_t visitor, uint64_t now_ms)
{
	(void)now_ms;
	note(c, "leave(%lu,%lu)", (unsigned long)key, (unsigned long)visitor);
	if (key == CONTROLLER_STUB_NO_LEAVE)
		return false;
	change(c, CONTROLLER_LEFT, &(struct controller_change){.key = key, .visitor = visitor});
	return true;
}

void controller_stub_pass(struct controller *c, uint64_t key)
{
	change(c, CONTROLLER_FORGET, &(struct controller_change){.key = key, .visitor = key});
}

uint64_t controller_session(struct controller *c, uint64_t visitor, uint32_t *expires)
{
	for (uint32_t i = 0; i < c->session_count; i++)
		if (c->sessions[i].visitor == visitor && c->sessions[i].session != 0) {
			*expires = c->sessions[i].expires;
			return c->sessions[i].session;
		}
	return 0;
}

void controller_tick(struct controller *c, uint64_t now_ms)
{
	(void)c;
	(void)now_ms;
}

void controller_publish(struct controller *c, bool hold, uint64_t now_ms)
{
	(void)now_ms;
	assert_int_equal(c->change_count, 0); // all have been collected
	if (hold)
		note(c, "hold");
}

uint32_t controller_changes(struct controller *c, const struct controller_change **changes)
{
	uint32_t count = c->change_count;
	*changes = c->changes;
	c->change_count = 0;
	return count;
}
