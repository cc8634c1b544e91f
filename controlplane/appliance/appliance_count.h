// Who waits and who is called in a line, by what the ledger says of it. Pure.
#pragma once

#include <stdint.h>

#include "controlplane/cluster/ledger.h"
#include "controlplane/controller/controller.h"

// Sets `waiting` and `called` of a view.
//   left_waiting  tickets given back before they were called
void appliance_count(
	const struct ledger_view *is, uint32_t left_waiting, struct controller_view *view);
