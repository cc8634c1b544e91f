// The scalar engine, one table look-up an octet, and the choice between engines.
//
// The choice is made anew at every call rather than kept in a variable: it reads what libgcc found
// out about the processor before main(), so there is nothing to initialise and nothing to forget.

#include "dataplane/http/head_scan.h"

#include "dataplane/http/octet.h"

static size_t scalar_text(struct span in, size_t at)
{
	return octet_scan(in, at, OCTET_TEXT);
}

static size_t scalar_token(struct span in, size_t at)
{
	return octet_scan(in, at, OCTET_TOKEN);
}

static size_t scalar_target(struct span in, size_t at)
{
	return octet_scan(in, at, OCTET_TARGET);
}

static unsigned scalar_mark(struct span in, size_t at, uint64_t words[HEAD_SCAN_WORDS])
{
	unsigned count = 0;
	for (; count < HEAD_SCAN_WORDS && at < in.len; count++) {
		words[count] = 0;
		for (unsigned i = 0; i < HEAD_SCAN_WORD_OCTETS; i++, at++)
			if (at >= in.len || !octet_is(in.at[at], OCTET_TEXT))
				words[count] |= UINT64_C(1) << i;
	}
	return count;
}

static void scalar_tokens(struct span in, uint16_t *at, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		at[i] = (uint16_t)octet_scan(in, at[i], OCTET_TOKEN);
}

const struct head_scan head_scan_scalar = {
	.name = "scalar",
	.text = scalar_text,
	.token = scalar_token,
	.target = scalar_target,
	.mark = scalar_mark,
	.tokens = scalar_tokens,
};

const struct head_scan *head_scan_best(void)
{
	if (__builtin_cpu_supports("avx2"))
		return &head_scan_avx2;
	if (__builtin_cpu_supports("sse4.2"))
		return &head_scan_sse42;
	return &head_scan_scalar;
}
