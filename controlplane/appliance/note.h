// Note: what an appliance of a cluster knows of itself after a restart: the number that its keys
// have, and until when its process before may have been granted anything, so that a Redis that has
// lost all meanwhile counts that as taken, and of whom it knew (controlplane/cluster/ledger.h,
// Recovery).
//
// A file of one line, "NUMBER NAME HEARD_MS PEERS", replaced as a whole. Control thread.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define NOTE_EVERY_MS 10000u // between times that are noted while the ledger answers
#define NOTE_LATE_MS \
	60000u // the file may be older than what was heard by so much: NOTE_EVERY_MS,
	       // and what a host without power had not put on its disk

struct note {
	uint8_t number; // LEDGER_MEMBERS_MAX: none, and heard_ms is 0
	uint64_t heard_ms; // cluster time of the last reply that is noted
	uint64_t peers; // bit N: there was a member N then
};

// What is noted at `path` of the appliance `name`: nothing if there is no such file, or it is that
// of another name, or it is none. Without a time (of an older version) it was `now_ms`.
struct note note_read(const char *path, const char *name, uint64_t now_ms);

// Until when its process may have been granted anything; 0: there was none. Pure.
uint64_t note_heard_until(const struct note *note);

// Replace it. is_lasting: on disk when this returns. Returns 0 or -errno, and the file is as it
// was.
int note_write(const char *path, const char *name, const struct note *note, bool is_lasting);
