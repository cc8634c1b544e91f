// News: what others did. For member*.c alone.
#pragma once

#include "controlplane/cluster/member_inside.h"

// Take one: the next in order, or an item of a page. Returns false if it is neither.
bool member_news_take(struct member *m, const struct ledger_news *news);

// A line stands so, as a view says that was asked for.
void member_news_view(struct member *m, uint32_t line_id, const struct ledger_view *view);

// A ticket that was given back with `was` for a key has the key `key`.
void member_news_placed(
	struct member *m, uint32_t line_id, uint64_t visitor, uint64_t was, uint64_t key);

// See whether what was taken is in force on all workers, and begin the next barrier.
void member_news_turn(struct member *m);
