// One command, from line to line.
//
// Everything that comes in is checked here before a handler sees it: an object with a known command
// and at most ADMIN_ARGUMENTS_MAX texts without NUL.

#include "controlplane/admin/request.h"

#include "controlplane/clock.h"

#include <stdlib.h>
#include <string.h>

struct request {
	const char *command;
	unsigned count;
	const char *arguments[ADMIN_ARGUMENTS_MAX];
};

// `text` as JSON, whatever bytes it has: a path may be no UTF-8.
static json_t *json_text(char *text)
{
	json_t *json = json_string(text);
	if (json)
		return json;
	for (char *c = text; *c; c++)
		if (*c & 0x80)
			*c = '?';
	return json_string(text);
}

static char *dump(json_t *answer)
{
	char *line = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
	json_decref(answer);
	if (!line)
		return NULL;
	size_t len = strlen(line);
	char *longer = realloc(line, len + 2);
	if (!longer) {
		free(line);
		return NULL;
	}
	memcpy(longer + len, "\n", 2);
	return longer;
}

char *request_refuse(const char *why)
{
	return dump(json_pack("{s:i, s:s}", "status", 1, "text", why));
}

// What is wrong with a request, or NULL. `request` borrows from `json`.
static const char *read_request(json_t *json, struct request *request)
{
	const json_t *arguments = json_object_get(json, "arguments");
	request->command = json_string_value(json_object_get(json, "command"));
	request->count = json_array_size(arguments);
	if (!request->command || (arguments && !json_is_array(arguments)))
		return "not a command: an object with \"command\" and \"arguments\" is expected";
	if (request->count > ADMIN_ARGUMENTS_MAX)
		return "too many arguments";
	for (unsigned i = 0; i < request->count; i++) {
		request->arguments[i] = json_string_value(json_array_get(arguments, i));
		if (!request->arguments[i])
			return "an argument that is no text";
	}
	return NULL;
}

// Takes over `text` and the reference of `data`.
static char *make_answer(int ret, char *text, json_t *data)
{
	json_t *answer = json_pack("{s:i}", "status", ret ? 1 : 0);
	if (text && *text)
		json_object_set_new(answer, "text", json_text(text));
	if (data)
		json_object_set_new(answer, "data", data);
	free(text);
	return dump(answer);
}

static char *carry_out(const struct admin_command *command, void *context,
	const struct request *request, struct request_later *later)
{
	json_t *data = NULL;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	int ret = command->function(context, request->count, request->arguments, &data, out);
	fclose(out);
	if (ret != ADMIN_LATER)
		return make_answer(ret, text, data);
	*later = (struct request_later){
		.command = command, .began_us = clock_monotonic_us(), .text = text, .data = data};
	return NULL;
}

char *request_settle(struct request_later *later, void *context)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	if (!out)
		return NULL;
	int ret = later->command->settled(context, later->began_us, &later->data, out);
	fclose(out);
	if (ret == ADMIN_LATER) {
		free(text);
		return NULL;
	}
	if (ret == 0 && later->text) { // nothing has come between
		free(text);
		text = later->text;
		later->text = NULL;
	}
	char *answer = make_answer(ret, text, later->data);
	later->data = NULL;
	request_drop(later);
	return answer;
}

void request_drop(struct request_later *later)
{
	free(later->text);
	json_decref(later->data);
	*later = (struct request_later){.command = NULL};
}

char *request_answer(const struct admin_command *commands, unsigned command_count, void *context,
	const char *line, size_t len, struct request_later *later)
{
	struct request request;
	char *answer = NULL;
	*later = (struct request_later){.command = NULL};
	json_t *json = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const char *wrong = json ? read_request(json, &request) : "not JSON";

	if (wrong) {
		answer = request_refuse(wrong);
	} else {
		const struct admin_command *command = commands, *end = commands + command_count;
		while (command < end && command->name &&
			strcmp(command->name, request.command) != 0)
			command++;
		answer = command < end ? carry_out(command, context, &request, later)
				       : request_refuse("no such command in this version");
	}
	json_decref(json);
	return answer;
}
