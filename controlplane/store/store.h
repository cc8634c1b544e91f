// The store: what must outlast the process, behind one interface with several engines.
//
//   store_put() ... store_put() ─▶ the batch being gathered, merged by what each record is about
//   store_begin() ──────────────▶ one transaction with all of it
//   store_poll() ◀─────────────── done, or pending, or kept in memory because it cannot be written
//
// A turn of control puts what it decided, begins, and lets answers out only when the batch is no
// longer pending. SQLite completes within store_begin(); an engine over the network stays pending
// for a while, and then no second batch is begun. A batch is never given up: either it is saved, or
// it is kept and tried again.
//
// Unsaved: an engine on this machine that cannot write (disk full, read-only) keeps the records in
// memory, says so in its status, and goes on; the records are merged, so that what is kept is
// bounded by what can exist at once. Before the first such batch is called done, a mark on disk
// says that the store does not know everybody (mark.h); who starts next finds `is_unclean`.
//
// Control thread only.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define STORE_SECRET_BYTES 32u
#define STORE_HASH_BYTES 32u
#define STORE_SALT_BYTES_MAX 32u
#define STORE_TEXT_MAX 1024u // bytes of a message, or of an audit entry; longer ones are refused
#define STORE_ERROR_MAX 256u
#define STORE_HISTORY_MAX 1000 // audit entries and configurations kept, each
#define STORE_MOVES_MAX (1u << 17)
#define STORE_AS_CONFIGURED 0xffu // in store_room: no command has said otherwise

enum store_kind {
	STORE_GRANTED = 1, // session: it began; whole
	STORE_RENEWED, // session: it lasts until `expires`; line_id and visitor say which
	STORE_OVER, // session: its slot is free; the visitor stays known, so that no ticket is used
		    // twice; line_id and visitor suffice
	STORE_FORGOTTEN, // session: nothing of it need be known; line_id and visitor suffice
	STORE_ENDED, // ended: refuse the passes of this session until they have expired; the store
		     // drops it by itself once the clock has passed `expires`
	STORE_LINE, // line
	STORE_ROOM, // room
	STORE_SECRET, // secret
	STORE_SECRET_FORGOTTEN, // secret: its id suffices
	STORE_CLOCK, // clock
	STORE_CONFIG, // config: added to the history
	STORE_AUDIT, // audit: added to the history
	STORE_TICKET, // ticket
	STORE_TICKET_FORGOTTEN, // ticket: its epoch suffices
	STORE_DRAW, // draw: first without a list, then with it
	STORE_DRAW_FORGOTTEN, // draw: line_id and number suffice
	STORE_DOORS, // doors
	STORE_CODE, // code
	STORE_MOVE, // move: the last STORE_MOVES_MAX of them are kept
};

struct store_session {
	uint32_t line_id;
	uint32_t expires; // unix s
	uint64_t visitor; // with line_id: which record this is
	uint64_t session; // 0: none, the ticket was given back unused
	uint64_t key; // 0: admitted directly
	bool is_over; // set by STORE_OVER; from the beginning without a session
};

struct store_ended {
	uint32_t line_id;
	uint32_t expires; // unix s, of the last pass
	uint64_t session;
};

struct store_line {
	uint32_t line_id;
	uint64_t threshold, floor; // keys; never fall
};

// What admin commands said about a room.
struct store_room {
	uint32_t line_id;
	uint8_t state; // enum gate_room_state, or STORE_AS_CONFIGURED
	uint8_t mode; // enum gate_mode, or STORE_AS_CONFIGURED
	const char *message; // UTF-8; "" or NULL: none
};

struct store_secret {
	uint8_t id; // 1 to 255
	uint8_t key[STORE_SECRET_BYTES];
	uint64_t created_s; // unix s
	uint64_t retire_s; // unix s; 0: not replaced yet
};

struct store_clock {
	uint64_t ms; // cluster time, unix ms
};

struct store_config {
	uint64_t ms; // when it came into force
	uint8_t hash[STORE_HASH_BYTES];
};

struct store_audit {
	uint64_t ms;
	const char *text; // who did what, with what result; one line
};

// What keys of visitors' TLS sessions come from.
struct store_ticket {
	uint32_t epoch; // when: counts from 1
	uint8_t key[STORE_SECRET_BYTES];
};

// A gathering: its seed before anybody gathers, its list once it is drawn.
struct store_draw {
	uint32_t line_id;
	uint64_t number; // with line_id: which record this is
	uint8_t seed[STORE_SECRET_BYTES];
	uint8_t salt[STORE_SALT_BYTES_MAX];
	uint8_t salt_bytes;
	bool is_drawn; // then what follows is known
	uint64_t first_slot, end_slot, base; // of its keys, and tickets before them
	uint64_t count;
	uint8_t list_sha256[STORE_HASH_BYTES];
};

// What commands and time said about a room's doors.
struct store_doors {
	uint32_t line_id;
	uint64_t opened_ms; // the latest event whose doors have opened, by its opens_ms
	uint64_t opened_at_ms; // when they did
	uint8_t salt[STORE_SALT_BYTES_MAX]; // for the next draw
	uint8_t salt_bytes; // 0: that of the configuration
};

// A code of a lane that was used.
struct store_code {
	uint32_t line_id;
	uint64_t digest[2]; // with line_id: which record this is
	uint32_t used; // how often
};

// Somebody came into a lane by a code or a link: whoever is the same holder has the same place.
struct store_move {
	uint64_t number; // counts up by one; modulo STORE_MOVES_MAX: which record this is
	uint64_t holder;
	bool is_once; // the holder is known by the number of a page, and not by a ticket
	bool is_gathered; // `key` is the number of a gathering
	uint32_t lane_id; // line id; 0: it has come to nothing
	uint64_t visitor, key; // of the ticket
};

struct store_record {
	uint8_t kind; // enum store_kind
	union {
		struct store_session session;
		struct store_ended ended;
		struct store_line line;
		struct store_room room;
		struct store_secret secret;
		struct store_clock clock;
		struct store_config config;
		struct store_audit audit;
		struct store_ticket ticket;
		struct store_draw draw;
		struct store_doors doors;
		struct store_code code;
		struct store_move move;
	};
};

struct store_status {
	bool is_pending; // the batch begun last is not known to be saved: answers wait
	bool is_unsaved; // there are records in memory that could not be written
	bool is_unclean; // the process before this one ended unsaved; until store_settle()
	uint32_t unclean_until; // unix s: the last pass that may be out there unknown expires
	uint32_t unsaved_count; // records kept in memory
	uint32_t free_count; // records that can be put before the batch is full
	uint64_t unsaved_since_ms; // cluster time
	uint64_t pending_since_ms; // cluster time
	uint64_t commits_total, failures_total;
	uint64_t dropped_total; // records that found the batch full (see store_put)
	const char *error; // what the engine said last, "" if nothing; the store's
};

struct store;

typedef void store_record_fn(void *ctx, const struct store_record *record);

struct store_ops {
	int (*load)(struct store *s, enum store_kind kind, uint64_t max, store_record_fn *record,
		void *ctx);
	bool (*put)(struct store *s, const struct store_record *record);
	void (*begin)(struct store *s, uint64_t now_ms);
	void (*poll)(struct store *s, uint64_t now_ms);
	void (*settle)(struct store *s);
	void (*close)(struct store *s, uint64_t now_ms);
};

// Engines put this first in their own struct.
struct store {
	const struct store_ops *ops;
	struct store_status status;
};

// Read all records of one kind, oldest first; all sessions come as STORE_GRANTED, first those that
// hold a slot longest, so that they find room. What was put and is not committed is not seen.
//   max     more than this many: -EOVERFLOW, after `max` of them
//   record  called for each; the record and its texts die with the call
// Returns 0 or -errno. Not while pending.
static inline int store_load(
	struct store *s, enum store_kind kind, uint64_t max, store_record_fn *record, void *ctx)
{
	return s->ops->load(s, kind, max, record, ctx);
}

// Add a record, with copies of its texts, to the batch being gathered. Returns false, and counts
// it, if the batch is full or a text too long. The last quarter of a batch takes STORE_GRANTED
// only. A lost record errs to the safe side (a session that is over holds its slot to its end), but
// for a lost renewal, which the mark of unsaved records makes good.
static inline bool store_put(struct store *s, const struct store_record *record)
{
	return s->ops->put(s, record);
}

// Commit what was put. Not while pending. Also every turn while unsaved: it tries again, at most
// once per back-off.
static inline void store_begin(struct store *s, uint64_t now_ms)
{
	s->ops->begin(s, now_ms);
}

// How things stand. The status is the store's and changes with the next call.
static inline const struct store_status *store_poll(struct store *s, uint64_t now_ms)
{
	s->ops->poll(s, now_ms);
	return &s->status;
}

// What the last process did unsaved is over: every pass it may have issued has expired.
static inline void store_settle(struct store *s)
{
	s->ops->settle(s);
}

// Commit what can be committed, and close. Accepts NULL.
static inline void store_close(struct store *s, uint64_t now_ms)
{
	if (s)
		s->ops->close(s, now_ms);
}
