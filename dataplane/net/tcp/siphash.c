// The byte-wise form of siphash.h; the words are inline there.

#include "dataplane/net/tcp/siphash.h"

#include <endian.h>
#include <string.h>

uint64_t siphash(struct siphash_key key, const void *bytes, size_t len)
{
	struct siphash_state s = siphash_begin(key);
	const char *at = bytes;
	uint64_t word;
	for (size_t left = len; left >= 8; left -= 8, at += 8) {
		memcpy(&word, at, 8);
		siphash_word(&s, le64toh(word));
	}
	word = 0;
	memcpy(&word, at, len % 8);
	return siphash_end(s, le64toh(word) | (uint64_t)len << 56);
}
