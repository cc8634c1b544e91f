// Prints the queue page of visitors who wait: the C half of what test_words.py compares.
//
// Reads lines `LANGUAGE POSITION AHEAD ETA_LOW ETA_HIGH` (-1 is unknown), and answers each with the
// page that such a visitor is sent, and a NUL.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controlplane/pages/folder.h"
#include "dataplane/gate/page.h"
#include "dataplane/gate/rooms.h"

static const struct page *page_in(const struct page_set *set, const char *language)
{
	for (uint32_t i = 0; i < set->language_count; i++)
		if (span_is_equal(set->languages[i], (struct span){language, strlen(language)}))
			return set->pages[i][STATUS_waiting];
	abort();
}

int main(void)
{
	static char out[PAGE_BODY_BYTES_MAX + 1];
	char language[3];
	const struct gate_room room = {.name = SPAN("derby")};
	struct status status = {.state = STATUS_waiting, .poll_after = 1};
	const struct template_ear ear = {NULL, NULL}; // nothing is wrong with them
	const struct page_view view = {.status = &status, .room = &room, .kind = STATUS_waiting};
	struct folder *folder;
	if (folder_read(NULL, "en", NULL, &ear, NULL, &folder) < 0)
		return 1;
	while (scanf("%2s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, language, &status.position,
		       &status.ahead, &status.eta_low, &status.eta_high) == 5) {
		size_t len = page_render(
			page_in(folder_set(folder), language), ACCEPT_IDENTITY, &view, out);
		out[len] = 0;
		fwrite(out, 1, len + 1, stdout);
	}
	folder_give(folder);
	return 0;
}
