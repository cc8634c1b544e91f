// Words: what workers read of a line. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

// Write a line's words, as the ledger said last and as things are here.
void member_words_publish(struct member *m, struct member_inside_line *line);
// Those of all lines.
void member_words_publish_all(struct member *m);
