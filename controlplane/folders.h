// The pages of a configuration: one folder of templates for each that it names, and the pages that
// come with the program. Held by the control thread and by every snapshot that shows them.
#pragma once

#include "config/config.h"
#include "controlplane/pages/folder.h"

struct folders;

// Read and compile what the configuration names.
//   before  those in force: folders whose files are the same are taken over; NULL at start
//   pause   called before each page that is new, which takes some 20 ms; or NULL
// Returns 0, or -errno with the reason logged. One holder: folders_give().
int folders_load(const struct config *config, const struct folders *before,
	const struct folder_pause *pause, struct folders **folders);

// One holder more, or fewer; freed with the last. NULL is accepted by folders_give().
struct folders *folders_hold(struct folders *folders);
void folders_give(struct folders *folders);

// The pages of a room, or (`room` NULL) of what of the site lies outside its rooms. Borrowed.
const struct page_set *folders_of(const struct folders *folders, const struct config_site *site,
	const struct config_room *room);

// The assets of all folders. Returns how many.
//   assets  room for FOLDER_ASSETS_MAX a folder; NULL: only count
uint32_t folders_assets(const struct folders *folders, struct gate_asset *assets);

// What is wrong with a folder: for struct config_machine.
uint32_t folders_check(const char *path, const char *language, config_say *say, void *context);
