// Pages: from the template of a page to what workers send.
//
// The templates that come along are made of queue.html, invitation.html, queue.css, queue.js and
// the texts of each language when the program is built (generate.py), and are compiled then
// (compile.c).
#pragma once

#include "controlplane/pages/template.h"
#include "dataplane/gate/page.h"

// A template in one language.
struct pages_template {
	struct template_source source; // its language stays the caller's until pages_destroy()
	const struct page_phrases *phrases; // likewise
	bool has_fonts; // among its assets: the policy lets them in
	bool is_preview; // it is rendered as it is, never compressed; so made in a moment
};

// Compile a template: expand it, find its slots and sections, encode the text around them, hash
// style and script for the Content-Security-Policy.
//   ear  told all that is wrong with it
// Returns 0; -EINVAL, and the ear was told; -ENOMEM. The page is the caller's: pages_destroy(),
// once no worker can hold it. Control only; takes some 20 ms.
int pages_compile(
	const struct pages_template *template, const struct template_ear *ear, struct page **page);
void pages_destroy(struct page *page); // accepts NULL

// Look for what pages_compile() would tell, but for what only encoding shows.
// Returns how many errors the ear was told; -ENOMEM is one of them. Any thread.
uint32_t pages_check(const struct pages_template *template, const struct template_ear *ear);

// What comes with the program in one language: a template for every state, one that asks for a
// code, partials that other templates may use too, the words for what values say.
struct pages_builtin {
	struct span language;
	struct template_text page, invitation;
	struct template_names partials;
	struct page_phrases phrases;
};

#define PAGES_BUILTIN 8
extern const struct pages_builtin pages_builtin[PAGES_BUILTIN]; // English first
extern const struct page pages_made[PAGES_BUILTIN]; // of their pages
extern const struct page pages_asking[PAGES_BUILTIN];
