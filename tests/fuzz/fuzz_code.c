// Any body of a request to the endpoint of codes, as a form and as JSON: what is found is a code,
// and the same one however it is read.

#include "dataplane/gate/code.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const struct span body = {(const char *)data, len};
	struct code_digest form = {{0}}, json = {{0}}, typed = {{0}}, again = {{0}};
	uint64_t once;
	uint32_t letters = 0;
	if (code_in_body(body, false, &form, &once))
		assert((form.words[0] | form.words[1]) != 0);
	if (code_in_body(body, true, &json, &once))
		assert(len > 10 && memchr(data, '{', len));
	if (!code_digest(body, &typed, &letters))
		return 0;
	assert(letters > 0 && letters <= CODE_LETTERS_MAX && len <= CODE_TYPED_BYTES_MAX);
	assert(code_digest(body, &again, NULL) && code_is_equal(&typed, &again));
	return 0;
}
