// What `show` says, as JSON; the command line makes tables of it.
#pragma once

#include <jansson.h>
#include <stdbool.h>

struct code_digest;
struct control;
struct control_room;
struct token;

// Each returns a new reference, never NULL (no memory: abort). Control thread only.
json_t *show_rooms(struct control *c);
json_t *show_room(struct control *c, struct control_room *room);
// What rooms share.
json_t *show_pools(struct control *c);
json_t *show_workers(struct control *c);
json_t *show_counters(struct control *c);
json_t *show_origin(struct control *c);
// A code of a lane: how often it may be used, and was.
json_t *show_code(
	struct control *c, const struct control_room *lane, const struct code_digest *code);
json_t *show_secrets(struct control *c);
// Whether the store keeps up: saved, or unsaved since when and how many records.
json_t *show_store(struct control *c);
// This appliance, as a cluster of one.
json_t *show_cluster(struct control *c);
// What a token says, whether its MAC holds, and where its holder stands.
json_t *show_token(struct control *c, const struct token *token, bool is_signed);
