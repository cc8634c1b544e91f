// Fields of a line of a reply. For the ledger_*.c that read replies; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controlplane/cluster/ledger_wire.h"

// Each takes the next field of the line, with the blank behind it, and returns whether it was as it
// should be: a decimal number of at most `max` (no sign, no needless zeros), a whole number with a
// sign, 16 or 8 hex digits, 0 or 1.
bool ledger_field_number(struct ledger_wire_reader *r, uint64_t max, uint64_t *value);
bool ledger_field_number32(struct ledger_wire_reader *r, uint32_t *value);
bool ledger_field_signed(struct ledger_wire_reader *r, int64_t *value);
bool ledger_field_hex16(struct ledger_wire_reader *r, uint64_t *value);
bool ledger_field_hex8(struct ledger_wire_reader *r, uint32_t *value);
bool ledger_field_flag(struct ledger_wire_reader *r, bool *value);

// The next field as it is; perhaps empty.
bool ledger_field_text(struct ledger_wire_reader *r, const char **text, size_t *len);

// `len` hex digits, two a byte. Returns false if one is none.
bool ledger_field_bytes(const char *hex, size_t len, uint8_t *bytes);

// The line is at its end: go on to the next one.
bool ledger_field_end(struct ledger_wire_reader *r);

// The rest of the line does not matter.
void ledger_field_skip(struct ledger_wire_reader *r);

#define LEDGER_FIELD_NUMBER_MAX ((1ull << 53) - 1) // what a double counts
