// The admin commands: each looks at its arguments, does one thing, and says what it did. Those that
// change something leave a line in the store's audit.

#include "controlplane/commands.h"

#include "controlplane/admin/admin.h"
#include "controlplane/appliance/appliance.h"
#include "controlplane/codes/codes.h"
#include "controlplane/doors.h"
#include "controlplane/engine.h"
#include "controlplane/invite.h"
#include "controlplane/log.h"
#include "controlplane/pages/message.h"
#include "controlplane/reload.h"
#include "controlplane/rooms.h"
#include "controlplane/run.h"
#include "controlplane/show.h"
#include "controlplane/turn.h"
#include "dataplane/gate/mac_state.h"
#include "dataplane/gate/token.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAILED 1
#define ROOM_USAGE "room NAME open|pause|resume|close|release N|message TEXT|mode MODE|salt HEX"
#define RELEASE_MAX 100000000u // people called by one `release`

// Who did what: into the store's history and the log. With a turn, so that what is answered "done"
// is saved.
static void audit(struct control *c, const char *text)
{
	struct store_record record = {
		.kind = STORE_AUDIT, .audit = {.ms = clock_now_ms(&c->clock), .text = text}};
	store_put(c->store, &record);
	log_info("command: %s", text);
	turn(c);
}

static int usage(FILE *text, const char *what)
{
	fprintf(text, "usage: sluice %s\n", what);
	return FAILED;
}

static int command_reload(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)arguments;
	(void)data;
	if (count > 0)
		return usage(text, "reload");
	struct config_report report = {0};
	char *keys = NULL;
	size_t keys_bytes = 0;
	FILE *restart = open_memstream(&keys, &keys_bytes);
	if (!restart)
		return FAILED;
	int ret = reload(context, &report, restart);
	fclose(restart);
	if (keys_bytes > 0)
		fprintf(text, "%s%s", ret == 0 ? "these keys changed and need a restart:\n" : "",
			keys);
	free(keys);
	config_report_print(&report, text);
	if (ret < 0 && report.count == 0)
		fprintf(text, "reload: %s; nothing has changed\n", strerror(-ret));
	config_report_fini(&report);
	if (ret == 0)
		audit(context, "reload");
	return ret < 0 ? FAILED : 0;
}

static int command_drain(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)arguments;
	(void)data;
	if (count > 0)
		return usage(text, "drain");
	audit(context, "drain");
	run_drain(context);
	return 0;
}

static int show_named_room(struct control *c, const char *name, json_t **data, FILE *text)
{
	struct control_room *room = rooms_find(c, name);
	if (!room) {
		fprintf(text, "there is no room %s\n", name);
		return FAILED;
	}
	*data = show_room(c, room);
	return 0;
}

static int command_show(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	static const struct {
		const char *name;
		json_t *(*show)(struct control *c);
	} views[] = {{"rooms", show_rooms}, {"pools", show_pools}, {"workers", show_workers},
		{"counters", show_counters}, {"origin", show_origin}, {"cluster", show_cluster}};
	if (count == 2 && strcmp(arguments[0], "room") == 0)
		return show_named_room(context, arguments[1], data, text);
	for (size_t i = 0; count == 1 && i < sizeof(views) / sizeof(views[0]); i++) {
		if (strcmp(arguments[0], views[i].name) != 0)
			continue;
		*data = views[i].show(context);
		return 0;
	}
	return usage(text, "show rooms|room NAME|pools|workers|counters|origin|cluster");
}

static bool parse_number(const char *text, uint64_t max, uint64_t *value)
{
	char *end;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9' || *end || number > max)
		return false;
	*value = number;
	return true;
}

static int set_mode(struct control_room *room, const char *argument, FILE *text)
{
	for (size_t i = 0; i < ROOMS_MODES; i++)
		if (strcmp(argument, rooms_mode_names[i]) == 0) {
			if (i == GATE_MODE_PEAK && !room->config->inflow.count) {
				fprintf(text, "mode peak: the room has no `inflow`\n");
				return FAILED;
			}
			room->mode_override = (uint8_t)i;
			return 0;
		}
	fprintf(text, "mode %s: want auto, always, off, reject or peak\n", argument);
	return FAILED;
}

static int set_message(struct control_room *room, const char *argument, FILE *text)
{
	struct message message;
	int ret = message_escape((struct span){argument, strlen(argument)}, &message);
	if (ret == 0 && strlen(argument) < sizeof(room->message)) {
		snprintf(room->message, sizeof(room->message), "%s", argument);
		return 0;
	}
	if (ret == -EILSEQ)
		fprintf(text, "message: want UTF-8 text without control characters\n");
	else
		fprintf(text, "message: longer than the page has room for (%u bytes, escaped)\n",
			STATUS_MESSAGE_BYTES_MAX);
	return FAILED;
}

// What all appliances are to know is done when the cluster's store has it.
static int done_when_shared(const struct control *c)
{
	return c->appliance ? ADMIN_LATER : 0;
}

static int settle_shared(void *context, uint64_t began_us, json_t **data, FILE *text)
{
	struct control *c = context;
	(void)data;
	const int ret = appliance_shared(c, began_us);
	if (ret == -EAGAIN)
		return ADMIN_LATER;
	if (ret == -ENOSPC)
		fprintf(text,
			"the cluster's store has no room for it: it is in force here alone\n");
	else if (ret < 0)
		fprintf(text,
			"the cluster's store has not taken it within %u s, and may not have it; "
			"it is told again as long as this process runs: look whether it is in "
			"force before you try again\n",
			APPLIANCE_TAKEN_MS / 1000);
	return ret < 0 ? FAILED : 0;
}

static int release(struct control *c, struct control_room *room, const char *argument, FILE *text)
{
	uint64_t people;
	if (!parse_number(argument, RELEASE_MAX, &people) || people == 0) {
		fprintf(text, "release %s: want a number from 1 to %u\n", argument, RELEASE_MAX);
		return FAILED;
	}
	if (c->engine->release(c, room, people, clock_now_ms(&c->clock)))
		return 0;
	fprintf(text, "the store cannot take it now; try again\n");
	return FAILED;
}

static int set_salt(struct control *c, struct control_room *room, const char *argument, FILE *text)
{
	const char *named;
	int ret = doors_salt(c, room, argument, &named);
	if (ret == -EINVAL)
		fprintf(text, "salt %s: want 1 to %u bytes in hex\n", argument,
			DRAW_SALT_BYTES_MAX);
	else if (ret == -EEXIST)
		fprintf(text,
			"salt %s: %s was named for those who gather already, and stands until "
			"they are drawn\n",
			argument, named);
	else if (ret < 0)
		fprintf(text, "nobody gathers in this room: there is no draw\n");
	return ret < 0 ? FAILED : 0;
}

// What a verb does to a room. `changes` says whether workers and store must hear of it.
static int change_room(struct control *c, struct control_room *room, const char *verb,
	const char *argument, bool *changes, FILE *text)
{
	static const struct {
		const char *verb;
		uint8_t state;
	} states[] = {{"open", GATE_OPEN}, {"pause", GATE_PAUSED}, {"close", GATE_CLOSED}};
	*changes = true;
	if (!argument && strcmp(verb, "open") == 0 && doors_open(c, room)) {
		room->state_override = STORE_AS_CONFIGURED;
		return 0;
	}
	if (!argument && strcmp(verb, "resume") == 0) {
		room->state_override = room->schedule.count ? STORE_AS_CONFIGURED : GATE_OPEN;
		return 0;
	}
	if (argument && strcmp(verb, "salt") == 0)
		return set_salt(c, room, argument, text);
	for (size_t i = 0; !argument && i < sizeof(states) / sizeof(states[0]); i++)
		if (strcmp(verb, states[i].verb) == 0) {
			room->state_override = states[i].state;
			return 0;
		}
	if (argument && strcmp(verb, "mode") == 0)
		return set_mode(room, argument, text);
	if (argument && strcmp(verb, "message") == 0)
		return set_message(room, argument, text);
	*changes = false;
	if (argument && strcmp(verb, "release") == 0)
		return release(c, room, argument, text);
	return usage(text, ROOM_USAGE);
}

static int command_room(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	(void)data;
	struct control *c = context;
	if (count < 2 || count > 3)
		return usage(text, ROOM_USAGE);
	struct control_room *room = rooms_find(c, arguments[0]);
	if (!room) {
		fprintf(text, "there is no room %s\n", arguments[0]);
		return FAILED;
	}
	bool changes;
	const char *argument = count == 3 ? arguments[2] : NULL;
	if (room->lane && strcmp(arguments[1], "release") != 0) {
		fprintf(text, "%s is a lane: want release N, or the name of its room\n",
			arguments[0]);
		return FAILED;
	}
	if (c->appliance && !appliance_can_share(c)) {
		fprintf(text, "the cluster's store is away: nothing has changed; try again\n");
		return FAILED;
	}
	int ret = change_room(c, room, arguments[1], argument, &changes, text);
	if (ret)
		return ret;
	if (changes)
		rooms_changed(c, room);
	char line[STORE_TEXT_MAX];
	snprintf(line, sizeof(line), "room %s %s %s", arguments[0], arguments[1],
		argument ? argument : "");
	audit(c, line);
	return done_when_shared(c);
}

static uint64_t longest_life_s(const struct control *c)
{
	uint64_t longest = 0;
	for (uint32_t i = 0; i < c->room_count; i++) {
		const struct config_room *room = c->rooms[i].config;
		if (room->ticket_ttl_s > longest)
			longest = room->ticket_ttl_s;
		if (room->session_s > longest)
			longest = room->session_s;
	}
	return longest;
}

static void say_told(struct control *c, FILE *text)
{
	uint32_t known, all;
	const char *awaited;
	const uint8_t id = appliance_told(c, &known, &all, &awaited);
	fprintf(text,
		"secret %u is on its way: %u of %u appliances have it; waiting for %s (`secrets "
		"list`)\n",
		id, known, all, known < all ? awaited : "it to sign");
}

static int say_secrets(struct control *c, int ret, FILE *text)
{
	if (ret == -EBUSY)
		say_told(c, text);
	else if (ret == -EAGAIN)
		fprintf(text, "the store cannot take it now; try again\n");
	else if (ret == -ENOENT)
		fprintf(text, "there is no such secret\n");
	else if (ret < 0)
		fprintf(text, "%s\n", strerror(-ret));
	return ret < 0 ? FAILED : 0;
}

static int rotate(struct control *c, uint64_t now_s)
{
	return c->appliance ? appliance_rotate(c, longest_life_s(c), now_s)
			    : secrets_rotate(c->secrets, longest_life_s(c), now_s);
}

static int revoke(struct control *c, uint8_t id, uint64_t now_s)
{
	return c->appliance ? appliance_revoke(c, id, now_s)
			    : secrets_revoke(c->secrets, id, now_s);
}

static int command_secrets(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	struct control *c = context;
	uint64_t id, now_s = clock_now_ms(&c->clock) / 1000;
	if (count == 1 && strcmp(arguments[0], "list") == 0) {
		*data = show_secrets(c);
		return 0;
	}
	if (count == 1 && strcmp(arguments[0], "rotate") == 0) {
		int ret = rotate(c, now_s);
		if (ret < 0)
			return say_secrets(c, ret, text);
		audit(c, "secrets rotate");
		fprintf(text,
			c->appliance ? "secret %d signs when all appliances have it\n"
				     : "secret %d signs from now on\n",
			ret);
	} else if (count == 2 && strcmp(arguments[0], "revoke") == 0) {
		if (!parse_number(arguments[1], SECRETS_MAX, &id) || id == 0) {
			fprintf(text, "revoke %s: want the id of a secret\n", arguments[1]);
			return FAILED;
		}
		int ret = revoke(c, (uint8_t)id, now_s);
		if (ret < 0)
			return say_secrets(c, ret, text);
		audit(c, "secrets revoke");
	} else {
		return usage(text, "secrets rotate|list|revoke ID");
	}
	if (!c->appliance) { // else with the news of it
		secrets_poll(c->secrets, now_s);
		reload_snapshot(c);
	}
	return done_when_shared(c);
}

static bool mac_holds(
	const struct control *c, const struct token_wire *wire, const struct token *token)
{
	const struct snapshot *snapshot = atomic_load(&c->words.current);
	const struct mac_key *key = token_key(&snapshot->secrets, token);
	uint8_t tag[MAC_TAG_BYTES];
	if (!key)
		return false;
	mac_state_tag(key, wire->body, tag);
	return token_is_signed(wire, tag);
}

// What is wrong with a text that is no token.
static const char *token_fault(const char *text)
{
	static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
					"0123456789-_";
	if (strlen(text) != TOKEN_TEXT_BYTES || strspn(text, base64url) != TOKEN_TEXT_BYTES)
		return "want 64 characters of base64url";
	return "these 64 characters are not those of a ticket or a pass of version 1";
}

static int command_ticket(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	struct control *c = context;
	struct token_wire wire;
	struct token token;
	if (count != 1)
		return usage(text, "ticket TOKEN");
	if (!token_decode((struct span){arguments[0], strlen(arguments[0])}, &wire, &token)) {
		fprintf(text, "this is no token: %s\n", token_fault(arguments[0]));
		return FAILED;
	}
	*data = show_token(c, &token, mac_holds(c, &wire, &token));
	return 0;
}

static void say_place(json_t *places, const char *argument, const char *room,
	const struct draw_list *list, uint64_t hash, uint64_t place)
{
	char hex[17];
	snprintf(hex, sizeof(hex), "%016" PRIx64, hash);
	json_array_append_new(
		places, json_pack("{s:s, s:s, s:I, s:s, s:I, s:I}", "ticket", argument, "room",
				room, "draw", (json_int_t)list->number, "h", hex, "place",
				(json_int_t)place + 1, "of", (json_int_t)list->count));
}

static int say_no_place(json_t *places, FILE *text, const char *argument, const char *reason)
{
	fprintf(text, "%.8s...: %s\n", argument, reason);
	json_array_append_new(places,
		json_pack("{s:s, s:n, s:s}", "ticket", argument, "place", "reason", reason));
	return FAILED;
}

// One ticket's place, worked out from its draw's seed and list alone.
static int verify_one(struct control *c, const char *argument, json_t *places, FILE *text)
{
	struct token_wire wire;
	struct token token;
	uint64_t hash, place;
	if (!token_decode((struct span){argument, strlen(argument)}, &wire, &token) ||
		token.kind != TOKEN_TICKET || !mac_holds(c, &wire, &token))
		return say_no_place(places, text, argument, "no ticket that holds");
	const struct control_room *room = rooms_find_line(c, token.line_id);
	bool is_gathered = token.flags & TOKEN_FLAG_GATHERED;
	const struct draw_list *list =
		room && room->draws ? draws_place(room->draws, is_gathered ? token.key : 0,
					      token.key, token.visitor, &hash, &place)
				    : NULL;
	if (!list)
		return say_no_place(places, text, argument,
			is_gathered ? "not drawn" : "not drawn: its place is that of its arrival");
	say_place(places, argument, room->name, list, hash, place);
	fprintf(text,
		"%.8s...: room %s, draw %" PRIu64 ", h %016" PRIx64 ", place %" PRIu64
		" of %" PRIu64 "\n",
		argument, room->name, list->number, hash, place + 1, list->count);
	return 0;
}

static int command_draw(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	int ret = 0;
	if (count < 2 || strcmp(arguments[0], "verify") != 0)
		return usage(text, "draw verify TICKET...");
	*data = json_array();
	for (unsigned i = 1; i < count; i++)
		if (verify_one(context, arguments[i], *data, text))
			ret = FAILED;
	return ret;
}

// A time as RFC 3339 or in unix seconds. Returns 0 if it is none that a token can have.
static uint32_t parse_time(const char *text)
{
	uint64_t seconds;
	struct tm parts = {0};
	if (parse_number(text, UINT32_MAX, &seconds))
		return (uint32_t)seconds;
	const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S%z", &parts);
	const long east_s = parts.tm_gmtoff; // timegm() takes the parts for UTC
	const time_t time = timegm(&parts) - east_s;
	return end && !*end && time > 0 && time <= UINT32_MAX ? (uint32_t)time : 0;
}

// What is known of a code; or one use less of it. The code itself stays out of audit and log.
static int change_code(struct control *c, const struct control_room *lane, const char *typed,
	bool is_again, json_t **data, FILE *text)
{
	struct store_record record = {.kind = STORE_CODE};
	struct code_digest code;
	char line[STORE_TEXT_MAX];
	if (!code_digest((struct span){typed, strlen(typed)}, &code, NULL)) {
		fprintf(text, "this is no code: want letters and digits, %u at most\n",
			CODE_LETTERS_MAX);
		return FAILED;
	}
	if (is_again && c->appliance) {
		fprintf(text, "uses are counted by the cluster's store, and kept for good\n");
		return FAILED;
	}
	if (is_again) {
		if (!codes_give_back(c->codes, lane->line_id, &code, &record.code)) {
			fprintf(text, "this code was not used\n");
			return FAILED;
		}
		if (!store_put(c->store, &record))
			log_error("lane %s: the store took no record of a use that was given back",
				lane->name);
		snprintf(line, sizeof(line), "lane code %s again", lane->name);
		audit(c, line);
	}
	*data = show_code(c, lane, &code);
	const int ret = c->appliance ? appliance_code_ask(c, lane->line_id, &code) : 0;
	if (ret < 0)
		fprintf(text, ret == -EBUSY ? "another code is being asked about; try again\n"
					    : "the cluster's store is away, which counts uses\n");
	return ret < 0 ? FAILED : c->appliance ? ADMIN_LATER : 0;
}

static int settle_code(void *context, uint64_t began_us, json_t **data, FILE *text)
{
	uint64_t used;
	const int ret = appliance_code_asked(context, &used);
	(void)began_us;
	if (ret == -EAGAIN)
		return ADMIN_LATER;
	if (ret < 0)
		fprintf(text, "the cluster's store, which counts uses, does not answer\n");
	else
		json_object_set_new(*data, "used", json_integer((json_int_t)used));
	return ret < 0 ? FAILED : 0;
}

static int command_lane(
	void *context, unsigned count, const char *const *arguments, json_t **data, FILE *text)
{
	struct control *c = context;
	const bool is_link = count >= 2 && count <= 3 && strcmp(arguments[0], "link") == 0;
	const bool is_again = count == 4 && strcmp(arguments[3], "again") == 0;
	const bool is_code = (count == 3 || is_again) && strcmp(arguments[0], "code") == 0;
	if (!is_link && !is_code)
		return usage(text, "lane link LANE [TIME] | lane code LANE CODE [again]");
	const struct control_room *lane = rooms_find(c, arguments[1]);
	if (!lane || !lane->lane) {
		fprintf(text, "there is no lane %s: want ROOM/LANE\n", arguments[1]);
		return FAILED;
	}
	if (is_code)
		return change_code(c, lane, arguments[2], is_again, data, text);
	const uint32_t expires = count == 3 ? parse_time(arguments[2]) : 0;
	if (count == 3 && expires <= clock_now_ms(&c->clock) / 1000) {
		fprintf(text, "%s: want a time to come, as in 2026-12-01T22:00:00+09:00\n",
			arguments[2]);
		return FAILED;
	}
	*data = invite_link(c, lane, expires);
	fprintf(text, "%s\n", json_string_value(json_object_get(*data, "link")));
	char line[STORE_TEXT_MAX];
	snprintf(line, sizeof(line), "lane link %s %s", arguments[1],
		count == 3 ? arguments[2] : "");
	audit(c, line);
	return 0;
}

int commands_create(struct control *c)
{
	static const struct admin_command commands[] = {
		{.name = "reload", .function = command_reload},
		{.name = "drain", .function = command_drain},
		{.name = "show", .function = command_show},
		{.name = "room", .function = command_room, .settled = settle_shared},
		{.name = "secrets", .function = command_secrets, .settled = settle_shared},
		{.name = "ticket", .function = command_ticket},
		{.name = "draw", .function = command_draw},
		{.name = "lane", .function = command_lane, .settled = settle_code}};
	const char *path = state_path(c->state, STATE_ADMIN);
	int ret = admin_create(
		c->base, path, commands, sizeof(commands) / sizeof(commands[0]), c, &c->admin);
	if (ret < 0)
		log_error("%s: %s", path, strerror(-ret));
	return ret;
}
