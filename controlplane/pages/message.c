// Escaping happens once, when the operator speaks, so that workers only copy.
//
// HTML: the five characters that end text or a quoted attribute. JSON: quote and backslash (RFC
// 8259 7). Control characters are refused, line breaks too: the page shows one paragraph.

#include "controlplane/pages/message.h"

#include "dataplane/gate/writer.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

// The length of the UTF-8 sequence at `at` (RFC 3629 4: shortest form, no surrogates, at most
// U+10FFFF), or 0 if it is none.
static size_t utf8_length(const unsigned char *at, size_t left)
{
	size_t len = at[0] < 0x80 ? 1 : at[0] < 0xc2 ? 0 : at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
	if (len == 0 || len > left || at[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
	}
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
		(at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return len;
}

// C0, DEL and C1 (U+0080 to U+009F).
static bool is_control(const unsigned char *at)
{
	return at[0] < 0x20 || at[0] == 0x7f || (at[0] == 0xc2 && at[1] < 0xa0);
}

static struct span html_of(struct span character)
{
	switch (character.at[0]) {
	case '&':
		return SPAN("&amp;");
	case '<':
		return SPAN("&lt;");
	case '>':
		return SPAN("&gt;");
	case '"':
		return SPAN("&quot;");
	case '\'':
		return SPAN("&#39;");
	default:
		return character;
	}
}

static struct span json_of(struct span character)
{
	switch (character.at[0]) {
	case '"':
		return SPAN("\\\"");
	case '\\':
		return SPAN("\\\\");
	default:
		return character;
	}
}

// Whether an escaped character and a closing quote still fit.
static bool has_room(const struct writer *w, struct span escaped)
{
	return (size_t)(w->end - w->at) >= escaped.len + 1;
}

int message_escape(struct span text, struct message *message)
{
	struct writer json = {message->json, message->json + sizeof(message->json)};
	struct writer html = {message->html, message->html + sizeof(message->html)};
	message->json_len = message->html_len = 0;
	if (text.len == 0)
		return 0;
	writer_char(&json, '"');
	for (size_t i = 0, len; i < text.len; i += len) {
		const unsigned char *at = (const unsigned char *)text.at + i;
		len = utf8_length(at, text.len - i);
		if (len == 0 || is_control(at))
			return -EILSEQ;
		struct span character = {text.at + i, len};
		if (!has_room(&json, json_of(character)) || !has_room(&html, html_of(character)))
			return -EMSGSIZE;
		writer_span(&json, json_of(character));
		writer_span(&html, html_of(character));
	}
	writer_char(&json, '"');
	message->json_len = (size_t)(json.at - message->json);
	message->html_len = (size_t)(html.at - message->html);
	return 0;
}
