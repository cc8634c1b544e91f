// Pages: from the template of a queue page to what workers send.
//
// A template is one HTML file a language, with `{{slot}}` where a visitor's value goes (PAGE_SLOTS
// of page.h). The built-in ones are made of queue.html, queue.css, queue.js and the texts of each
// language when the program is built (generate.py).
#pragma once

#include <stddef.h>

#include "dataplane/gate/page.h"
#include "drivers/span.h"

// A template; its bytes stay the caller's until pages_compile() returns, its phrases until
// pages_destroy().
struct pages_template {
	struct span html;
	struct page_phrases phrases;
};

// The templates that come with the program, by enum accept_language.
extern const struct pages_template pages_builtin[PAGE_LANGUAGES];

// Compile templates, one a language: find the slots, encode the text around them, hash style and
// script for the Content-Security-Policy.
//   error  what is wrong with a template, in words; at least PAGES_ERROR_BYTES
// Returns 0; -EINVAL with *error set (unknown or misplaced slot, too long, too many slots, control
// characters); -ENOMEM. The page is the caller's: pages_destroy(), once no worker can hold it.
// Control only; takes some 100 ms.
int pages_compile(
	const struct pages_template templates[PAGE_LANGUAGES], struct page **page, char *error);
void pages_destroy(struct page *page); // accepts NULL

#define PAGES_ERROR_BYTES 160u
