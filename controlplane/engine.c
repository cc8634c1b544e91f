// The engine of an appliance alone. What changes of a room its controller has been told already.

#include "controlplane/engine.h"

static uint32_t room_for_claims(struct control *c)
{
	return claims_is_busy(c->claims) ? 0 : CLAIMS_TURN_MAX;
}

static void take_turn(
	struct control *c, const struct claim *claims, uint32_t count, uint64_t now_ms)
{
	claims_turn(c->claims, claims, count, now_ms);
}

static void take_refused(struct control *c, const struct worker_refused *refused, uint64_t now_ms)
{
	claims_refused(c->claims, refused->line_id, refused->key, refused->poll_after, now_ms);
}

static void have_changed(struct control *c)
{
	(void)c;
}

static int begin(struct control *c, struct control_room *room)
{
	(void)c, (void)room;
	return 0;
}

static void end(struct control_room *room)
{
	(void)room;
}

static bool share(struct control *c, const struct control_room *room)
{
	(void)c, (void)room;
	return true;
}

static bool is_busy(const struct control *c)
{
	return claims_is_busy(c->claims);
}

static void look(struct control *c, const struct control_room *room, uint64_t now_ms,
	struct controller_view *view)
{
	(void)c;
	controller_look(room->controller, now_ms, view);
}

static uint64_t passed(const struct control *c, const struct control_room *room)
{
	return claims_passed(c->claims, room->line_id);
}

static bool release(struct control *c, struct control_room *room, uint64_t people, uint64_t now_ms)
{
	(void)c;
	controller_release(room->controller, people, now_ms);
	return true;
}

static void lapse(struct control *c, struct control_room *room, uint64_t key, uint64_t now_ms)
{
	(void)c;
	controller_lapse(room->controller, key, now_ms);
}

const struct engine engine_alone = {.room = room_for_claims,
	.turn = take_turn,
	.refused = take_refused,
	.changed = have_changed,
	.begin = begin,
	.end = end,
	.share = share,
	.is_busy = is_busy,
	.look = look,
	.passed = passed,
	.release = release,
	.lapse = lapse};
