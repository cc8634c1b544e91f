// What a browser will make of a document: which of it is text, tag, value, script; what it would
// fetch; what the Content-Security-Policy has to allow.
//
// A value that is escaped is safe as text and between quotes, so that is where values may stand;
// elsewhere they are refused. A section must leave the document where it found it, so that the
// document means the same with the section and without.
#pragma once

#include "controlplane/pages/template.h"

#define HTML_BLOCKS_MAX 12u // of style and script
#define HTML_ASSETS "/.sluice/assets/" // where addresses of assets begin

// The content of an element `script` or `style`.
struct html_block {
	uint32_t offset, len;
	bool is_style;
};

struct html {
	uint32_t block_count;
	struct html_block blocks[HTML_BLOCKS_MAX];
	bool is_text[TEMPLATE_PARTS_MAX]; // whether the part is surrounded by text: a comment may
					  // stand there
};

// Scan an expanded template.
// Returns how many errors the ear was told: values and sections in wrong places, things fetched
// from elsewhere, what the policy would not let run. Pure; any thread.
uint32_t html_scan(const struct template *made, const struct template_ear *ear, struct html *found);
