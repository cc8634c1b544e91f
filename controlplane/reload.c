// Snapshots and reloads. A reload is whole or nothing: the new configuration is checked, its rooms
// are made beside the old ones, and only when nothing can fail any more is it put in force.

#include "controlplane/reload.h"

#include "controlplane/appliance/appliance.h"
#include "controlplane/bill.h"
#include "controlplane/certificates.h"
#include "controlplane/codes/codes_lists.h"
#include "controlplane/doors.h"
#include "controlplane/engine.h"
#include "controlplane/folders.h"
#include "controlplane/log.h"
#include "controlplane/publish.h"
#include "controlplane/rooms.h"
#include "controlplane/trusts.h"
#include "controlplane/turn.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

uint64_t reload_sessions_total(const struct control *c)
{
	return config_line_count(c->config) * (c->config->sessions_max + c->config->left_max);
}

static struct publish_room room_now(void *context, const struct config_room *config)
{
	struct control_room *room = rooms_find(context, config->name);
	assert(room);
	bool has_said = room->message[0] || !room->event;
	const bool is_lost = config->on_store_loss == CONFIG_ON_STORE_LOSS_REJECT &&
			     appliance_is_away(context, room);
	return (struct publish_room){.state = rooms_state(room),
		.mode = is_lost ? GATE_MODE_REJECT : rooms_mode(room),
		.message = has_said ? room->message : room->event->message,
		.config = rooms_config(room),
		.has_salt = doors_salt_now(room) != NULL,
		.opens_s = room->opens_s,
		.gathers_s = room->gathers_s,
		.line = room->line,
		.gather = room->draws ? draws_gather(room->draws) : NULL};
}

static struct gather *gather_now(void *context, uint32_t line_id)
{
	const struct control_room *room = rooms_find_line(context, line_id);
	assert(room);
	return room->draws ? draws_gather(room->draws) : NULL;
}

static struct place_line *line_now(void *context, uint32_t line_id)
{
	struct control_room *room = rooms_find_line(context, line_id);
	assert(room);
	return room->line;
}

// What workers verify and sign with: current and old ones; the next one not before it is saved.
static void fill_secrets(const struct control *c, struct token_secrets *secrets)
{
	struct secrets_view views[SECRETS_MAX];
	uint32_t count = secrets_list(c->secrets, views);
	memset(secrets, 0, sizeof(*secrets));
	for (uint32_t i = 0; i < count; i++) {
		if (views[i].state == SECRETS_NEXT)
			continue;
		token_secrets_add(secrets, views[i].id, views[i].key, STORE_SECRET_BYTES);
		if (views[i].state == SECRETS_CURRENT)
			secrets->current = views[i].id;
	}
}

static void fill_ticket_keys(const struct control *c, struct ticket_keys *keys)
{
	const uint8_t *seeds[TICKETS_MAX];
	uint32_t count = tickets_list(c->tickets, seeds);
	static_assert(TICKETS_MAX <= TICKET_KEYS_MAX && STORE_SECRET_BYTES == TICKET_SEED_BYTES,
		"a key from each seed");
	static_assert(TICKETS_EPOCH_S >= TICKET_LIFE_S, "a ticket's key lasts as long as it does");
	keys->count = 0;
	for (uint32_t i = 0; i < count; i++)
		ticket_add(keys, seeds[i]);
}

void reload_log_level(const struct config *config)
{
	static const enum log_level levels[] = {[CONFIG_LOG_ERROR] = LOG_LEVEL_ERROR,
		[CONFIG_LOG_WARNING] = LOG_LEVEL_WARNING,
		[CONFIG_LOG_INFO] = LOG_LEVEL_INFO,
		[CONFIG_LOG_DEBUG] = LOG_LEVEL_INFO};
	log_set_level(levels[config->log]);
}

void reload_snapshot(struct control *c)
{
	struct token_secrets secrets;
	struct ticket_keys ticket_keys;
	fill_secrets(c, &secrets);
	fill_ticket_keys(c, &ticket_keys);
	struct origin_table *origins = resolve_table(c->resolve);
	struct publish_input input = {.config = c->config,
		.room = room_now,
		.line = line_now,
		.gather = gather_now,
		.context = c,
		.secrets = &secrets,
		.ticket_keys = &ticket_keys,
		.certificates = c->certificates,
		.folders = c->folders,
		.origins = origins,
		.free_origins = resolve_free_table};
	struct snapshot *snapshot = origins ? publish_build(&input) : NULL;
	explicit_bzero(&secrets, sizeof(secrets));
	explicit_bzero(&ticket_keys, sizeof(ticket_keys));
	if (!snapshot) {
		resolve_free_table(origins);
		log_error("no memory for a snapshot: workers keep the one they have");
		return;
	}
	publish_swap(&c->words, snapshot);
	turn_wake_workers(c);
}

// The first configuration was read by root, the next one is read by the user that root became.
static void say_if_unreadable(const struct control *c, FILE *text)
{
	if (access(c->config_path, R_OK) < 0 && errno == EACCES)
		fprintf(text,
			"%s: sluice runs as %s since its start, who may not read it (or its "
			"folder): chgrp and chmod g+r\n",
			c->config_path, c->started->user ? c->started->user : "sluice");
}

// Many pages take seconds: claims are decided meanwhile, by the configuration in force.
static void turn_meanwhile(void *context)
{
	turn(context);
}

// What the next configuration names.
struct files {
	struct trusts *trusts;
	struct certificates *certificates;
	struct folders *folders;
	struct codes_lists *codes_lists;
};

static void free_files(struct files *files)
{
	trusts_free(files->trusts);
	certificates_free(files->certificates);
	folders_give(files->folders);
	codes_lists_free(files->codes_lists, NULL);
}

// Returns 0, or -errno and nothing is held.
static int load_files(struct control *c, const struct config *next,
	struct codes_lists_reading *codes, struct files *files)
{
	const struct folder_pause pause = {turn_meanwhile, c};
	*files = (struct files){0};
	int ret = trusts_load(next, c->worker_count, &files->trusts);
	if (ret == 0)
		ret = certificates_load(
			c->started, next, c->certificates, c->worker_count, &files->certificates);
	if (ret == 0)
		ret = folders_load(next, c->folders, &pause, &files->folders);
	if (ret == 0)
		ret = codes_lists_load(next, codes, &files->codes_lists);
	if (ret < 0)
		free_files(files);
	return ret;
}

// Returns as reload() does.
//   before_lists  the lists of codes that were in force: the caller's now, if there are others
static int switch_over(struct control *c, struct codes_lists_reading *codes,
	struct codes_lists **before_lists, struct config_report *report, FILE *restart)
{
	struct config *next;
	struct files files;
	struct config_machine machine;
	bill_machine(&machine);
	machine.turn = turn_meanwhile;
	machine.turn_context = c;
	machine.codes_context = codes;
	machine.named_salt = doors_named_salt;
	machine.named_salt_context = c;
	machine.password_error = machine.cluster_key_error = NULL; // read at start, as root
	int ret = config_load(c->config_path, &machine, &next, report);
	if (ret < 0) {
		say_if_unreadable(c, restart);
		log_error("reload: %u errors; nothing has changed", report->count);
		return ret;
	}
	if ((ret = load_files(c, next, codes, &files)) < 0) {
		config_destroy(next);
		log_error("reload: %s; nothing has changed", strerror(-ret));
		return ret;
	}
	if (c->engine->is_busy(c)) { // asked last: there were turns meanwhile
		free_files(&files);
		config_destroy(next);
		log_error("reload: the store is busy; nothing has changed, try again");
		return -EAGAIN;
	}
	config_diff(c->started, next, restart);
	struct config *before = c->config;
	c->config = next;
	ret = rooms_set(c);
	if (ret < 0) {
		c->config = before;
		free_files(&files);
		config_destroy(next);
		log_error("reload: %s; nothing has changed", strerror(-ret));
		return ret;
	}
	resolve_set_config(c->resolve, next, files.trusts);
	certificates_free(c->certificates); // snapshots hold what they need
	c->certificates = files.certificates;
	folders_give(c->folders); // likewise
	c->folders = files.folders;
	*before_lists = c->codes_lists;
	c->codes_lists = files.codes_lists;
	reload_log_level(next);
	reload_snapshot(c);
	if (before != c->started)
		config_destroy(before);
	log_info("reloaded %s", c->config_path);
	return 0;
}

int reload(struct control *c, struct config_report *report, FILE *restart)
{
	const struct codes_list_pause pause = {turn_meanwhile, c};
	struct codes_lists_reading *codes = codes_lists_begin(c->codes_lists, &pause);
	struct codes_lists *before = NULL;
	const int ret = codes ? switch_over(c, codes, &before, report, restart) : -ENOMEM;
	codes_lists_end(codes);
	codes_lists_free(before, &pause);
	return ret;
}
