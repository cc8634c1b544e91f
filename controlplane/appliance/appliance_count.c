// What is counted from several figures that are not of one moment: while lost writes are made good
// the ranks of threshold and floor come one after the other. Nothing is less than none.

#include "controlplane/appliance/appliance_count.h"

static uint64_t less(uint64_t from, uint64_t what)
{
	return from > what ? from - what : 0;
}

void appliance_count(
	const struct ledger_view *is, uint32_t left_waiting, struct controller_view *view)
{
	const uint64_t settled = less(is->settled, left_waiting);
	view->waiting = less(is->total, is->threshold_rank + left_waiting);
	view->called = less(less(is->threshold_rank, is->floor_rank), settled);
}
