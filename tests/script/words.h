// The words of a line of a script, and the segment that they speak of.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/script/play.h"

#define WORDS_MAX 64u

struct words {
	char text[400];
	unsigned count, at;
	const char *word[WORDS_MAX];
};

// A segment as a script speaks of it; what it does not say comes from the flow.
struct words_segment {
	struct wire wire; // sequence numbers absolute
	bool is_any_window, is_open_window; // `win` not said; `win open`
	bool has_echo; // said
	bool is_newer; // of a SYN-ACK: beyond all that the connection before it sent
	unsigned count; // in a row
};

// Split; what follows `//` is a comment.
void words_split(struct words *w, const char *line);

// The next word, or NULL; the next one as a number; whether the next one is this (then it is
// taken).
const char *words_next(struct words *w);
int64_t words_number(struct play *p, struct words *w);
bool words_take(struct words *w, const char *word);
// A duration: `40ms`, `1.5s`, `250us`; us.
uint64_t words_time(struct play *p, const char *word);

// All that follows, as a segment of the peer's; of ours.
void words_of_peer(struct play *p, struct words *w, struct words_segment *segment);
void words_of_us(struct play *p, struct words *w, struct words_segment *segment);
