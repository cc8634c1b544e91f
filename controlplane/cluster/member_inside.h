// The inside of a member: what member*.c share. Each file's part of it stands under its name.
#pragma once

#include "controlplane/claims/claims_answers.h"
#include "controlplane/cluster/member.h"
#include "controlplane/cluster/member_known.h"
#include "controlplane/cluster/member_records.h"
#include "controlplane/controller/bucket.h"
#include "controlplane/controller/holds.h"

#define MEMBER_INSIDE_READS 24u // pages asked for in a batch; the others are for offers
#define MEMBER_INSIDE_WORKERS CLAIMS_ANSWERS_WORKERS

struct member_inside_line {
	struct member_line is;
	// Words of the ledger's last news.
	uint64_t threshold, floor, threshold_rank, floor_rank;
	struct ledger_words words;
	bool is_open;
	bool is_full; // a newcomer was refused since
	// What has been said.
	bool is_config_said, is_known; // known: the ledger has heard of the line
	uint64_t slots_sent; // own tickets of slots below this one are in a batch
	uint64_t slots_known; // and below this one in the ledger
	struct holds holds;
	uint64_t held_key, held_end_s; // as said last
	// What has been heard.
	struct ledger_view view;
	uint64_t view_ms, asked_ms; // 0: never
	uint32_t over_max;
	uint64_t passed;
	// While the store is away.
	uint64_t away_rank, away_ms; // threshold's rank when it went
	uint64_t away_slot, away_own; // own tickets below this slot are called beyond what all have
				      // counted; how many
	struct bucket share;
};

struct member_inside_node {
	struct member_node is;
	struct bucket share; // while the store is away
};

enum member_inside_source {
	MEMBER_INSIDE_OTHER, // whatever the answer is
	MEMBER_INSIDE_CLAIM,
	MEMBER_INSIDE_SLOTS,
	MEMBER_INSIDE_RESTORE, // of a line
	MEMBER_INSIDE_KNOWN, // TAKEN, END, LEAVE of what is known
	MEMBER_INSIDE_CONFIG,
	MEMBER_INSIDE_VIEW,
	MEMBER_INSIDE_READ,
	MEMBER_INSIDE_RECORD,
	MEMBER_INSIDE_OFFER,
	MEMBER_INSIDE_CONDUCTOR,
	MEMBER_INSIDE_RESTORED,
	MEMBER_INSIDE_GOODBYE,
};

struct member_inside_batch {
	struct ledger_batch is;
	bool is_made; // there is no reply yet
	bool is_sent; // on the connection that there is
	uint32_t sends;
	uint64_t first_ms; // when it was sent first
	uint64_t sent_ms; // and last
	struct ledger_entry entries[LEDGER_ENTRIES_MAX];
	uint8_t sources[LEDGER_ENTRIES_MAX]; // enum member_inside_source
	struct claim claims[LEDGER_ENTRIES_MAX]; // of MEMBER_INSIDE_CLAIM
};

// A page of the state that is being read; what 0: none.
struct member_inside_read {
	uint32_t line;
	struct ledger_read is;
};

// member_restore.c: how far everything has been written back.
enum member_inside_restoring {
	MEMBER_INSIDE_RESTORED_ALL,
	MEMBER_INSIDE_RESTORING, // being written back
	MEMBER_INSIDE_RESTORED_SAID, // LEDGER_RESTORED is in a batch
};

struct member {
	struct member_plan plan;
	struct member_seams seams;
	struct ended *ended, *left;
	struct conductor *conductor;
	struct conductor_node *conductor_nodes; // lines_max + nodes_max; while they are set
	struct member_counters counters;
	uint64_t now_ms;

	uint32_t line_count, node_count;
	struct member_inside_line *lines; // 2 x lines_max: the old ones while they are replaced
	struct member_inside_node *nodes; // 2 x nodes_max

	// Claims that wait for a batch: a ring. More room than member_room() tells, for what has
	// to be said of answers that found nobody.
	uint64_t claim_first, claim_end; // numbers run on
	struct claim claims[MEMBER_CLAIMS_MAX + LEDGER_ENTRIES_MAX];
	// The called whose turn is near, and who are asked about again before they are answered.
	uint32_t later_count;
	struct member_inside_later {
		struct claim claim;
		uint64_t due_ms;
	} later[MEMBER_LATER_MAX];
	struct claims_answers *answers;
	struct member_known known;
	struct member_records *records;
	struct member_inside_batch *batch;

	// The connection.
	char run[LEDGER_RUN_BYTES + 1];
	bool is_connected, has_answered; // has_answered: on this connection
	bool is_away, is_leaving, is_gone;
	uint64_t connected_ms, away_since_ms, batch_ms; // batch_ms: when the last one was made
	uint64_t refused_since_ms; // batches are refused as a whole; 0: they are not
	uint64_t again_ms; // the batch is sent again then
	uint64_t unknown_ms; // the ledger did not know a line: then said again
	uint64_t slots_ms, config_ms, swept_s; // when last
	uint8_t refused; // enum ledger_batch_verdict, of that
	struct ledger_reply reply; // the last one that was taken
	bool has_reply; // there was one
	uint32_t round_trip_ms, live_count;
	int64_t skew_ms;
	uint8_t number; // ours
	struct ledger_member members[LEDGER_MEMBERS_MAX];
	uint32_t member_count;

	// News.
	uint64_t cursor, applied, final, closed, writes, fence; // the last two: the largest seen
	uint64_t gone_ms, peers; // as of ledger_batch, ledger_restored
	uint64_t barrier, barrier_cursor; // the barrier under way, and what it will have applied
	bool has_barrier, is_barrier_due; // due: news since need one
	bool is_ready; // caught up once
	// How old a decision of the conductor is when workers see it: counts by ms, the last for
	// all that are older.
	uint32_t ages[MEMBER_AGES];
	uint64_t age_count;

	// member_resync.c
	bool is_resyncing;
	uint32_t read_line, read_step; // the next page to ask for
	uint64_t read_until; // news up to here have to be taken besides
	uint64_t again_resync_ms; // once more then; 0: no
	struct member_inside_read reads[MEMBER_INSIDE_READS];

	// member_restore.c
	uint8_t restoring; // enum member_inside_restoring
	bool has_epoch, is_records_put;
	uint64_t epoch;
	uint32_t restore_line; // lines below are in a batch
};

// The line of an id, or NULL.
struct member_inside_line *member_inside_line(const struct member *m, uint32_t line_id);
// A node of an id, or NULL.
struct member_inside_node *member_inside_node(const struct member *m, uint32_t id);
