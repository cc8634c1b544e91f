// The wide engine: 32 letters at a time with AVX2, compiled for it by function, so that the rest of
// the program runs anywhere.
//
// A letter's halves tell whether it is one, as in head_scan_x86.c, and its upper half what is to be
// added to have its value: letters of one upper half lie in a row, but for `_`, which shares 5 with
// P to Z. Values are then put together in twos and twos again, 6 + 6 bits to 12, 12 + 12 to 24, and
// the three bytes of each four put in order.

#include "dataplane/gate/token_text.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

#define BY_HALF(...) _mm256_broadcastsi128_si256(_mm_setr_epi8(__VA_ARGS__))

// Write the 24 bytes of 32 letters. Returns zeros for those that were letters.
AVX2 static inline __m256i read_32(const char *text, uint8_t *bytes)
{
	const __m256i letters = _mm256_loadu_si256((const __m256i *)text);
	const __m256i half = _mm256_set1_epi8(15), low = _mm256_and_si256(letters, half);
	const __m256i high = _mm256_and_si256(_mm256_srli_epi16(letters, 4), half);
	// A bit for each kind of upper half; of a lower half those with which it is no letter. 2
	// goes with d alone, 3 with 0 to 9, 4 and 6 with 1 to f, 5 with 0 to a and f, 7 with 0 to
	// a, the others with none.
	const __m256i of_high = BY_HALF(32, 32, 1, 2, 4, 8, 4, 16, 32, 32, 32, 32, 32, 32, 32, 32);
	const __m256i of_low =
		BY_HALF(37, 33, 33, 33, 33, 33, 33, 33, 33, 33, 35, 59, 59, 58, 59, 51);
	const __m256i wrong = _mm256_and_si256(
		_mm256_shuffle_epi8(of_low, low), _mm256_shuffle_epi8(of_high, high));
	const __m256i added = BY_HALF(
		0, 0, 62 - '-', 52 - '0', -'A', -'A', 26 - 'a', 26 - 'a', 0, 0, 0, 0, 0, 0, 0, 0);
	const __m256i line = _mm256_cmpeq_epi8(letters, _mm256_set1_epi8('_'));
	__m256i values = _mm256_add_epi8(letters, _mm256_shuffle_epi8(added, high));
	values =
		_mm256_add_epi8(values, _mm256_and_si256(line, _mm256_set1_epi8(63 - ('_' - 'A'))));
	const __m256i twos = _mm256_maddubs_epi16(values, _mm256_set1_epi16(1 << 8 | 1 << 6));
	const __m256i fours = _mm256_madd_epi16(twos, _mm256_set1_epi32(1 << 16 | 1 << 12));
	const __m256i in_order = _mm256_shuffle_epi8(fours,
		_mm256_broadcastsi128_si256(
			_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1)));
	const __m256i packed =
		_mm256_permutevar8x32_epi32(in_order, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
	_mm_storeu_si128((__m128i *)bytes, _mm256_castsi256_si128(packed));
	_mm_storel_epi64((__m128i *)(bytes + 16), _mm256_extracti128_si256(packed, 1));
	return wrong;
}

AVX2 bool token_text_read_avx2(
	const char text[TOKEN_TEXT_BYTES], uint8_t bytes[TOKEN_TEXT_WIRE_BYTES])
{
	__m256i first = read_32(text, bytes), second = read_32(text + 32, bytes + 24);
	const __m256i wrong = _mm256_or_si256(first, second);
	return _mm256_testz_si256(wrong, wrong);
}
