// Words: threshold, floor and the expected wait are the ledger's, as its news said last; what may
// be admitted directly is a filter of our own over what it said, since it decides anyway. A
// newcomer whom it refused says that nobody more may be, until it says otherwise.
//
// Threshold and floor never move back, also where a line was moved on while the store was away.

#include "controlplane/cluster/member_words.h"

#include "controlplane/cluster/member_loss.h"
#include "controlplane/cluster/member_slots.h"

// Tickets of ours that the ledger does not know of: somebody waits, whatever it says.
static bool has_untold(const struct member_inside_line *line)
{
	const struct place_line *place = line->is.line;
	return atomic_load(&place->gathered) > 0 ||
	       (atomic_load(&place->word) & PLACE_SEQ_MAX) != 0 ||
	       member_slots_untold(line, line->slots_known) != UINT64_MAX;
}

static bool is_slow(const struct member *m)
{
	return m->batch->is_made && m->now_ms > m->batch->first_ms + MEMBER_HOLD_MS;
}

static uint64_t open_word(struct member *m, struct member_inside_line *line)
{
	uint64_t people = 0;
	bool is_held = !line->is_open || line->is.state != GATE_OPEN || line->is.is_still;
	if (m->is_away) {
		people = member_loss_people(m, line);
		is_held = !member_loss_grants(m, line);
	} else {
		is_held |= is_slow(m) || member_known_room(&m->known) == 0;
		people = line->is_full || !line->is.node.direct ? 0 : line->words.open_count;
	}
	const bool is_line = people == 0 || (has_untold(line) && line->is.on_loss != MEMBER_OPEN);
	return people | (is_line ? PLACE_OPEN_LINE : 0) | (is_held ? PLACE_OPEN_HOLD : 0);
}

// A mint announces itself in the word of openings, then adds to the line's word (who gathers: to
// their number), then announces itself again. We clear the announcement, then look whether that
// moved: one of us sees the other.
static void publish_open(struct member *m, struct member_inside_line *line)
{
	struct place_line *place = line->is.line;
	const uint64_t word = atomic_load(&place->word), gathered = atomic_load(&place->gathered);
	atomic_store(&place->open, open_word(m, line));
	if (atomic_load(&place->word) != word || atomic_load(&place->gathered) != gathered)
		atomic_fetch_or(&place->open, PLACE_OPEN_LINE);
}

void member_words_publish(struct member *m, struct member_inside_line *line)
{
	struct place_line *place = line->is.line;
	const struct ledger_words *words = &line->words;
	member_loss_turn(m, line);
	atomic_store(&place->wait_low, words->wait_low);
	atomic_store(&place->wait_high, words->wait_high);
	atomic_store(&place->next_poll_after, words->next_poll_after);
	atomic_store(&place->door_wait_ms, words->door_wait_ms);
	atomic_store(&place->left_waiting,
		conductor_left_waiting(m->conductor, line->is.line_id, place->threshold));
	if (line->threshold > place->threshold) {
		atomic_store(&place->threshold_rank, line->threshold_rank);
		atomic_store(&place->threshold, line->threshold);
	}
	if (line->floor > place->floor) {
		atomic_store(&place->floor, line->floor);
		place_trim(place, line->floor);
	}
	publish_open(m, line);
}

void member_words_publish_all(struct member *m)
{
	for (uint32_t i = 0; i < m->line_count; i++)
		member_words_publish(m, &m->lines[i]);
}
