// The wide engine: 32 letters at a time with AVX2, compiled for it by function, so that the rest of
// the program runs anywhere.
//
// Letters come in five runs, and within one a letter's value is itself plus a constant. Values are
// then put together in twos and twos again, 6 + 6 bits to 12, 12 + 12 to 24, and the three bytes of
// each four put in order.

#include "dataplane/gate/token_text.h"

#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

// The values of letters of one run, 0 for others; `found` learns which are.
AVX2 static inline __m256i values_of(
	__m256i letters, char first, char last, int value_of_first, __m256i *found)
{
	// Octets from 0x80 on are negative here, and below every run.
	__m256i is_in = _mm256_and_si256(_mm256_cmpgt_epi8(letters, _mm256_set1_epi8(first - 1)),
		_mm256_cmpgt_epi8(_mm256_set1_epi8(last + 1), letters));
	__m256i values = _mm256_add_epi8(letters, _mm256_set1_epi8((char)(value_of_first - first)));
	*found = _mm256_or_si256(*found, is_in);
	return _mm256_and_si256(values, is_in);
}

// Write the 24 bytes of 32 letters. Returns which of them were letters, all ones for each.
AVX2 static inline __m256i read_32(const char *text, uint8_t *bytes)
{
	const __m256i letters = _mm256_loadu_si256((const __m256i *)text);
	__m256i found = _mm256_setzero_si256();
	__m256i values = values_of(letters, 'A', 'Z', 0, &found);
	values = _mm256_or_si256(values, values_of(letters, 'a', 'z', 26, &found));
	values = _mm256_or_si256(values, values_of(letters, '0', '9', 52, &found));
	values = _mm256_or_si256(values, values_of(letters, '-', '-', 62, &found));
	values = _mm256_or_si256(values, values_of(letters, '_', '_', 63, &found));
	const __m256i twos = _mm256_maddubs_epi16(values, _mm256_set1_epi16(1 << 8 | 1 << 6));
	const __m256i fours = _mm256_madd_epi16(twos, _mm256_set1_epi32(1 << 16 | 1 << 12));
	const __m256i in_order = _mm256_shuffle_epi8(fours,
		_mm256_broadcastsi128_si256(
			_mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1)));
	const __m256i packed =
		_mm256_permutevar8x32_epi32(in_order, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
	_mm_storeu_si128((__m128i *)bytes, _mm256_castsi256_si128(packed));
	_mm_storel_epi64((__m128i *)(bytes + 16), _mm256_extracti128_si256(packed, 1));
	return found;
}

AVX2 bool token_text_read_avx2(
	const char text[TOKEN_TEXT_BYTES], uint8_t bytes[TOKEN_TEXT_WIRE_BYTES])
{
	__m256i first = read_32(text, bytes), second = read_32(text + 32, bytes + 24);
	return _mm256_movemask_epi8(_mm256_and_si256(first, second)) == -1;
}
