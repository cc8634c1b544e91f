// Ledger wire: batches as arguments of the script, and replies from the one string that comes back.
//
//   ledger_wire_batch() ─▶ argv ─▶ link_send() ─▶ bytes ─▶ ledger_wire_reply(), then in this order:
//     ledger_wire_answer() answer_count times, ledger_wire_member() member_count times,
//     ledger_wire_news() news_count times
//
// A reply is lines of fields, each checked: what Redis says is a peer's word. Numbers are decimal,
// keys and ids 16 lower-case hex digits. Pure; nothing is allocated; any thread.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controlplane/cluster/ledger.h"

#define LEDGER_WIRE_ARGS_BATCH 14 // of a batch without entries: prefix, header
#define LEDGER_WIRE_ARGS_ENTRY 24 // of an entry, at most
#define LEDGER_WIRE_BYTES_BATCH 256u // text of a batch without entries
#define LEDGER_WIRE_BYTES_ENTRY 2304u // of an entry, at most: a record

// The script, for SCRIPT LOAD. Not NUL-terminated.
extern const char ledger_wire_script[];
extern const size_t ledger_wire_script_bytes;

// Arguments being gathered, in memory of the caller's that lives until they are sent.
struct ledger_wire_args {
	const char **argv;
	size_t *lengths;
	uint32_t count, max; // of argv and lengths
	char *text;
	size_t used, text_max;
};

// Fill `args` with what the script is given: one key, and arguments.
//   prefix  of all keys, "sluice:{NAME}:", that key; NUL-terminated, the caller's until they are
//           sent
// argv_max of LEDGER_WIRE_ARGS_BATCH + count x LEDGER_WIRE_ARGS_ENTRY and as many bytes always do.
// Returns false if there is not room enough, or the batch breaks a limit of ledger.h.
bool ledger_wire_batch(
	const struct ledger_batch *batch, const char *prefix, struct ledger_wire_args *args);

// Where reading has come to.
struct ledger_wire_reader {
	const char *at, *end;
};

// Begin to read a reply of `len` bytes, which outlives the reader. Returns false if it is none.
bool ledger_wire_reply(struct ledger_wire_reader *reader, const char *bytes, size_t len,
	struct ledger_reply *reply);

// Read the next line. Returns false if it is not of the kind asked for, or there is none.
bool ledger_wire_answer(struct ledger_wire_reader *reader, struct ledger_answer *answer);
bool ledger_wire_member(struct ledger_wire_reader *reader, struct ledger_member *member);

// Also for what was published: begin with a reader over the message. News of a kind that is not
// known (LEDGER_NEWS_KINDS or above) have their number and kind, and are to be passed over.
bool ledger_wire_news(struct ledger_wire_reader *reader, struct ledger_news *news);
