// A folder of templates: what `pages: DIR` names, read and compiled.
//
//   STATE.html, STATE.LANG.html     the page of a state (or of `error`, `invitation`)
//   page.html, page.LANG.html       the page of every state that has none
//   _NAME.html, _NAME.LANG.html     partials
//   assets/NAME                     what pages show: pictures and fonts
//
// A file without LANG is in the folder's own language, and for those languages that have no other.
// `next` and `expired` fall back to waiting.html, `before` to prequeue.html, all then to page.html,
// and at last to the page that comes with the program.
#pragma once

#include "controlplane/pages/pages.h"
#include "dataplane/gate/rooms.h"

#define FOLDER_FILES_MAX 100u // templates and partials
#define FOLDER_FILE_BYTES_MAX 65536u // of one of them
#define FOLDER_ASSETS_MAX 64u
#define FOLDER_ASSET_BYTES_MAX 65536u // of one: an answer is written at once
#define FOLDER_ASSETS_BYTES_MAX (1u << 20) // of all

struct folder;

// What else is to be done while a folder is compiled: called before each page.
struct folder_pause {
	void (*turn)(void *context);
	void *context;
};

// Read and compile a folder.
//   path      NULL: the pages that come with the program
//   language  of files without LANG; lower case
//   before    one that may be the same: if its files are, it is held once more and returned
//   ear       told all that is wrong
//   pause     a page takes some 20 ms; NULL: nothing is to be done meanwhile
// Returns 0; -EINVAL, and the ear was told; -ENOMEM. One holder: folder_give(). Control only.
int folder_read(const char *path, const char *language, struct folder *before,
	const struct template_ear *ear, const struct folder_pause *pause, struct folder **folder);

// Read it for page_render() to render uncompressed only, which takes a moment. Else the same.
int folder_preview(const char *path, const char *language, const struct template_ear *ear,
	struct folder **folder);

// Look for all that folder_read() would tell, but compile nothing.
// Returns how many errors the ear was told. Any thread.
uint32_t folder_check(const char *path, const char *language, const struct template_ear *ear);

// One holder more, or fewer; freed with the last. NULL is accepted.
struct folder *folder_hold(struct folder *folder);
void folder_give(struct folder *folder);

// Where it was read from (NULL: the pages of the program), the language of its files without LANG,
// and its pages. Borrowed, as long as it is held.
const char *folder_path(const struct folder *folder);
const char *folder_language(const struct folder *folder);
const struct page_set *folder_set(const struct folder *folder);

// Its assets. Returns how many; *assets is borrowed, as long as it is held.
uint32_t folder_assets(const struct folder *folder, const struct gate_asset **assets);
