// SipHash-2-4: a short-input hash keyed by 128 bits (Aumasson and Bernstein, "SipHash: a fast
// short-input PRF", Indocrypt 2012). Who does not know the key can neither foretell a value nor
// find two inputs of one. Pure; any thread.
#pragma once

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t k0, k1; // little-endian halves
};

// Of `len` bytes.
uint64_t siphash(struct siphash_key key, const void *bytes, size_t len);

// Its inside, here so that the form for words is inlined.
struct siphash_state {
	uint64_t v0, v1, v2, v3;
};

// x, its bits moved up and around.
static inline uint64_t siphash_rotate(uint64_t x, unsigned bits)
{
	return x << bits | x >> (64 - bits);
}

// SipRound.
static inline void siphash_rounds(struct siphash_state *s, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		s->v0 += s->v1;
		s->v2 += s->v3;
		s->v1 = siphash_rotate(s->v1, 13) ^ s->v0;
		s->v3 = siphash_rotate(s->v3, 16) ^ s->v2;
		s->v0 = siphash_rotate(s->v0, 32);
		s->v2 += s->v1;
		s->v0 += s->v3;
		s->v1 = siphash_rotate(s->v1, 17) ^ s->v2;
		s->v3 = siphash_rotate(s->v3, 21) ^ s->v0;
		s->v2 = siphash_rotate(s->v2, 32);
	}
}

// The state of a key, before any word.
static inline struct siphash_state siphash_begin(struct siphash_key key)
{
	return (struct siphash_state){
		key.k0 ^ UINT64_C(0x736f6d6570736575), // "somepseudorandomlygeneratedbytes"
		key.k1 ^ UINT64_C(0x646f72616e646f6d),
		key.k0 ^ UINT64_C(0x6c7967656e657261),
		key.k1 ^ UINT64_C(0x7465646279746573),
	};
}

// One word.
static inline void siphash_word(struct siphash_state *s, uint64_t word)
{
	s->v3 ^= word;
	siphash_rounds(s, 2);
	s->v0 ^= word;
}

// The hash, after all whole words; the state may go on to more of them.
//   last  the bytes that are left, and the length in its top byte
static inline uint64_t siphash_end(struct siphash_state s, uint64_t last)
{
	siphash_word(&s, last);
	s.v2 ^= 0xff;
	siphash_rounds(&s, 4);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

// The last word of so many words.
static inline uint64_t siphash_last(unsigned count)
{
	return (uint64_t)count << 59;
}

// Of `count` 64-bit words: the same as of their bytes in little-endian order.
static inline uint64_t siphash_words(struct siphash_key key, const uint64_t *words, unsigned count)
{
	struct siphash_state s = siphash_begin(key);
	for (unsigned i = 0; i < count; i++)
		siphash_word(&s, words[i]);
	return siphash_end(s, siphash_last(count));
}

// SipHash-1-3 of them: enough where no hash is ever shown and only tables are to be kept even, as
// its authors say and Linux, Python and Rust have it.
static inline uint64_t siphash_words_13(
	struct siphash_key key, const uint64_t *words, unsigned count)
{
	struct siphash_state s = siphash_begin(key);
	for (unsigned i = 0; i <= count; i++) {
		uint64_t word = i < count ? words[i] : siphash_last(count);
		s.v3 ^= word;
		siphash_rounds(&s, 1);
		s.v0 ^= word;
	}
	s.v2 ^= 0xff;
	siphash_rounds(&s, 3);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
