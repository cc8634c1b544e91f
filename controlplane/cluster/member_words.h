// Words: what workers read of a line. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

void member_words_publish(struct member *m, struct member_inside_line *line);
void member_words_publish_all(struct member *m);
