// The status JSON: fixed text with numbers between, in the order of contract section 3.
//
// Nothing needs escaping here: room names hold no quotes, and the operator's message is a JSON
// value since the configuration was read.

#include "dataplane/gate/status.h"

#include "dataplane/gate/rooms.h"
#include "dataplane/gate/writer.h"

static_assert(STATUS_JSON_BYTES_MAX >
		      STATUS_MESSAGE_BYTES_MAX + GATE_NAME_MAX + 11 * WRITER_NUMBER_BYTES_MAX + 200,
	"message, name, numbers, and the words around them");

static const struct span words[] = {
#define X(name) [STATUS_##name] = {#name, sizeof(#name) - 1},
	STATUS_STATES(X)
#undef X
};

struct span status_word(enum status_state state)
{
	assert(state < STATUS_STATE_COUNT);
	return words[state];
}

struct span status_told(enum status_state state)
{
	return status_word(state == STATUS_before ? STATUS_prequeue : state);
}

static void put_number(struct writer *w, uint64_t n, uint64_t null)
{
	if (n == null)
		writer_span(w, SPAN("null"));
	else
		writer_number(w, n);
}

static void put_eta(struct writer *w, const struct status *status)
{
	if (status->eta_high == STATUS_UNKNOWN) {
		writer_span(w, SPAN(",\"eta\":null"));
		return;
	}
	writer_span(w, SPAN(",\"eta\":{\"low\":"));
	put_number(w, status->eta_low, STATUS_UNKNOWN);
	writer_span(w, SPAN(",\"high\":"));
	put_number(w, status->eta_high, STATUS_UNKNOWN);
	writer_char(w, '}');
}

size_t status_json(const struct status *status, const struct gate_room *room, char *out)
{
	struct writer w = {out, out + STATUS_JSON_BYTES_MAX};
	writer_span(&w, SPAN("{\"room\":\""));
	writer_span(&w, room->name);
	writer_span(&w, SPAN("\",\"state\":\""));
	writer_span(&w, status_told(status->state));
	writer_span(&w, SPAN("\",\"position\":"));
	put_number(&w, status->position, STATUS_UNKNOWN);
	writer_span(&w, SPAN(",\"ahead\":"));
	put_number(&w, status->ahead, STATUS_UNKNOWN);
	if (status->ahead_min != STATUS_UNKNOWN) {
		writer_span(&w, SPAN(",\"ahead_min\":"));
		writer_number(&w, status->ahead_min);
	}
	if (status->exact)
		writer_span(&w, SPAN(",\"exact\":true"));
	else
		writer_span(&w, SPAN(",\"exact\":false"));
	put_eta(&w, status);
	writer_span(&w, SPAN(",\"poll_after\":"));
	put_number(&w, status->poll_after, STATUS_UNKNOWN);
	writer_span(&w, SPAN(",\"opens\":"));
	put_number(&w, status->opens, 0);
	if (status->state == STATUS_before) {
		writer_span(&w, SPAN(",\"gathers\":"));
		put_number(&w, room->gathers_s < status->opens ? room->gathers_s : 0, 0);
	}
	writer_span(&w, SPAN(",\"expires\":"));
	put_number(&w, status->expires, 0);
	writer_span(&w, SPAN(",\"now\":"));
	put_number(&w, status->now, STATUS_UNKNOWN);
	writer_span(&w, SPAN(",\"message\":"));
	if (room->message_json.len > 0)
		writer_span(&w, room->message_json);
	else
		writer_span(&w, SPAN("null"));
	writer_char(&w, '}');
	return (size_t)(w.at - out);
}
