// The wide engines: 16 octets with SSE4.2, 32 with AVX2, compiled for those by function, so that
// the rest of the program runs anywhere.
//
// An octet 0xhl is looked up by its halves. low[l] holds a bit for each h below 8, bit_of_high[h]
// picks one; the octet is in the set if both have it. The shuffle that looks up gives 0 for octets
// from 0x80 on, so they are in no set. Text is therefore told by what it is not: the controls.
//
// A load beyond the end may fault, so the last octets are those of a vector that ends there; an
// input shorter than one goes octet by octet.

#include "dataplane/http/head_scan.h"

#include "dataplane/http/octet.h"

#include <immintrin.h>

#define SSE42 __attribute__((target("sse4.2")))
#define AVX2 __attribute__((target("avx2")))

struct set {
	_Alignas(16) uint8_t low[16];
	uint32_t flip; // all ones: the scan stops inside the set, else outside
	enum octet_class class; // the same, for the tail
};

static const struct set text = {
	// 0x00 to 0x1f but HTAB, and 0x7f
	.low = {0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x03, 0x02, 0x03, 0x03, 0x03, 0x03,
		0x03, 0x83},
	.flip = UINT32_MAX,
	.class = OCTET_TEXT,
};

static const struct set token = {
	.low = {0xe8, 0xfc, 0xf8, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xf8, 0xf8, 0xf4, 0x54, 0xd0, 0x54,
		0xf4, 0x70},
	.class = OCTET_TOKEN,
};

static const struct set target = {
	.low = {0xf8, 0xfc, 0xfc, 0xf8, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc, 0xfc,
		0xfc, 0x7c},
	.class = OCTET_TARGET,
};

static const _Alignas(16) uint8_t bit_of_high[16] = {1, 2, 4, 8, 16, 32, 64, 128};

// Which of 16 octets stop a scan, a bit each.
SSE42 static inline uint32_t stops_16(const char *at, const struct set *set)
{
	__m128i low = _mm_load_si128((const __m128i *)set->low);
	__m128i high = _mm_load_si128((const __m128i *)bit_of_high);
	__m128i octets = _mm_loadu_si128((const __m128i *)at);
	__m128i halves = _mm_and_si128(_mm_srli_epi16(octets, 4), _mm_set1_epi8(0x0f));
	__m128i common =
		_mm_and_si128(_mm_shuffle_epi8(low, octets), _mm_shuffle_epi8(high, halves));
	uint32_t outside = _mm_movemask_epi8(_mm_cmpeq_epi8(common, _mm_setzero_si128()));
	return (outside ^ set->flip) & 0xffff;
}

SSE42 static inline size_t scan_16(struct span in, size_t at, const struct set *set)
{
	for (; in.len - at >= 16; at += 16) {
		uint32_t stops = stops_16(in.at + at, set);
		if (stops)
			return at + __builtin_ctz(stops);
	}
	if (in.len < 16)
		return octet_scan(in, at, set->class);
	uint32_t known = (uint32_t)(16 - (in.len - at)); // of the last 16, before `at`
	uint32_t stops = stops_16(in.at + in.len - 16, set) >> known;
	return stops ? at + __builtin_ctz(stops) : in.len;
}

// Which of 32.
AVX2 static inline uint32_t stops_32(const char *at, const struct set *set)
{
	__m256i low = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)set->low));
	__m256i high = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)bit_of_high));
	__m256i octets = _mm256_loadu_si256((const __m256i *)at);
	__m256i halves = _mm256_and_si256(_mm256_srli_epi16(octets, 4), _mm256_set1_epi8(0x0f));
	__m256i common = _mm256_and_si256(
		_mm256_shuffle_epi8(low, octets), _mm256_shuffle_epi8(high, halves));
	uint32_t outside = _mm256_movemask_epi8(_mm256_cmpeq_epi8(common, _mm256_setzero_si256()));
	return outside ^ set->flip;
}

AVX2 static inline size_t scan_32(struct span in, size_t at, const struct set *set)
{
	for (; in.len - at >= 32; at += 32) {
		uint32_t stops = stops_32(in.at + at, set);
		if (stops)
			return at + __builtin_ctz(stops);
	}
	return scan_16(in, at, set);
}

// Where the octets of a word are: in the input, or, at its end, copied into `room`, with zeros
// behind them, which are no text.
static inline const char *word_at(struct span in, size_t at, char room[HEAD_SCAN_WORD_OCTETS])
{
	if (in.len - at >= HEAD_SCAN_WORD_OCTETS)
		return in.at + at;
	memset(room, 0, HEAD_SCAN_WORD_OCTETS);
	return memcpy(room, in.at + at, in.len - at);
}

SSE42 static unsigned sse42_mark(struct span in, size_t at, uint64_t words[HEAD_SCAN_WORDS])
{
	char room[HEAD_SCAN_WORD_OCTETS];
	unsigned count = 0;
	for (; count < HEAD_SCAN_WORDS && at < in.len; count++, at += HEAD_SCAN_WORD_OCTETS) {
		const char *word = word_at(in, at, room);
		words[count] = 0;
		for (unsigned i = 0; i < HEAD_SCAN_WORD_OCTETS; i += 16)
			words[count] |= (uint64_t)stops_16(word + i, &text) << i;
	}
	return count;
}

AVX2 static unsigned avx2_mark(struct span in, size_t at, uint64_t words[HEAD_SCAN_WORDS])
{
	char room[HEAD_SCAN_WORD_OCTETS];
	unsigned count = 0;
	for (; count < HEAD_SCAN_WORDS && at < in.len; count++, at += HEAD_SCAN_WORD_OCTETS) {
		const char *word = word_at(in, at, room);
		words[count] = stops_32(word, &text) | (uint64_t)stops_32(word + 32, &text) << 32;
	}
	return count;
}

SSE42 static size_t sse42_text(struct span in, size_t at)
{
	return scan_16(in, at, &text);
}

SSE42 static size_t sse42_token(struct span in, size_t at)
{
	return scan_16(in, at, &token);
}

SSE42 static size_t sse42_target(struct span in, size_t at)
{
	return scan_16(in, at, &target);
}

SSE42 static void sse42_tokens(struct span in, uint16_t *at, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		at[i] = (uint16_t)scan_16(in, at[i], &token);
}

const struct head_scan head_scan_sse42 = {
	.name = "sse4.2",
	.text = sse42_text,
	.token = sse42_token,
	.target = sse42_target,
	.mark = sse42_mark,
	.tokens = sse42_tokens,
};

AVX2 static size_t avx2_text(struct span in, size_t at)
{
	return scan_32(in, at, &text);
}

AVX2 static size_t avx2_token(struct span in, size_t at)
{
	return scan_32(in, at, &token);
}

AVX2 static size_t avx2_target(struct span in, size_t at)
{
	return scan_32(in, at, &target);
}

AVX2 static void avx2_tokens(struct span in, uint16_t *at, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		at[i] = (uint16_t)scan_32(in, at[i], &token);
}

const struct head_scan head_scan_avx2 = {
	.name = "avx2",
	.text = avx2_text,
	.token = avx2_token,
	.target = avx2_target,
	.mark = avx2_mark,
	.tokens = avx2_tokens,
};
