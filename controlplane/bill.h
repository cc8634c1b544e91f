// The memory bill: what the tables and pools of the configuration will take, and the sizes that no
// key sets.
#pragma once

#include "config/config.h"

#define BILL_LINES_MIN 64u // lines in the places file, at least
#define BILL_LINE_ENTRIES (1u << 20) // slots with tickets that a line can count apart
#define BILL_KEPT_BYTES (48u << 10) // of pipelined requests, behind a head
#define BILL_RING_LEN 4096u // claims, and answers, on their way between a worker and control

// What `check` and the start measure a configuration against: this machine, with this program's
// rows. The rows are static.
void bill_machine(struct config_machine *machine);
