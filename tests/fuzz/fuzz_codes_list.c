// Any file as a list of codes: refused with a line, or every code of it is found again.

#include "controlplane/codes/codes_list.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint32_t heard;

static void hear(void *context, uint32_t line, bool is_warning, const char *text)
{
	(void)context;
	(void)line;
	assert(*text);
	heard += !is_warning;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct codes_list_ear ear = {hear, NULL};
	const struct span text = {(const char *)data, len};
	struct codes_list *list;
	struct code_digest digest;
	heard = 0;
	if (codes_list_parse(text, &ear, NULL, &list) < 0) {
		assert(heard > 0);
		return 0;
	}
	assert(heard == 0);
	assert(codes_list_uses_total(list) >= codes_list_count(list));
	if (code_digest(text, &digest, NULL)) // one code and no more
		assert(codes_list_count(list) == 1 && codes_list_uses(list, &digest) == 1);
	codes_list_give(list);
	return 0;
}
