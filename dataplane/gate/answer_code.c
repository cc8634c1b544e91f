// All texts are ours: nothing of what was typed is among them.

#include "dataplane/gate/answer_code.h"

#include "dataplane/gate/rooms.h"
#include "dataplane/gate/writer.h"

static const struct {
	uint16_t status;
	struct span error, message;
} answers[] = {
	[CODE_asked] = {200, SPAN("OK"), SPAN("")},
	[CODE_invalid] = {400, SPAN("Bad Request"), SPAN("This is no code.")},
	[CODE_long] = {413, SPAN("Content Too Large"), SPAN("The request is too large.")},
	[CODE_unsized] = {411, SPAN("Length Required"), SPAN("The length must be said before.")},
	[CODE_unknown] = {403, SPAN("Forbidden"), SPAN("This code is not known.")},
	[CODE_spent] = {403, SPAN("Forbidden"), SPAN("This code has been used.")},
	[CODE_guarded] = {429, SPAN("Too Many Requests"),
		SPAN("Too many codes were wrong. Please wait a minute.")},
};

unsigned answer_code_status(enum code_outcome outcome)
{
	assert(outcome < CODE_OUTCOME_COUNT);
	return answers[outcome].status;
}

size_t answer_code_json(enum code_outcome outcome, const struct gate_room *room, char *out)
{
	struct writer w = {out, out + ANSWER_CODE_BYTES_MAX};
	if (outcome == CODE_asked) {
		// Names of rooms have only letters that stand in JSON as they are.
		writer_span(&w, SPAN("{\"room\":\""));
		writer_span(&w, room->name);
		writer_span(&w, SPAN("\",\"wants\":\"code\"}"));
		return (size_t)(w.at - out);
	}
	writer_span(&w, SPAN("{\"status\":"));
	writer_number(&w, answer_code_status(outcome));
	writer_span(&w, SPAN(",\"error\":\""));
	writer_span(&w, answers[outcome].error);
	writer_span(&w, SPAN("\",\"reason\":\""));
	writer_span(&w, code_outcome_word(outcome));
	writer_span(&w, SPAN("\",\"message\":\""));
	writer_span(&w, answers[outcome].message);
	writer_span(&w, SPAN("\"}"));
	return (size_t)(w.at - out);
}
