// A list of codes: what `codes: FILE` of a lane names, read once.
//
//   # a comment
//   7GQX-4TRM                  may be used once
//   STAFF-2K9P-W7RD, 25        or 25 times
//   sha256:9f86d081...0a08     the same as a hash of the code's letters, small ones, without spaces
//                              and hyphens: 64 hex digits; whoever has the file has no codes
//
// A line is at most CODES_LIST_LINE_MAX bytes, a file CODES_LIST_FILE_MAX, a list CODES_LIST_MAX
// codes of CODES_LIST_USES_MAX uses. Of codes in plain text it is said when they could be guessed:
// less than CODES_LIST_BITS_MIN bits are refused, and a warning comes when a guess hits one of the
// list with more than one chance in 2^CODES_LIST_SPARE_BITS.
//
// In memory it is an open-addressed table of digests, 24 bytes a place; a million codes take 32 MB
// and a third of a second to read, in slices of a millisecond or so between which the caller may do
// something else.
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "dataplane/gate/code.h"
#include "drivers/span.h"

#define CODES_LIST_MAX 1048576u
#define CODES_LIST_USES_MAX 1000000u
#define CODES_LIST_LINE_MAX 128u
#define CODES_LIST_FILE_MAX (CODES_LIST_MAX * (CODES_LIST_LINE_MAX + 1ull))
#define CODES_LIST_BITS_MIN 20u
#define CODES_LIST_SPARE_BITS 30u
#define CODES_LIST_ERRORS_MAX 20u // told; the others are counted in the last

struct codes_list;

// Called between slices, where not even the file is read any further; NULL: never.
struct codes_list_pause {
	void (*pause)(void *context);
	void *context;
};

// Told what is wrong. Lines count from 1; 0: the file as a whole. No text has a code in it.
struct codes_list_ear {
	void (*hear)(void *context, uint32_t line, bool is_warning, const char *text);
	void *context;
};

// Make a list of a text.
// Returns 0; -EINVAL, and the ear was told; -ENOMEM. One holder: codes_list_give(). Any thread.
int codes_list_parse(struct span text, const struct codes_list_ear *ear,
	const struct codes_list_pause *pause, struct codes_list **list);

// Make a list of a file.
//   before  one that may be of the same file: if that has not changed, it is held once more and
//           returned; may be NULL
// Returns as above, or another -errno, and the ear was told. Control, or before it starts.
int codes_list_read(const char *path, struct codes_list *before, const struct codes_list_ear *ear,
	const struct codes_list_pause *pause, struct codes_list **list);

// One holder more, or fewer; freed with the last. NULL is accepted by codes_list_give().
struct codes_list *codes_list_hold(struct codes_list *list);
void codes_list_give(struct codes_list *list);

// Likewise, and with the last holder its memory goes in slices too.
void codes_list_give_slowly(struct codes_list *list, const struct codes_list_pause *pause);

// How often a code may be used; 0: it is not in the list. The comparison is constant in time.
uint32_t codes_list_uses(const struct codes_list *list, const struct code_digest *digest);

// Codes in it, and their uses together.
uint32_t codes_list_count(const struct codes_list *list);
uint64_t codes_list_uses_total(const struct codes_list *list);

// Bytes that it takes.
uint64_t codes_list_bytes(const struct codes_list *list);
