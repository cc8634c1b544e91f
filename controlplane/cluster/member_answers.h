// Answers: a reply, taken. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

// The store is away from `now_ms` on, or not any more, as far as can be seen now.
void member_answers_look(struct member *m);
